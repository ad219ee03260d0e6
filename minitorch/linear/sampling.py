"""Which sample a step takes, and how long the step may be.

==============  ===========================================  =======================================
sampling        sample i is drawn with probability           L that the step size is made of
==============  ===========================================  =======================================
``uniform``     1/n                                          max L_i + l2 (the paper)
``shuffle``     every sample once per epoch, random order    max L_i + l2
``lipschitz``   in proportion to n l2 + 3 L_i                max (L_i + l2) / (n p_i), near mean L_i
``curvature``   the same with the curvature where we are     the same, smaller: slopes are flat at
                in place of L_i, measured at every check     samples that are fitted well
==============  ===========================================  =======================================

L_i is the Lipschitz constant of the gradient of f_i. One long row makes ``max L_i`` large and every
step small; drawn more often, and scaled by 1 / (n p_i), it does no harm (Schmidt et al.,
"Non-uniform stochastic average gradient method", 2015; Qian, Qu and Richtarik, "SAGA with arbitrary
sampling", 2019). The curvature of a logistic loss is p (1 - p), 1/4 only where the model is
undecided; it changes as the weights move, so a solver that uses it must check and be ready to go
back (`solver.py`).

Draws are addressed: element t of the run's sequence is a function of the seed and t, however the
run is cut into calls.
"""

from __future__ import annotations

import numbers

import numpy as np

from minitorch.random.addressed import addressed_bits, addressed_permutation

from .problem import Problem

__all__ = ["SAMPLINGS", "STEP_SIZES", "Sampler", "step_size"]

SAMPLINGS = ("curvature", "lipschitz", "uniform", "shuffle")
STEP_SIZES = ("auto", "1/(3L)", "1/(2(mu n+L))")
_SLOTS = 16  # per sample: probabilities are multiples of about 1 / (16 n)
_AHEAD = 8192  # words drawn at once, at least
_SAFETY = 1.5  # on the curvature that was measured
_FLOOR = 0.1  # of the curvature's bound: what a sample may bend when the weights have moved


class Sampler:
    """Draws indices for one problem.

    Attributes
    ----------
    L : float
        What the step size is made of: smoothness of the f_i with their l2 term.
    loss_L : float
        The same without the l2 term, for steps that take it in the proximal operator.
    scales : ndarray (n,) or None
        1 / (n p_i), for the kernel; None for ones.
    """

    def __init__(self, problem: Problem, sampling: str, seed: int) -> None:
        if sampling not in SAMPLINGS:
            raise ValueError(f"sampling must be one of {', '.join(SAMPLINGS)}, got {sampling!r}")
        self.problem, self.sampling, self.seed = problem, sampling, seed
        self.floor = _FLOOR
        self._bad = self._calm = 0  # checks
        self.scales: np.ndarray | None = None
        self._slots: np.ndarray | None = None
        self._words = np.empty(0, np.uint64)  # random ones drawn ahead, for element _first and on
        self._first = 0
        self.loss_L = float(problem.lipschitz.max())
        self.L = self.loss_L + problem.l2
        constant = sampling == "curvature" and problem.loss.constant_curvature
        if sampling == "lipschitz" or constant:
            self.sampling = "lipschitz"
            self._weigh(problem.lipschitz)

    def adapt(self, slopes: np.ndarray) -> None:
        """Take the curvature at these slopes into account, if that is the sampling."""
        if self.sampling != "curvature":
            return
        problem, bound = self.problem, self.problem.loss.curvature
        seen = _SAFETY * problem.loss.curvatures(slopes, problem.y).astype(np.float64)
        self._weigh(problem.lipschitz * (np.clip(seen, self.floor * bound, bound) / bound))

    def learn(self, *, good: bool) -> None:
        """Trust the measured curvature half as much after a bad check, as before after good ones.

        The more bad checks there were, the more good ones it takes.
        """
        if good:
            self._calm += 1
            if self._calm >= 4**self._bad and self.floor > _FLOOR:
                self.floor, self._calm = self.floor / 2, 0
        else:
            self._bad, self._calm = self._bad + 1, 0
            self.floor = min(1.0, 2 * self.floor)

    def _weigh(self, lipschitz: np.ndarray) -> None:
        n, l2 = self.problem.samples, self.problem.l2
        wanted = n * l2 + 3 * lipschitz
        total = wanted.sum()
        if not total > 0:  # nothing but zeros: any sampling will do
            wanted, total = np.ones(n), float(n)
        # Probabilities rounded to multiples of 1 / len(slots), so that a draw is one look-up; the
        # scales are made of the rounded ones, so that the estimate stays unbiased.
        counts = np.maximum(np.rint(wanted * (_SLOTS * n / total)), 1).astype(np.int64)
        if counts.min() == counts.max():
            self._slots = self.scales = None
            self.loss_L = float(lipschitz.max())
            self.L = self.loss_L + l2
            return
        self._slots = np.repeat(np.arange(n), counts)
        scales = len(self._slots) / (n * counts)
        self.scales = scales.astype(self.problem.dtype)
        self.loss_L = float((lipschitz * scales).max())
        self.L = float(((lipschitz + l2) * scales).max())

    def draw(self, epoch: int, epochs: int) -> np.ndarray:
        """Return indices (int64) of `epochs` epochs of n steps, from number `epoch` on."""
        n = self.problem.samples
        if self.sampling == "shuffle":
            orders = [
                addressed_permutation(self.seed, e, 0, n) for e in range(epoch, epoch + epochs)
            ]
            return np.concatenate(orders)
        high = n if self._slots is None else len(self._slots)
        draws = (self._bits(epoch * n, epochs * n) % np.uint64(high)).astype(np.int64)
        return draws if self._slots is None else self._slots[draws]

    def _bits(self, first: int, count: int) -> np.ndarray:
        """Random words of the elements [first, first + count), drawn in blocks that pay."""
        start = first - self._first
        if start < 0 or start + count > len(self._words):
            self._first, start = first, 0
            self._words = addressed_bits(self.seed, 0, 1, max(count, _AHEAD), offset=first)
        return self._words[start : start + count]


def step_size(rule: str | float, L: float, mu: float, n: int) -> float:
    """Return the step size of a rule.

    Parameters
    ----------
    rule : {"auto", "1/(3L)", "1/(2(mu n+L))"} or float
        The paper's two rules (Defazio et al. 2014, section 2), or "auto": 1/(2L).
    L, mu : float
        Smoothness of the f_i (see the table above; positive), and their strong convexity: l2.
    n : int
        Number of samples.
    """
    if isinstance(rule, str):
        if rule not in STEP_SIZES:
            raise ValueError(
                f"step_size must be a number or one of {', '.join(STEP_SIZES)}, got {rule!r}"
            )
        if rule == "1/(3L)":
            return 1 / (3 * L)
        return 1 / (2 * (mu * n + L)) if rule == "1/(2(mu n+L))" else 1 / (2 * L)
    if not (isinstance(rule, numbers.Real) and rule > 0 and np.isfinite(rule)):
        raise ValueError(
            f"step_size must be a positive number or one of {', '.join(STEP_SIZES)}, got {rule!r}"
        )
    return float(rule)
