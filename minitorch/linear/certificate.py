"""How far from the optimum a point provably is: the duality gap, and the gradient mapping.

For every dual point a (one number per sample and output) Fenchel's inequality bounds the optimum
from below,

    F* >= D(a) = - sum_i p_i loss*(a_i) - penalty*(- sum_i p_i a_i x_i),

and the slopes at the current weights are a dual point that becomes optimal together with them. So
``F(W) - D(slopes)`` is an upper bound of ``F(W) - F*`` that needs neither optimum nor constants. A
small last step, which other solvers stop at, bounds nothing: on badly scaled data steps are small
far from the optimum.

The gap is a sum of terms none of which is negative, one per sample and one per weight; they are
computed one by one, since the difference of F and D would lose all digits below 1e-16 F.

A dual point must be feasible. With an unpenalised intercept its weighted sum must be zero
(`Loss.balance`); without an l2 penalty no entry of the pull may exceed l1 (the point is scaled).
Without any penalty there is no such bound, and the gradient itself, relative to the scale of the
columns, is the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Evaluation, Problem

__all__ = ["Certificate", "certify", "duality_gap", "gradient_mapping"]


@dataclass(frozen=True)
class Certificate:
    """What is known about a point.

    Attributes
    ----------
    objective : float
        F at the point.
    gap : float
        ``objective - F* <= gap``; infinite without a penalty.
    kkt : float
        Largest entry of the gradient mapping ``(w - prox(w - step * gradient)) / step``.
    relative : float
        What `tol` is compared with: the gap over the objective of the model without features or,
        without a penalty, the gradient over its scale.
    """

    objective: float
    gap: float
    kkt: float
    relative: float


def duality_gap(problem: Problem, coef: np.ndarray, at: Evaluation) -> float:
    """Return F(W) - D(a) at the feasible a next to the slopes; infinite without a penalty.

    Costs a product with X if there is an intercept, and none otherwise.
    """
    if problem.l1 == 0 and problem.l2 == 0:
        return float("inf")
    dual, pull = at.slopes, at.gradient
    if problem.intercept:
        dual = problem.loss.balance(dual, problem.y, problem.shares)
        pull = problem.pull(dual)
    beyond = float(np.abs(pull).max(initial=0.0))
    if problem.l2 == 0 and beyond > problem.l1:
        # The domain of every conjugate here is convex and contains zero.
        dual = dual * dual.dtype.type(problem.l1 / beyond)
        pull = pull * pull.dtype.type(problem.l1 / beyond)
    gap = _penalty_gap(problem, coef.astype(np.float64), pull.astype(np.float64))
    if dual is not at.slopes:
        gap += float(problem.shares @ problem.loss.fenchel(at.margins, at.slopes, dual, problem.y))
    return gap


def _penalty_gap(problem: Problem, w: np.ndarray, pull: np.ndarray) -> float:
    """penalty(w) + penalty*(-pull) + w . pull, for a feasible pull."""
    l1, l2, size = problem.l1, problem.l2, np.abs(w)
    if l2 == 0:
        return float(np.maximum(l1 * size + w * pull, 0).sum())
    # Where the pull is beyond l1 the conjugate's maximum is at w = best, else at 0.
    over = np.abs(pull) > l1
    best = np.where(over, np.sign(pull) * l1 - pull, 0) / l2
    linear = np.where(over, l1 * (size + w * np.sign(pull)), np.maximum(l1 * size + w * pull, 0))
    return float((0.5 * l2 * np.square(w - best) + linear).sum())


def gradient_mapping(
    problem: Problem, coef: np.ndarray, at: Evaluation, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient mapping: of the weights (outputs, features) and of the intercept."""
    moved = problem.proximal(coef - step * at.gradient, step)
    return (coef - moved) / step, at.gradient_intercept


def certify(problem: Problem, coef: np.ndarray, at: Evaluation, step: float) -> Certificate:
    """Return what is known about a point; `step` is the one of the gradient mapping."""
    mapping, mapping_intercept = gradient_mapping(problem, coef, at, step)
    kkt = float(max(np.abs(mapping).max(initial=0.0), np.abs(mapping_intercept).max(initial=0.0)))
    if not np.isfinite(at.objective):
        return Certificate(at.objective, np.inf, kkt, np.inf)
    gap = duality_gap(problem, coef, at)
    scale = max(problem.null, float(np.finfo(problem.dtype).tiny))
    if np.isfinite(gap):
        return Certificate(at.objective, gap, kkt, gap / scale)
    slope_scale = np.sqrt(2 * problem.loss.curvature * scale)
    columns = np.where(problem.column_scales > 0, problem.column_scales, 1.0)
    relative = max(
        float(np.abs(at.gradient / columns).max(initial=0.0)),
        float(np.abs(at.gradient_intercept).max(initial=0.0)),
    )
    return Certificate(at.objective, gap, kkt, relative / slope_scale)
