"""SVRG: instead of a table, a snapshot of the parameters (Johnson and Zhang, 2013).

    direction = f_j'(x) - f_j'(s) + f'(s)

with a snapshot s that is renewed every few passes, at the price of a full pass. With a prox it is
Prox-SVRG (Xiao and Zhang, 2014), whose snapshot is here the last iterate.

Costs: two gradients of memory, whatever n is; two forward and backward passes per step, and n for
every snapshot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.graph import wrap
from . import _finite_sum_checks as checks
from ._finite_sum import Closure, FiniteSumOptimizer
from ._flat import FlatParameters
from .optimizer import ParamsT

__all__ = ["SVRG"]


class SVRG(FiniteSumOptimizer):
    """Stochastic variance-reduced gradient; use as :class:`SAGA`, with ``init_table``.

    Parameters
    ----------
    params, n_samples, lr, L, mu, prox, weight_decay, decoupled_weight_decay
        As of :class:`SAGA`. With ``L`` (and whatever ``mu``), lr = 0.1 / L, the papers' choice.
    inner : int, optional
        Steps between snapshots, by default two passes.

    Attributes
    ----------
    closure : callable
        What :meth:`init_table` was given. It is not part of ``state_dict``: after loading one into
        another optimizer, set it.
    """

    _kind = "SVRG"
    _kept = ("n_samples", "inner")

    def __init__(
        self,
        params: ParamsT,
        n_samples: int,
        lr: Any = None,
        L: float | None = None,
        mu: float | None = None,
        prox: Any = None,
        inner: int | None = None,
        *,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
    ) -> None:
        self.inner = None if inner is None else checks.count(inner, "inner")
        self.closure: Closure | None = None
        super().__init__(params, n_samples, lr, L, mu, prox, weight_decay, decoupled_weight_decay)

    def init_table(self, closure: Closure) -> None:
        """Take the first snapshot; ``closure(i)`` computes the loss of sample i and its backward.

        It is called again in every step, at the snapshot, and so must depend on i and the
        parameters only.
        """
        self.closure = closure
        self._take_snapshot()

    def _step_size(self, L: float, mu: float | None) -> float:
        return 0.1 / L

    def _new_samples(self, flat: FlatParameters) -> dict[str, Any]:
        return {
            "filled": False,
            "snapshot": wrap(np.zeros(flat.size, flat.dtype)),
            "mean": wrap(np.zeros(flat.size, np.float64)),
        }

    def _check_ready(self) -> None:
        if self.closure is None or not self.state["samples"]["filled"]:
            raise RuntimeError(
                "SVRG compares with a snapshot: call init_table(closure) before the first step "
                "(or, after load_state_dict, set the attribute closure)"
            )

    def _estimate(self, index: int | None, gradient: np.ndarray, out: np.ndarray) -> None:
        samples = self.state["samples"]
        if index is None:
            out[...] = samples["mean"]._array
            return
        assert self.closure is not None
        here = self._layout.values()
        self._layout.set_values(samples["snapshot"]._array)
        try:
            self._gradient_from(self.closure, index, out)
        finally:
            self._layout.set_values(here)
        np.subtract(gradient, out, out=out)
        np.add(out, samples["mean"]._array, out=out, casting="same_kind")

    def _after_step(self, steps: int) -> None:
        inner = 2 * max(1, self._steps_per_pass) if self.inner is None else self.inner
        if steps % inner == 0:
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        assert self.closure is not None
        samples = self.state["samples"]
        samples["filled"] = False
        total = np.zeros(self._layout.size, np.float64)
        for index in range(self.n_samples):
            self._gradient_from(self.closure, index, self._gradient)
            total += self._gradient
        samples["mean"]._array[...] = total / max(1, self.n_samples)
        samples["snapshot"]._array[...] = self._layout.values()
        samples["filled"] = True
