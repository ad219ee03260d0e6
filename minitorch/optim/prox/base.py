"""What a proximal operator can be asked, and the one that a user brings along.

The four functions of a closed convex h, and what ties them together:

    value       h(x), infinite outside a constraint
    prox        argmin_x h(x) + |x - v|^2 / (2 step)
    conjugate   h*(u) = sup_x <u, x> - h(x)
    dual_norm   sup of <u, x> over h(x) <= 1; for a norm, h*(u) is 0 where that is <= 1, else inf

    h(x) + h*(u) >= <u, x>, with equality where u is a subgradient of h in x    (Fenchel-Young)
    x = prox(x - step g)  exactly where  -g is a subgradient of h in x          (optimality)

(Parikh and Boyd, Proximal Algorithms, 2014, sections 1 to 3.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Custom", "Prox", "as_prox", "checked_step", "nonnegative_number", "within"]


class Prox:
    """A closed convex function, known by its proximal operator.

    Subclass it, or see :class:`Custom`. All methods take floating NumPy arrays of any shape and
    return Python floats or an array of the argument's shape and dtype. An optimizer applies a
    Prox to each parameter by itself, in the parameter's own shape.

    Attributes
    ----------
    strong_convexity : float
        The largest m for which h(x) - m/2 |x|^2 is convex, 0 for most.
    """

    strong_convexity: float = 0.0

    def value(self, x: np.ndarray) -> float:
        """h(x); ``inf`` outside a constraint."""
        raise NotImplementedError(f"{self!r} has no value(x): give it one to see the objective")

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """Minimise h(x) + |x - v|^2 / (2 step) over x; ``out`` may be ``v``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement prox(v, step, out)")

    def conjugate(self, u: np.ndarray) -> float:
        """h*(u), the supremum of <u, x> - h(x) over x; ``inf`` outside its domain."""
        raise NotImplementedError(f"{self!r} has no conjugate: a duality gap cannot be computed")

    def dual_norm(self, u: np.ndarray) -> float:
        """The supremum of <u, x> over h(x) <= 1, for an h that is a norm."""
        raise NotImplementedError(f"{self!r} is not a norm, so there is no dual norm")


class Custom(Prox):
    """A user-defined h.

    Parameters
    ----------
    prox : callable
        ``prox(v, step) -> array`` like ``v``; it must not write into ``v``.
    value, conjugate, dual_norm : callable, optional
        The other functions of :class:`Prox`; without them, only what needs them is refused.
    strong_convexity : float, default 0

    Examples
    --------
    >>> import numpy as np
    >>> from minitorch.optim.prox import Custom
    >>> box = Custom(lambda v, step: np.clip(v, -1, 1))
    >>> box.prox(np.array([0.5, 3.0]), 0.1)
    array([0.5, 1. ])
    """

    def __init__(
        self,
        prox: Callable[[np.ndarray, float], np.ndarray],
        value: Callable[[np.ndarray], float] | None = None,
        conjugate: Callable[[np.ndarray], float] | None = None,
        dual_norm: Callable[[np.ndarray], float] | None = None,
        strong_convexity: float = 0.0,
    ) -> None:
        for name, function in (
            ("prox", prox),
            ("value", value),
            ("conjugate", conjugate),
            ("dual_norm", dual_norm),
        ):
            if not (callable(function) or (function is None and name != "prox")):
                raise TypeError(f"{name} must be callable, but got {type(function).__name__}")
        self._functions = {"value": value, "conjugate": conjugate, "dual_norm": dual_norm}
        self._prox = prox
        self.strong_convexity = nonnegative_number("strong_convexity", strong_convexity)

    def value(self, x: np.ndarray) -> float:
        """What the user's function says."""
        return self._ask("value", x)

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """What the user's function says, if it has the shape of ``v``."""
        result = np.asarray(self._prox(v, checked_step(step)))
        if result.dtype.kind not in "fiub" and result.dtype != v.dtype:  # bfloat16 is no "f"
            raise TypeError(
                f"the user-defined prox must return real numbers, but returned {result.dtype}"
            )
        if result.shape != v.shape:
            raise ValueError(
                f"the user-defined prox of an array of shape {v.shape} returned one of shape "
                f"{result.shape}"
            )
        if out is None:
            return result.astype(v.dtype, copy=False)
        out[...] = result
        return out

    def conjugate(self, u: np.ndarray) -> float:
        """What the user's function says."""
        return self._ask("conjugate", u)

    def dual_norm(self, u: np.ndarray) -> float:
        """What the user's function says."""
        return self._ask("dual_norm", u)

    def _ask(self, name: str, x: np.ndarray) -> float:
        function = self._functions[name]
        if function is None:
            raise NotImplementedError(
                f"this Custom was made without {name}: pass {name}= to its constructor"
            )
        return float(function(x))

    def __repr__(self) -> str:
        return f"Custom({getattr(self._prox, '__qualname__', repr(self._prox))})"


def as_prox(prox: Any) -> Prox | None:
    """What an optimizer's ``prox=`` may be: a Prox, a function of (v, step), or None."""
    if prox is None or isinstance(prox, Prox):
        return prox
    if isinstance(prox, type):
        raise TypeError(
            f"prox must be an object, but got the class {prox.__name__}: call it with its "
            "parameters first"
        )
    if callable(prox):
        return Custom(prox)
    raise TypeError(
        f"prox must be a Prox, such as minitorch.optim.prox.L1(0.1), or a function of (v, step), "
        f"but got {type(prox).__name__}"
    )


def nonnegative_number(name: str, value: Any) -> float:
    """A finite float >= 0, or a ValueError that names it."""
    number = float(value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and not negative, but got {value}")
    return number


def checked_step(step: float) -> float:
    """A positive finite step size, or a ValueError."""
    if not 0.0 < step < math.inf:
        raise ValueError(f"the step of a proximal operator must be positive, but got {step}")
    return step


def within(size: float, limit: float, terms: int = 1) -> bool:
    """Whether ``size <= limit``, up to the rounding of a sum of ``terms`` doubles.

    A dual point that was scaled onto the edge of its domain may lie one rounding outside.
    """
    return size <= limit * (1.0 + 4.0 * (1 + math.sqrt(terms)) * 2.0**-52)
