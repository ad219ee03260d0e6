"""Bounding gradients, by their common norm or element by element."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from minitorch.autograd import TensorBase, bump_version, wrap
from minitorch.dtypes import promote_types
from minitorch.ops._arguments import widen
from minitorch.ops._typing import Tensor


def _listed(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, TensorBase) else list(parameters)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


def _norm(array: np.ndarray, norm_type: float) -> np.ndarray:
    flat = widen(array).reshape(-1)
    if norm_type == np.inf and not flat.size:
        return np.zeros((), flat.dtype)
    return np.asarray(np.linalg.norm(flat, norm_type))


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all tensors taken together as one vector, 0-d.

    Its type is the one that the tensors' types promote to.

    Raises
    ------
    RuntimeError
        If it is inf or nan and `error_if_nonfinite` is set.
    """
    tensors = _listed(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return wrap(np.zeros((), np.float32))
    norms = np.array([_norm(t._array, norm_type) for t in tensors])
    total = _norm(norms, norm_type)
    if error_if_nonfinite and not np.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    dtype = reduce(promote_types, [t.dtype for t in tensors]).numpy
    return wrap(np.asarray(total).astype(dtype))


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale all gradients in place so that `total_norm` becomes at most `max_norm`."""
    # Always multiplied, as PyTorch does: a nan norm must show in the gradients.
    factor = np.minimum(float(max_norm) / (widen(total_norm._array) + 1e-6), 1.0)
    for grad in _gradients(parameters):
        np.multiply(grad._array, factor.astype(grad._array.dtype), out=grad._array)
        bump_version(grad)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that their common norm is at most `max_norm`.

    Parameters
    ----------
    norm_type : float
        Order of the norm; ``float("inf")`` for the largest element.
    error_if_nonfinite : bool
        Raise if the norm is inf or nan.

    Returns
    -------
    Tensor
        The norm before clipping, 0-d.
    """
    parameters = _listed(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp every element of every gradient in place to ``[-clip_value, clip_value]``."""
    bound = float(clip_value)
    for grad in _gradients(parameters):
        np.clip(grad._array, -bound, bound, out=grad._array)
        bump_version(grad)
