"""SAGA: a table of gradients takes the noise out of SGD (Defazio, Bach and Lacoste-Julien, 2014).

The table holds, for each sample i, the gradient g_i that was seen when i was last drawn. A step on
sample j, drawn uniformly, with the old table:

    direction = f_j'(x) - g_j + mean(g)            (its expectation over j is f'(x))
    g_j <- f_j'(x)
    x <- prox_{lr h}(x - lr * direction)

As x settles, g_j comes close to f_j'(x), and the direction's variance vanishes: a constant step
size converges, and linearly so where the sum is strongly convex. ``saga_theory.py`` has the rates.

Costs: a row of all parameters per sample, and per step about six passes over one row. Beside it:
``sag.py``, ``svrg.py``, ``prox_sgd.py``; over ranks ``distributed/saga.py``; for linear models,
whose rows are one number each, ``minitorch.linear``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..autograd.graph import wrap
from ..tensor import Tensor
from . import _finite_sum_checks as checks
from ._finite_sum import Closure, FiniteSumOptimizer
from ._flat import FlatParameters, readable_bytes
from .optimizer import ParamsT
from .saga_theory import saga_step_size

__all__ = ["SAGA", "TableOptimizer"]

#: The mean of the table is updated with every row; after so many passes it is taken afresh, so that
#: rounding errors of early, large gradients do not stay in it for ever.
_PASSES_PER_REFRESH = 16


class TableOptimizer(FiniteSumOptimizer):
    """Base of SAGA and SAG: the table, its mean, and how it starts."""

    def __init__(
        self,
        params: ParamsT,
        n_samples: int,
        lr: Any = None,
        L: float | None = None,
        mu: float | None = None,
        prox: Any = None,
        init: str = "paper",
        *,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        memory_limit: int | None = 2**30,
    ) -> None:
        if init not in ("paper", "zero"):
            raise ValueError(f'init must be "paper" or "zero", but got {init!r}')
        self.init, self.memory_limit = init, checks.memory_limit(memory_limit)
        super().__init__(params, n_samples, lr, L, mu, prox, weight_decay, decoupled_weight_decay)

    @staticmethod
    def table_bytes(params: Iterable[Tensor], n_samples: int) -> int:
        """How many bytes the table of such an optimizer would take; nothing is allocated.

        Examples
        --------
        >>> import minitorch
        >>> minitorch.optim.SAGA.table_bytes(minitorch.nn.Linear(784, 10).parameters(), 60_000)
        1884000000
        """
        group = {"params": list(params), "weight_decay": 0}
        return _bytes(FlatParameters([group]), n_samples)

    def init_table(self, closure: Closure) -> None:
        """Fill the table with the gradients of all samples at the present parameters.

        Parameters
        ----------
        closure : callable
            ``closure(i)`` computes the loss of sample i and calls ``backward()`` on it. It is
            called once for each sample; gradients are cleared before each and restored at the end.

        Raises
        ------
        RuntimeError, FloatingPointError
            If a call leaves no gradient, or one that is not finite.
        """
        samples = self.state["samples"]
        samples["filled"] = False
        for index in range(self.n_samples):
            self._gradient_from(closure, index, self._gradient)
            self._rows[index] = self._gradient
        self._refresh_mean()
        samples["filled"] = True

    def _check_memory(self, flat: FlatParameters) -> None:
        needed = _bytes(flat, self.n_samples)
        if self.memory_limit is not None and needed > self.memory_limit:
            raise MemoryError(
                f"{type(self).__name__} would keep {self.n_samples:,} gradients of {flat.size:,} "
                f"numbers ({flat.dtype}), {readable_bytes(needed)}, and memory_limit is "
                f"{readable_bytes(self.memory_limit)}. Number fixed mini-batches instead of "
                "samples, use optim.SVRG (which keeps two gradients) or minitorch.linear (which "
                "keeps one number per sample of a linear model), or raise memory_limit"
            )

    def _check_ready(self) -> None:
        if not self.state["samples"]["filled"]:
            raise RuntimeError(
                f'{type(self).__name__}(init="paper") starts from the gradients of all samples: '
                'call init_table(closure) before the first step, or construct it with init="zero"'
            )

    def _new_samples(self, flat: FlatParameters) -> dict[str, Any]:
        # Pages of zeros are not taken before they are written.
        return {
            "filled": self.init == "zero",
            "rows": wrap(np.zeros((self.n_samples, flat.size), flat.dtype)),
            "mean": wrap(np.zeros(flat.size, np.float64)),
        }

    _kept = ("n_samples", "init", "memory_limit")

    def _link(self) -> None:
        super()._link()
        samples = self.state["samples"]
        for name, dtype in (("rows", self._layout.dtype), ("mean", np.dtype(np.float64))):
            if samples[name]._array.dtype != dtype:  # saved with another precision
                samples[name] = wrap(samples[name]._array.astype(dtype))
        self._rows: np.ndarray = samples["rows"]._array
        self._mean: np.ndarray = samples["mean"]._array
        self._change = np.zeros_like(self._gradient)

    def _commit(self, index: int | None, gradient: np.ndarray) -> None:
        if index is None:
            return
        self._rows[index] = gradient
        self._change /= self.n_samples
        self._mean += self._change

    def _after_step(self, steps: int) -> None:
        if steps % (_PASSES_PER_REFRESH * max(1, self.n_samples)) == 0:
            self._refresh_mean()

    def _refresh_mean(self) -> None:
        if self.n_samples:
            np.mean(self._rows, axis=0, dtype=np.float64, out=self._mean)

    def __repr__(self) -> str:
        text = super().__repr__()
        size = readable_bytes(self._rows.nbytes)
        return f"{text[:-1]}Table: {self._rows.shape[0]} x {self._rows.shape[1]}, {size}\n)"


class SAGA(TableOptimizer):
    r"""SAGA, for any module and loss, with a penalty or constraint h by its prox.

    Minimises (1/n) sum f_i(x) + h(x): per step one forward and backward pass of one sample.

    Parameters
    ----------
    params : iterable of Tensor, of dict (parameter groups), or of (name, Tensor)
        What to optimize. Groups may have their own ``lr``, ``L``, ``mu``, ``prox``,
        ``weight_decay`` (a bias without penalty, say).
    n_samples : int
        n: how many samples, or fixed mini-batches. For equal weights of all samples the batches
        must be of equal size, or their losses weighted accordingly.
    lr : float or 1-element Tensor, optional
        Step size; overrides ``L`` and ``mu``.
    L : float, optional
        Lipschitz constant of the gradient of each f_i: for linear models c * max \|x_i\|^2, with
        c = 1/4 (logistic), 1/2 (softmax), 1 (squared loss, (z - y)^2 / 2). Then lr = 1/(3 L).
        See ``estimate_smoothness`` for other models. With neither ``lr`` nor ``L``, a line search
        finds L (``step`` then takes a closure).
    mu : float, optional
        Strong convexity of each f_i; then lr = 1/(2 (mu n + L)). ``mu=0`` is right for a convex
        loss with ``weight_decay``. In both rules ``weight_decay`` is added to L and to mu.
    prox : Prox or callable, optional
        h, from ``minitorch.optim.prox``, or a function (v, step) -> array; applied to each
        parameter by itself.
    init : {"paper", "zero"}
        Where the table starts: at the gradients of all samples (call :meth:`init_table`, one pass),
        as the paper's bounds assume, or at zero, which costs nothing; the direction is unbiased
        with both.
    weight_decay : float, default 0
        Adds weight_decay / 2 \|x\|^2 to each f_i.
    decoupled_weight_decay : bool, default False
        Apply that term exactly, x <- (1 - lr * weight_decay) x, and keep it out of the table.
    memory_limit : int or None, default 2**30
        Refuse a table of more bytes than this (:meth:`table_bytes` tells the size beforehand).

    Raises
    ------
    MemoryError
        If the table would exceed ``memory_limit``; nothing has been allocated then.

    Examples
    --------
    >>> import minitorch
    >>> x, y = minitorch.tensor([[1.0], [2.0], [3.0]]), minitorch.tensor([1.0, 2.0, 3.0])
    >>> w = minitorch.zeros(1, requires_grad=True)
    >>> opt = minitorch.optim.SAGA([w], n_samples=3, L=9.0)
    >>> def loss(i):
    ...     opt.zero_grad()
    ...     value = 0.5 * ((x[i] @ w) - y[i]) ** 2
    ...     value.backward()
    ...     return value
    >>> opt.init_table(loss)
    >>> for i in [0, 2, 1] * 60:
    ...     _ = loss(i)
    ...     opt.step(i)
    >>> w
    tensor([1.0000], requires_grad=True)
    """

    _kind = "SAGA"

    def _step_size(self, L: float, mu: float | None) -> float:
        return saga_step_size(L, mu, self._total_samples)

    def _estimate(self, index: int | None, gradient: np.ndarray, out: np.ndarray) -> None:
        if index is None:
            out[...] = self._mean
            return
        np.subtract(gradient, self._rows[index], out=self._change)
        np.add(self._change, self._mean, out=out, casting="same_kind")


def _bytes(flat: FlatParameters, n_samples: int) -> int:
    return n_samples * flat.size * flat.dtype.itemsize
