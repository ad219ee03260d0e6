"""Penalties and constraints of composite objectives, by their proximal operators.

A composite objective is f(x) + h(x): f smooth, h convex and perhaps not even continuous. A step
on f is followed by ``prox_{step h}``, and that is all an optimizer needs to know of h:

    prox_{step h}(v) = argmin_x  h(x) + |x - v|^2 / (2 step)

``base.py`` is the interface and the user-defined operator, ``norms.py`` has L1, L2, the elastic net
and the group lasso, ``sets.py`` the non-negative numbers and the simplex. Everything is on NumPy
arrays. A certificate of optimality needs h's conjugate, which each gives too; how the four
functions hang together is written in ``base.py``.
"""

from .base import Custom, Prox, as_prox
from .norms import L1, L2, ElasticNet, GroupLasso
from .sets import NonNegative, Simplex

__all__ = [
    "L1",
    "L2",
    "Custom",
    "ElasticNet",
    "GroupLasso",
    "NonNegative",
    "Prox",
    "Simplex",
    "as_prox",
]
