"""The losses of linear models: value, slope, curvature and Fenchel gap, for whole arrays.

``z`` are margins, shape (n, outputs). Targets are +1/-1, shape (n,), for the two binary losses,
class numbers, shape (n,), for softmax and values, shape (n, outputs), for the squared loss.

A slope is ``d loss / d z``. ``fenchel`` is ``l(z) + l*(a) - a z`` for a dual point a, where
``l*(a) = max_z (a z - l(z))`` is the convex conjugate: never negative, and zero where a is the
slope at z. ``balance`` moves slopes, inside the domain of the conjugate, to a weighted sum of zero:
that is what an unpenalised intercept asks of a dual point.
"""

from __future__ import annotations

import numpy as np

__all__ = ["LOSSES", "Logistic", "Loss", "SmoothedHinge", "Softmax", "Squared"]


def _entropy(p: np.ndarray) -> float:
    """- sum p log p, with the limit 0 at 0."""
    return -float(np.sum(p * np.log(np.where(p > 0, p, 1))))


def _divergence(q: np.ndarray, p: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """Return q log(q / p) + p - q, elementwise: terms of the Kullback-Leibler divergence.

    Where q is close to p the result is of second order, and is computed without subtracting numbers
    of first order. ``log_p`` serves where p has underflowed.
    """
    safe = np.where(q > 0, q, 1)
    t = (p - q) / safe
    near = np.where(p > 0, t, 0)
    close = q * (near - np.log1p(near))
    far = q * (np.log(safe) - log_p) - q
    return np.where(q > 0, np.where(p > 0, close, far), p)


class Loss:
    """What the solver and the certificate ask of a loss."""

    name: str
    #: upper bound of the second derivative (of its largest eigenvalue)
    curvature: float
    #: whether the curvature that is measured at a point says nothing about the points around it
    constant_curvature = False
    smoothing = 1.0

    def evaluate(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values, shape (n,), and slopes, shape (n, outputs)."""
        raise NotImplementedError

    def curvatures(self, slopes: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivatives (bounds of their largest eigenvalue) at these slopes, shape (n,)."""
        return np.full(len(slopes), self.curvature, slopes.dtype)

    def fenchel(
        self, z: np.ndarray, slopes: np.ndarray, dual: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        """``l(z) + l*(dual) - dual z``, shape (n,); `slopes` are those at z."""
        raise NotImplementedError

    def balance(self, slopes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Slopes nearby, in the domain of the conjugate, with ``weights @ slopes == 0``."""
        raise NotImplementedError

    def null(self, y: np.ndarray, weights: np.ndarray, intercept: bool) -> float:
        """Weighted mean loss of the model without features: the scale of what can be gained."""
        raise NotImplementedError


class Squared(Loss):
    """``(z - y)^2 / 2``, summed over outputs."""

    name = "squared"
    curvature = 1.0
    constant_curvature = True

    def evaluate(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slopes = z - y
        return 0.5 * np.einsum("nk,nk->n", slopes, slopes), slopes

    def fenchel(
        self, z: np.ndarray, slopes: np.ndarray, dual: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        return 0.5 * np.square(dual - slopes).sum(axis=1)

    def balance(self, slopes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return slopes - weights @ slopes

    def null(self, y: np.ndarray, weights: np.ndarray, intercept: bool) -> float:
        centred = y - weights @ y if intercept else y
        # The second term is rounding: the scale of what is left of targets that are all the same.
        rounding = np.finfo(y.dtype).eps * np.sum(weights @ np.square(y))
        return float(0.5 * np.sum(weights @ np.square(centred)) + rounding)


class _Binary(Loss):
    """A loss of ``y z``; its slopes are ``-y b`` with a share b between 0 and 1."""

    def balance(self, slopes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        pull = weights * slopes[:, 0]
        up, down = -pull[y > 0].sum(), pull[y < 0].sum()
        least = min(up, down)
        factors = np.where(y > 0, least / up if up > 0 else 0.0, least / down if down > 0 else 0.0)
        return slopes * factors[:, None].astype(slopes.dtype)


class Logistic(_Binary):
    """``log(1 + exp(-y z))``."""

    name = "logistic"
    curvature = 0.25

    def evaluate(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = y * z[:, 0]
        e = np.exp(-np.abs(m))  # never overflows
        slopes = -y * np.where(m > 0, e, 1) / (1 + e)
        return np.log1p(e) + np.maximum(-m, 0), slopes[:, None]

    def curvatures(self, slopes: np.ndarray, y: np.ndarray) -> np.ndarray:
        share = np.abs(slopes[:, 0])
        return share * (1 - share)

    def fenchel(
        self, z: np.ndarray, slopes: np.ndarray, dual: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        p, q = np.abs(slopes[:, 0]), np.abs(dual[:, 0])
        m = y * z[:, 0]
        softplus = np.log1p(np.exp(-np.abs(m)))
        log_p, log_rest = -softplus - np.maximum(m, 0), -softplus - np.maximum(-m, 0)
        return _divergence(q, p, log_p) + _divergence(1 - q, 1 - p, log_rest)

    def null(self, y: np.ndarray, weights: np.ndarray, intercept: bool) -> float:
        if not intercept:
            return float(np.log(2.0))
        share = float(weights[y > 0].sum())
        return _entropy(np.array([share, 1 - share]))


class SmoothedHinge(_Binary):
    """The hinge ``max(0, 1 - y z)`` with a parabola of width `smoothing` in place of its corner.

    ``1 - m - smoothing/2`` for ``m = y z <= 1 - smoothing``, 0 for ``m >= 1``, and
    ``(1 - m)^2 / (2 smoothing)`` between (Shalev-Shwartz and Zhang, "Stochastic dual coordinate
    ascent", 2013). It differs from the hinge by at most ``smoothing / 2``.
    """

    name = "smoothed_hinge"
    constant_curvature = True  # 0 or 1/smoothing, and a small step changes one into the other

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = float(smoothing)
        self.curvature = 1 / self.smoothing

    def evaluate(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        short = 1 - y * z[:, 0]
        share = np.clip(short / self.smoothing, 0, 1)
        return share * (short - 0.5 * self.smoothing * share), (-y * share)[:, None]

    def fenchel(
        self, z: np.ndarray, slopes: np.ndarray, dual: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        p, q, short = np.abs(slopes[:, 0]), np.abs(dual[:, 0]), 1 - y * z[:, 0]
        return (p - q) * (short - 0.5 * self.smoothing * (p + q))

    def null(self, y: np.ndarray, weights: np.ndarray, intercept: bool) -> float:
        value = self.evaluate(np.zeros((1, 1)), np.ones(1))[0]
        return float(value[0])


class Softmax(Loss):
    """Cross entropy ``log sum_k exp(z_k) - z_y``."""

    name = "softmax"
    curvature = 0.5

    def evaluate(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        largest = z.max(axis=1, keepdims=True)
        shifted = z - largest
        p = np.exp(shifted)
        total = p.sum(axis=1, keepdims=True)
        rows, classes = np.arange(len(z)), y.astype(np.intp)
        values = np.log(total[:, 0]) - shifted[rows, classes]
        p /= total
        p[rows, classes] -= 1
        return values, p

    def _probabilities(self, slopes: np.ndarray, y: np.ndarray) -> np.ndarray:
        p = slopes.copy()
        p[np.arange(len(p)), y.astype(np.intp)] += 1
        return np.clip(p, 0, 1)

    def curvatures(self, slopes: np.ndarray, y: np.ndarray) -> np.ndarray:
        # Gershgorin's bound for diag(p) - p p': a row's absolute sum is 2 p_k (1 - p_k). The slope
        # is p_k, or p_k - 1, so |slope| (1 - |slope|) is the same product.
        share = np.abs(slopes)
        return 2 * (share * (1 - share)).max(axis=1)

    def fenchel(
        self, z: np.ndarray, slopes: np.ndarray, dual: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        p, q = self._probabilities(slopes, y), self._probabilities(dual, y)
        shifted = z - z.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return _divergence(q, p, log_p).sum(axis=1)

    def balance(self, slopes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # Classes with too much probability give a share of it, sample by sample, to those with too
        # little, in proportion to what these lack: rows stay distributions, sums come out even.
        p = self._probabilities(slopes, y)
        wanted = np.bincount(y.astype(np.intp), weights, p.shape[1])
        surplus = weights @ p - wanted
        lacking = np.maximum(-surplus, 0)
        if not lacking.sum() > 0:
            return slopes
        keep = np.where(surplus > 0, wanted / np.maximum(wanted + surplus, 1e-300), 1.0)
        freed = p @ (1 - keep)
        p = p * keep + freed[:, None] * (lacking / lacking.sum())
        p[np.arange(len(p)), y.astype(np.intp)] -= 1
        return p.astype(slopes.dtype)

    def null(self, y: np.ndarray, weights: np.ndarray, intercept: bool) -> float:
        share = np.bincount(y.astype(np.intp), weights)
        return _entropy(share) if intercept else float(np.log(len(share)))


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Squared, Logistic, SmoothedHinge, Softmax)
}
