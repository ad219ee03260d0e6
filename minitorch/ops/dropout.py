"""Dropout: random zeros during training, the identity otherwise.

Masks are drawn from this thread's default generator, as every random op without its own generator
does. The mask already carries the factor ``1/(1-p)``, so the gradient is one product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import Node, record
from minitorch.ops._typing import Tensor
from minitorch.random import default_generator
from minitorch.random.generator import stream_of
from minitorch.random.streams import bernoulli_scalar


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout_backward(node: Node, grad: Any) -> tuple:
    (mask,) = node.saved
    return (grad * mask,)


def _mask(shape: tuple[int, ...], dtype: np.dtype, p: float) -> np.ndarray:
    kept = bernoulli_scalar(stream_of(default_generator), shape, 1 - p).astype(dtype)
    kept *= dtype.type(1 / (1 - p))
    return kept


def _drop(x: Tensor, p: float, training: bool, inplace: bool, shape: tuple) -> Tensor:
    _check(p)
    if not training or p == 0.0 or x.numel() == 0:
        return x
    array = x._array
    mask = np.zeros(shape, array.dtype) if p == 1.0 else _mask(shape, array.dtype, p)
    out = record(array * mask, dropout_backward, (x,), (mask,), None, "MulBackward0")
    return x.copy_(out) if inplace else out


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability `p` and scale the others by ``1/(1-p)``.

    Raises
    ------
    ValueError
        If `p` is not a probability.
    """
    return _drop(input, p, training, inplace, tuple(input.shape))


def _feature_mask_shape(x: Tensor) -> tuple[int, ...]:
    return (*x.shape[:2], *(1,) * (x.dim() - 2))


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of ``(N, C, L)`` or ``(C, L)``."""
    _check(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 2:
        batched = input.unsqueeze(0)
        return _drop(batched, p, training, inplace, _feature_mask_shape(batched)).squeeze(0)
    return _drop(input, p, training, inplace, _feature_mask_shape(input))


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of ``(N, C, H, W)``."""
    return _drop(input, p, training, inplace, _feature_mask_shape(input))
