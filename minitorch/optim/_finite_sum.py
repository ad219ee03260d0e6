"""What SAGA, SAG, SVRG and proximal SGD share: a step on one sample of a finite sum.

    F(x) = (1/n) sum_i f_i(x) + h(x)

A subclass says how it estimates the gradient of the average from that of sample ``index``
(``_estimate``), and what it remembers of it (``_commit``). The rest is here: groups and their step
sizes, the sample's gradient as one vector, the step with its prox, checks, and state.

What is remembered of the samples belongs to all parameters together; it lies in
``state["samples"]``, beside PyTorch's per-parameter entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..autograd.grad_mode import enable_grad
from ..autograd.graph import wrap
from ..tensor import Tensor
from . import _finite_sum_checks as checks
from ._flat import FlatParameters
from ._line_search import search_smoothness
from ._rules import check_lr, plain
from .optimizer import Optimizer, ParamsT
from .prox import as_prox

__all__ = ["FiniteSumOptimizer"]

Closure = Callable[[int], Any]


class FiniteSumOptimizer(Optimizer):
    """Base of the optimizers that step on one sample of a finite sum; see :class:`SAGA`."""

    _kind: str  # names the method in a checkpoint

    def __init__(
        self,
        params: ParamsT,
        n_samples: int,
        lr: Any = None,
        L: float | None = None,
        mu: float | None = None,
        prox: Any = None,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
    ) -> None:
        self.n_samples = self._checked_count(n_samples)
        defaults = {
            "lr": lr,
            "L": L,
            "mu": mu,
            "prox": prox,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        self._flat: FlatParameters | None = None
        super().__init__(params, defaults)
        searching = [group["line_search"] for group in self.param_groups]
        if any(searching) and not all(searching):
            raise ValueError(
                "lr and L: give one of them to all groups, or to none (which searches for one L)"
            )
        flat = FlatParameters(self.param_groups)
        self._check_memory(flat)
        self.state["samples"] = {"kind": self._kind, "steps": 0, **self._new_samples(flat)}
        self._link()

    # -- what a subclass says ------------------------------------------------------------------

    def _step_size(self, L: float, mu: float | None) -> float:
        """The step size that theory gives for these constants."""
        raise NotImplementedError

    def _new_samples(self, flat: FlatParameters) -> dict[str, Any]:
        """What is remembered, at the start."""
        return {}

    def _check_memory(self, flat: FlatParameters) -> None:
        """Refuse what would not fit."""

    def _check_ready(self) -> None:
        """Refuse a step before the start is made."""

    def _estimate(self, index: int | None, gradient: np.ndarray, out: np.ndarray) -> None:
        """Write the estimate of the average's gradient; change nothing that is remembered."""
        raise NotImplementedError

    def _commit(self, index: int | None, gradient: np.ndarray) -> None:
        """Remember the gradient, right after its ``_estimate``."""

    def _after_step(self, steps: int) -> None:
        """What is due now and then; ``steps`` have been made."""

    def _combine(self, direction: np.ndarray) -> None:
        """Combine the estimate with other ranks', in place (``distributed/saga.py``)."""

    def _agree_on_smoothness(self, L: float) -> float:
        """The L of all ranks."""
        return L

    @property
    def _total_samples(self) -> int:
        """n: also over other ranks."""
        return self.n_samples

    @property
    def _steps_per_pass(self) -> int:
        """How many steps see as many samples as there are."""
        return self.n_samples

    # -- groups --------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; only while the optimizer is constructed.

        Raises
        ------
        RuntimeError
            Later: what is remembered of the samples has no place for more parameters.
        """
        if self._flat is not None:
            raise RuntimeError(
                f"{type(self).__name__}: gradients of the samples are kept for the parameters "
                "given at construction; make another optimizer for more"
            )
        group = dict(param_group)
        options = {**self.defaults, **{k: v for k, v in group.items() if k != "params"}}
        group["prox"] = as_prox(options["prox"])
        decay = checks.weight_decay(options["weight_decay"])
        group["decoupled_weight_decay"] = bool(options["decoupled_weight_decay"])
        L, mu = checks.constants(options["L"], options["mu"])
        group["L"], group["mu"] = L, mu
        group["line_search"] = options["lr"] is None and L is None
        if options["lr"] is not None:
            check_lr(options["lr"])
        elif L is not None:
            group["lr"] = self._step_size_of(L, mu, decay)
        else:
            group["L"] = 1.0
            group["lr"] = self._step_size_of(1.0, mu, decay, searching=True)
        super().add_param_group(group)

    def _step_size_of(
        self, L: float, mu: float | None, decay: float, searching: bool = False
    ) -> float:
        """The step size for the loss with its L2 term, which adds to both constants."""
        total = L if searching else L + decay
        strong = None if mu is None else mu + decay
        if strong is not None and searching:
            total = max(total, strong)
        return self._step_size(total, strong)

    # -- stepping ------------------------------------------------------------------------------

    def step(  # type: ignore[override]  # an index is what these methods are about
        self, index: Any, closure: Callable[[], Any] | None = None
    ) -> float | None:
        """Step, after the backward pass of one sample's (or fixed mini-batch's) loss.

        Parameters
        ----------
        index : int
            Which sample, 0 <= index < n_samples.
        closure : callable, optional
            Returns the same sample's loss, without backward. Only the line search asks for it.

        Returns
        -------
        float or None
            With a line search, the sample's loss before the step.

        Raises
        ------
        TypeError, IndexError
            If ``index`` is a list of samples, or no sample.
        RuntimeError
            Before ``init_table`` where that is needed; if there is no gradient, or no closure
            for the line search.
        FloatingPointError
            If the gradient is not finite, or what the prox makes of the parameters. In all cases,
            and whatever a user-defined prox raises, nothing has been changed.
        """
        self._check_ready()
        index = self._checked_index(index)
        self._read_gradient(index)
        loss = None
        gradient, direction = self._gradient, self._direction
        with self._step_sizes_kept_if_it_fails():
            if self.param_groups[0]["line_search"]:
                loss = self._search(index, closure)
            self._estimate(index, gradient, direction)
            self._combine(direction)
            if not np.isfinite(direction).all():
                raise FloatingPointError(
                    f"the gradient of sample {index}, or what it is combined with, is not finite; "
                    "nothing has been changed. Look at that sample, or take a smaller lr"
                )
            self._layout.descend(direction)
        self._commit(index, gradient)
        samples = self.state["samples"]
        samples["steps"] += 1
        self._after_step(samples["steps"])
        return loss

    def gradient_estimate(self, index: Any) -> Tensor:
        """The direction that ``step(index)`` would take now, as one vector; nothing changes.

        Without decoupled weight decay and prox, which a step applies to the parameters.
        """
        self._check_ready()
        index = self._checked_index(index)
        self._read_gradient(index)
        out = np.empty_like(self._direction)
        self._estimate(index, self._gradient, out)
        self._combine(out)
        return wrap(out)

    def _read_gradient(self, index: int | None) -> None:
        if not self._layout.gradient(self._gradient) and index is not None:
            raise RuntimeError(
                f"no parameter has a gradient: call backward() on the loss of sample {index} first"
            )

    def _gradient_from(self, closure: Closure, index: int, out: np.ndarray) -> None:
        """The sample's gradient at the present parameters; their ``.grad`` is left alone."""
        entries = self._layout.entries
        kept = [param.grad for param, _, _ in entries]
        try:
            for param, _, _ in entries:
                param.grad = None
            with enable_grad():
                closure(index)
            if not self._layout.gradient(out):
                raise RuntimeError(
                    f"closure({index}) left no gradient: it must compute the loss of sample "
                    f"{index} and call backward() on it"
                )
        finally:
            for (param, _, _), grad in zip(entries, kept, strict=True):
                param.grad = grad
        if not np.isfinite(out).all():
            raise FloatingPointError(f"the gradient of sample {index} is not finite")

    def _search(self, index: int | None, closure: Callable[[], Any] | None) -> float | None:
        """Adapt L, and the step sizes that follow from it."""
        loss = None
        if closure is None and index is not None:
            raise RuntimeError(
                "with neither lr nor L, L is found by a line search, which needs the sample's "
                "loss: call step(index, closure), where closure() returns it"
            )
        L = self.param_groups[0]["L"] * 2.0 ** (-1.0 / max(1, self._steps_per_pass))
        if closure is not None:
            L, loss = search_smoothness(L, self._layout, self._gradient, closure)
        L = self._agree_on_smoothness(L)
        for group in self.param_groups:
            group["L"] = L
            decay = plain(group["weight_decay"])
            group["lr"] = self._step_size_of(L, group["mu"], decay, searching=True)
        return loss

    @contextmanager
    def _step_sizes_kept_if_it_fails(self) -> Iterator[None]:
        before = [(group["L"], group["lr"]) for group in self.param_groups]
        try:
            yield
        except BaseException:
            for group, (L, lr) in zip(self.param_groups, before, strict=True):
                group["L"], group["lr"] = L, lr
            raise

    # -- checks --------------------------------------------------------------------------------

    def _checked_count(self, n_samples: Any) -> int:
        return checks.count(n_samples)

    def _checked_index(self, index: Any) -> int | None:
        return checks.index(index, self.n_samples)

    # -- state ---------------------------------------------------------------------------------

    _kept: tuple[str, ...] = ("n_samples",)

    def _link(self) -> None:
        """Make scratch vectors, and names for what is remembered."""
        self._flat = FlatParameters(self.param_groups)
        self._gradient = np.zeros(self._flat.size, self._flat.dtype)
        self._direction = np.zeros_like(self._gradient)

    @property
    def _layout(self) -> FlatParameters:
        assert self._flat is not None
        return self._flat

    def state_dict(self) -> dict[str, Any]:
        """As PyTorch's, with ``state["samples"]``; a prox is named, not saved."""
        packed = super().state_dict()
        for group in packed["param_groups"]:
            group["prox"] = repr(group["prox"])
        return packed

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {name: getattr(self, name) for name in self._kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "defaults" not in state:  # from load_state_dict
            self._check_saved(state["state"].get("samples"))
            checks.keep_prox(state["param_groups"], self.param_groups)
        super().__setstate__(state)
        self._link()

    def _check_saved(self, saved: Any) -> None:
        """Refuse a ``state["samples"]`` that does not fit."""
        checks.saved(saved, self.state["samples"])
