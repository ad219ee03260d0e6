"""SAGA's step sizes, rates and bounds (Defazio, Bach and Lacoste-Julien, 2014).

f(x) = (1/n) sum f_i(x), each f_i with L-Lipschitz gradient, F = f + h with h convex. Numbers only:
where L and mu come from is in ``saga_constants.py``, the method itself in ``saga.py``.

====================  ================  ===================================  =====================
what is known         step size         E|x_k - x*|^2 shrinks per step by    bracket's factor c
====================  ================  ===================================  =====================
every f_i is          1/(2(mu n + L))   1 - mu / (2 (mu n + L))              n / (mu n + L)
mu-strongly convex
nothing, or the same  1/(3 L)           1 - min(1/(4 n), mu / (3 L))         2 n / (3 L)
only their average    1/(3(mu n + L))   1 - mu / (6 (mu n + L))
is mu-strongly convex
====================  ================  ===================================  =====================

The bound of the first two is rate^k times |x_0 - x*|^2 + c (f(x_0) - f(x*) - <f'(x*), x_0 - x*>),
for a table that was filled at x_0. The bracket uses f, without h.
"""

from __future__ import annotations

import math

__all__ = ["saga_bound", "saga_rate", "saga_step_size"]


def saga_step_size(
    L: float,
    mu: float | None = None,
    n_samples: int | None = None,
    strongly_convex: str = "each",
) -> float:
    """The paper's step size.

    Parameters
    ----------
    L : float
        Lipschitz constant of every sample's gradient, a quadratic penalty included.
    mu : float, optional
        Strong convexity. Without it the step is 1/(3L), which adapts to whatever mu is.
    n_samples : int, optional
        Needed with ``mu``.
    strongly_convex : {"each", "average"}
        Whether ``mu`` holds for every sample's loss (as with an L2 penalty) or for their mean only.

    Examples
    --------
    >>> from minitorch.optim import saga_step_size
    >>> saga_step_size(L=2.0, mu=0.25, n_samples=8)
    0.125
    """
    _positive("L", L)
    if strongly_convex not in ("each", "average"):
        raise ValueError(f"strongly_convex is 'each' or 'average', but got {strongly_convex!r}")
    if mu is None:
        return 1.0 / (3.0 * L)
    _positive("mu", mu)
    if n_samples is None or n_samples < 1:
        raise ValueError("the step size from mu needs n_samples, the number of samples")
    if mu > L:
        raise ValueError(f"mu = {mu} exceeds L = {L}: no function is like that")
    return 1.0 / ((2.0 if strongly_convex == "each" else 3.0) * (mu * n_samples + L))


def saga_rate(
    L: float, mu: float, n_samples: int, step: str = "strong", strongly_convex: str = "each"
) -> float:
    """The factor by which the bound on E|x - x*|^2 shrinks in each step.

    Parameters
    ----------
    L, mu, n_samples, strongly_convex
        As in :func:`saga_step_size`.
    step : {"strong", "adaptive"}
        The step size that uses mu, or 1/(3L).
    """
    _positive("mu", mu)
    size = saga_step_size(L, mu, n_samples, strongly_convex)
    if step == "adaptive":
        return 1.0 - min(1.0 / (4.0 * n_samples), mu / (3.0 * L))
    if step != "strong":
        raise ValueError(f"step is 'strong' or 'adaptive', but got {step!r}")
    return 1.0 - mu * size * (1.0 if strongly_convex == "each" else 0.5)


def saga_bound(
    steps: int,
    L: float,
    mu: float,
    n_samples: int,
    distance_squared: float,
    excess: float,
    step: str = "strong",
) -> float:
    """The paper's bound on E|x_k - x*|^2 after ``steps`` steps (Theorem 1 and Corollary 1).

    Parameters
    ----------
    steps : int
        k.
    L, mu, n_samples, step
        As in :func:`saga_rate`; every f_i is mu-strongly convex.
    distance_squared : float
        |x_0 - x*|^2.
    excess : float
        f(x_0) - f(x*) - <f'(x*), x_0 - x*>, of the smooth part f alone.
    """
    rate = saga_rate(L, mu, n_samples, step)
    factor = n_samples / (mu * n_samples + L) if step == "strong" else 2.0 * n_samples / (3.0 * L)
    return rate**steps * (distance_squared + factor * excess)


def _positive(name: str, value: float) -> None:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, but got {value}")
