"""SAGA in plain NumPy: what the C++ kernel does, in the order in which the paper tells it.

Slow, one Python iteration per step, and short: the lesson reads it, the tests hold the kernel to it
(same indices, same weights to 1e-12). Three ways to take the l2 penalty are here:

* ``"proximal"``: exactly, in the proximal operator (the solver's choice; needs no table);
* ``"gradient"``: exactly, as the gradient ``l2 w`` of where we are (needs no table either);
* ``"table"``: as a part of every f_i, with the gradient that the table remembers, as the paper's
  text has it; that takes a table of n * features numbers, and only this rung offers it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .problem import Problem, is_sparse

__all__ = ["State", "saga_steps", "shrinkage"]


class State:
    """Weights, table and means of one run; `coef` has shape (outputs, features).

    ``init="paper"`` fills the table at the given weights, ``"zero"`` leaves it zero. `remembered`
    are the weights at which an l2 penalty in the table starts.
    """

    def __init__(
        self,
        problem: Problem,
        coef: np.ndarray | None = None,
        intercept: np.ndarray | None = None,
        init: str = "paper",
    ) -> None:
        if init not in ("paper", "zero"):
            raise ValueError(f"init must be 'paper' or 'zero', got {init!r}")
        n, d, outputs, dtype = problem.samples, problem.features, problem.outputs, problem.dtype
        self.coef = np.zeros((outputs, d), dtype)
        self.intercept = np.zeros(outputs, dtype)
        if coef is not None:
            self.coef[...] = coef
        if intercept is not None and problem.intercept:
            self.intercept[...] = intercept
        self.table = np.zeros((n, outputs), dtype)
        self.mean = np.zeros((outputs, d), dtype)
        self.mean_intercept = np.zeros(outputs, dtype)
        self.remembered = self.coef.copy() if init == "paper" else np.zeros_like(self.coef)
        if init == "paper":
            at = problem.evaluate(self.coef, self.intercept)
            self.refresh(problem, at.slopes, at.gradient, at.gradient_intercept)

    def refresh(
        self,
        problem: Problem,
        slopes: np.ndarray,
        gradient: np.ndarray,
        gradient_intercept: np.ndarray,
    ) -> None:
        """Fill the table with the slopes of a pass over the data, the means with its gradient."""
        factors = problem.factors
        self.table[...] = slopes if factors is None else slopes * factors[:, None]
        self.mean[...] = gradient
        self.mean_intercept[...] = gradient_intercept


def shrinkage(problem: Problem, step: float, l2_step: str) -> tuple[float, float]:
    """Return what the weights are multiplied by before and after the soft threshold of a step.

    Raises
    ------
    ValueError
        With ``l2_step="gradient"``, a step of 1/l2 or more: it would turn the weights around.
    """
    if l2_step == "proximal":
        return 1.0, 1 / (1 + step * problem.l2)
    if l2_step != "gradient":
        raise ValueError(f"l2_step must be 'proximal' or 'gradient', got {l2_step!r}")
    if step * problem.l2 >= 1:
        raise ValueError(f"step {step:g} is too long for l2={problem.l2:g}: it must be below 1/l2")
    return 1 - step * problem.l2, 1.0


def saga_steps(
    problem: Problem,
    state: State,
    indices: np.ndarray,
    step: float,
    *,
    l2_step: str = "proximal",
    scales: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Take one step per index; yields the weights (not a copy) after each.

    Example
    -------
    >>> from minitorch.linear.losses import Squared
    >>> problem = Problem(np.array([[1.0], [-1.0]]), np.array([[1.0], [-1.0]]), Squared(), l2=1.0)
    >>> for weights in saga_steps(problem, State(problem), np.array([0, 1] * 50), step=0.25):
    ...     pass
    >>> round(float(weights[0, 0]), 6)  # (x.x + l2 n) w = x.y
    0.5
    """
    X, y, loss, n = problem.X, problem.y, problem.loss, problem.samples
    in_table = l2_step == "table"
    before, after = (1.0, 1.0) if in_table else shrinkage(problem, step, l2_step)
    remembered = np.repeat(state.remembered[None], n, axis=0) if in_table else None
    for i in indices:
        x = X[[i]].toarray()[0] if is_sparse(X) else X[i]
        z = state.coef @ x + state.intercept
        slope = loss.evaluate(z[None], y[i : i + 1])[1][0]
        if problem.factors is not None:
            slope = slope * problem.factors[i]
        delta = slope - state.table[i]
        scale = 1.0 if scales is None else scales[i]
        # f_i'(now) - f_i'(remembered) + the mean of what is remembered (the old mean)
        estimate = scale * np.outer(delta, x) + state.mean
        if remembered is not None:
            mean_remembered = remembered.mean(axis=0)
            estimate += problem.l2 * (state.coef - remembered[i] + mean_remembered)
            remembered[i] = state.coef
        moved = before * state.coef - step * estimate
        state.coef[...] = after * np.sign(moved) * np.maximum(np.abs(moved) - step * problem.l1, 0)
        if problem.intercept:
            state.intercept -= (
                step * problem.intercept_rate * (scale * delta + state.mean_intercept)
            )
            state.mean_intercept += delta / n
        state.table[i] = slope
        state.mean += np.outer(delta, x) / n
        yield state.coef
