"""SAGA until a certificate says that it is done.

Between two checks the C++ kernel takes n steps per epoch without looking up. A check is one more
pass over the data: objective, duality gap (`certificate.py`), and, since that pass has computed
every slope anyway, a fresh table for free (`restart`). Checks come at epochs 1, 2, 3, 4, 5, 6, 7,
8, 10, 12, 15, ...: a quarter of the epochs so far (and at least about 2,000 steps).

With ``step_size="auto"`` the step is as long as the curvature at the last check allows. That
curvature is a measurement, not a bound, so the check decides: if the objective rose, the run goes
back to the last check and trusts the measurement less, down to the bound of the theory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch import _core

from . import sampling as rules
from .certificate import Certificate, certify
from .plain import State, saga_steps, shrinkage
from .problem import Evaluation, Problem, is_sparse
from .sampling import Sampler

__all__ = ["Check", "Result", "minimize"]

# Between checks: on small data a check costs as much as so many steps.
_LEAST_STEPS, _LEAST_EPOCHS = 2048, 16
# Between two looks at pending signals: so many multiplications, about a tenth of a second.
_PORTION = 10**8


@dataclass(frozen=True)
class Check:
    """One line of the history.

    Attributes
    ----------
    epoch : int
        Epochs (n steps each) so far.
    passes : int
        Passes over the data so far: epochs and checks.
    seconds : float
        Since the start.
    objective, gap, kkt, relative : float
        See :class:`minitorch.linear.certificate.Certificate`.
    step : float
        Step size of the epochs before this check.
    """

    epoch: int
    passes: int
    seconds: float
    objective: float
    gap: float
    kkt: float
    relative: float
    step: float

    @classmethod
    def of(
        cls, certificate: Certificate, epoch: int, passes: int, seconds: float, step: float
    ) -> Check:
        """Put a certificate on the record."""
        return cls(
            epoch,
            passes,
            seconds,
            certificate.objective,
            certificate.gap,
            certificate.kkt,
            certificate.relative,
            step,
        )


@dataclass
class Result:
    """Where a run ended, and how it got there."""

    coef: np.ndarray  # (outputs, features)
    intercept: np.ndarray  # (outputs,)
    converged: bool
    history: list[Check] = field(default_factory=list)

    @property
    def epochs(self) -> int:
        return self.history[-1].epoch

    @property
    def certificate(self) -> Certificate:
        last = self.history[-1]
        return Certificate(last.objective, last.gap, last.kkt, last.relative)


@dataclass
class _Good:
    """The last check that was not worse than the one before: where a run can go back to."""

    coef: np.ndarray
    intercept: np.ndarray
    at: Evaluation
    certificate: Certificate

    @classmethod
    def keep(cls, state: State, at: Evaluation, certificate: Certificate) -> _Good:
        return cls(state.coef.copy(), state.intercept.copy(), at, certificate)

    def is_better_than(self, certificate: Certificate, eps: float) -> bool:
        """Whether the objective rose since, by more than noise."""
        here, there = self.certificate, certificate
        slack = 16 * eps * abs(here.objective)
        slack += 0.01 * here.gap if np.isfinite(here.gap) else 0.0
        return not there.objective <= here.objective + slack

    def restore(self, problem: Problem, state: State) -> None:
        state.coef[...] = self.coef
        state.intercept[...] = self.intercept
        at = self.at
        state.refresh(problem, at.slopes, at.gradient, at.gradient_intercept)


def minimize(
    problem: Problem,
    *,
    coef: np.ndarray | None = None,
    intercept: np.ndarray | None = None,
    tol: float = 1e-4,
    max_epochs: int = 1000,
    sampling: str = "curvature",
    step_size: str | float = "auto",
    restart: bool = True,
    init: str = "paper",
    seed: int = 0,
    callback: Callable[[Check], Any] | None = None,
    check_every: int | None = None,
    kernel: str = "native",
    l2_step: str = "proximal",
) -> Result:
    """Minimise a linear model's objective with SAGA.

    Parameters
    ----------
    problem : Problem
    coef, intercept : ndarray, optional
        Where to start: (outputs, features) and (outputs,); zero by default.
    tol : float
        Done when the certificate's relative gap is at most this.
    max_epochs : int
    sampling : {"curvature", "lipschitz", "uniform", "shuffle"}
        See `sampling.py`.
    step_size : {"auto", "1/(3L)", "1/(2(mu n+L))"} or float
    restart : bool
        Whether checks refill the table. The paper's algorithm does not.
    init : {"paper", "zero"}
        The table at the start: slopes at the start, or zeros.
    seed : int
    callback : callable, optional
        Called with each :class:`Check`; a true answer ends the run (as not converged).
    check_every : int, optional
        Epochs between checks; by default a quarter of the epochs so far.
    kernel : {"native", "plain"}
        The C++ loop, or the NumPy one of `plain.py`.
    l2_step : {"proximal", "gradient"}
        How a step takes the l2 penalty; both are exact.

    Example
    -------
    >>> from minitorch.linear.losses import Squared
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> problem = Problem(X, X.copy(), Squared(), l1=0.15, l2=0.35)
    >>> round(float(minimize(problem, tol=1e-18).coef[0, 0]), 9)
    0.508196721
    """
    if kernel not in ("native", "plain"):
        raise ValueError(f"kernel must be 'native' or 'plain', got {kernel!r}")
    start = time.perf_counter()
    sampler = Sampler(problem, sampling, seed)
    state = State(problem, coef, intercept, init="zero")
    eps = float(np.finfo(problem.dtype).eps)
    guarded, trust = step_size == "auto", 1.0
    result = Result(state.coef, state.intercept, False)
    good: _Good | None = None
    epoch, passes, step = 0, 0, _step(step_size, sampler, 1.0, l2_step)
    while True:
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverged is caught below
            at = problem.evaluate(state.coef, state.intercept)
            certificate = certify(problem, state.coef, at, step)
        passes += 1
        check = Check.of(certificate, epoch, passes, time.perf_counter() - start, step)
        result.history.append(check)
        stopped = callback is not None and bool(callback(check))
        result.converged = certificate.relative <= tol
        if result.converged or stopped or epoch >= max_epochs:
            worse = good is not None and guarded and good.is_better_than(certificate, eps)
            if good is not None and worse and not result.converged:
                good.restore(problem, state)
                seconds = time.perf_counter() - start
                last = Check.of(good.certificate, epoch, passes, seconds, step)
                result.history.append(last)
            return result
        if guarded and good is not None and good.is_better_than(certificate, eps):
            good.restore(problem, state)
            sampler.learn(good=False)
            trust /= 2 if sampler.floor >= 1 else 1
            sampler.adapt(good.at.slopes)
        else:
            good = _Good.keep(state, at, certificate)
            if restart or (epoch == 0 and init == "paper"):
                state.refresh(problem, at.slopes, at.gradient, at.gradient_intercept)
            sampler.learn(good=True)
            sampler.adapt(at.slopes)
        step = _step(step_size, sampler, trust, l2_step)
        least = min(_LEAST_STEPS // problem.samples, _LEAST_EPOCHS)
        epochs = check_every or max(1, epoch // 4, least)
        epochs = min(epochs, max_epochs - epoch)
        run = _run_native if kernel == "native" else _run_plain
        for indices in _portions(problem, sampler, epoch, epochs):
            run(problem, state, indices, step, sampler.scales, l2_step, checked=epoch > 0)
        epoch += epochs
        passes += epochs


def _step(rule: str | float, sampler: Sampler, trust: float, l2_step: str) -> float:
    # A proximal step is stable however strong the penalty. Were l2 part of L, a strong one would
    # make all steps short, also that of the intercept, which it does not hold.
    smoothness = sampler.loss_L if rule == "auto" and l2_step == "proximal" else sampler.L
    problem = sampler.problem
    smoothness = max(smoothness, float(np.finfo(problem.dtype).tiny))  # rows of zeros
    return trust * rules.step_size(rule, smoothness, problem.l2, problem.samples)


def _portions(problem: Problem, sampler: Sampler, epoch: int, epochs: int) -> Iterator[np.ndarray]:
    """Yield the indices of these epochs, in portions of a fraction of a second each.

    Between portions Python sees signals, so that Ctrl-C need not wait for the next check; and the
    indices of a long run never lie in memory all at once.
    """
    numbers = problem.X.nnz if is_sparse(problem.X) else problem.X.size
    work = problem.outputs * numbers + 16 * problem.samples  # of one epoch
    together, steps = max(1, _PORTION // work), max(1, _PORTION * problem.samples // work)
    for first in range(epoch, epoch + epochs, together):
        indices = sampler.draw(first, min(together, epoch + epochs - first))
        for start in range(0, len(indices), steps):
            yield indices[start : start + steps]


def _run_plain(
    problem: Problem,
    state: State,
    indices: np.ndarray,
    step: float,
    scales: np.ndarray | None,
    l2_step: str,
    *,
    checked: bool,
) -> None:
    for _ in saga_steps(problem, state, indices, step, l2_step=l2_step, scales=scales):
        pass


def _run_native(
    problem: Problem,
    state: State,
    indices: np.ndarray,
    step: float,
    scales: np.ndarray | None,
    l2_step: str,
    *,
    checked: bool,
) -> None:
    before, after = shrinkage(problem, step, l2_step)
    fitted = problem.intercept
    _core.saga(
        problem.rows,
        problem.y,
        indices,
        state.coef,
        state.table,
        state.mean,
        loss=problem.loss.name,
        samples=problem.samples,
        features=problem.features,
        outputs=problem.outputs,
        step=step,
        l1=problem.l1,
        before=before,
        after=after,
        smoothing=problem.loss.smoothing,
        intercept_rate=problem.intercept_rate,
        weights=problem.factors,
        scales=scales,
        intercept=state.intercept if fitted else None,
        mean_intercept=state.mean_intercept if fitted else None,
        checked=checked,
    )
