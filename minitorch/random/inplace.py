"""Filling a tensor with random values in place: ``Tensor.uniform_`` and its relatives.

``tensor.py`` takes these functions as methods (:data:`METHODS`). A strided destination is filled in
the order of its memory, as PyTorch does, so that the same seed gives the same values there too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.graph import TensorBase, wrap
from ..autograd.inplace import check_inplace, check_writable, requires_grad, write
from ..dtypes import type_word
from . import streams
from .generator import Generator, stream_of

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "METHODS",
    "bernoulli_",
    "cauchy_",
    "check_bounds",
    "exponential_",
    "fill",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
]

_C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int"}


def _need_floating(dtype: np.dtype, kernel: str) -> None:
    if dtype.kind not in "fV":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(dtype)}'")


def fill(x: Any, draw: Callable[[tuple[int, ...], bool], np.ndarray]) -> Any:
    """Write ``draw(shape, contiguous)`` into ``x``, in the order of its memory."""
    # Before anything is drawn: a refused write must not move the generator.
    check_inplace(x, requires_grad(x))
    array = x._array
    check_writable(array)
    if array.flags.c_contiguous:
        return write(x, wrap(draw(array.shape, True)))
    # Axes from the widest stride to the narrowest.
    axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    values = draw(tuple(array.shape[axis] for axis in axes), False)
    return write(x, wrap(values.transpose(np.argsort(axes))))


def uniform_(
    self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with values uniform in [a, b)."""
    dtype = self._array.dtype
    _need_floating(dtype, "check_uniform_bounds")
    if not a <= b:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}"
        )
    stream = stream_of(generator)
    return fill(self, lambda shape, _: streams.uniform(stream, shape, dtype, a, b))


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normally distributed values."""
    dtype = self._array.dtype
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    _need_floating(dtype, "normal_kernel_cpu")
    stream = stream_of(generator)
    return fill(self, lambda shape, dense: streams.normal(stream, shape, dtype, mean, std, dense))


def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with values whose logarithm is normally distributed."""
    dtype = self._array.dtype
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    _need_floating(dtype, "log_normal_cpu")
    stream = stream_of(generator)
    return fill(self, lambda shape, _: streams.log_normal(stream, shape, dtype, mean, std))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed values of rate ``lambd``."""
    dtype = self._array.dtype
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    if dtype.kind not in "fV":
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {type_word(dtype)}"
        )
    stream = stream_of(generator)
    return fill(self, lambda shape, _: streams.exponential(stream, shape, dtype, lambd))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials up to the first success, of probability ``p`` each."""
    dtype = self._array.dtype
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    stream = stream_of(generator)
    return fill(self, lambda shape, _: streams.geometric(stream, shape, dtype, p))


def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with Cauchy distributed values."""
    dtype = self._array.dtype
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    _need_floating(dtype, "cauchy_cpu")
    stream = stream_of(generator)
    return fill(self, lambda shape, _: streams.cauchy(stream, shape, dtype, median, sigma))


def bernoulli_(
    self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill with ones of probability ``p`` (a number, or a tensor of probabilities) and zeros."""
    dtype = self._array.dtype
    stream = stream_of(generator)
    if isinstance(p, TensorBase):
        table = np.broadcast_to(check_probabilities(p._array), self._array.shape)
        check_inplace(self, requires_grad(self))
        return write(self, wrap(streams.bernoulli(stream, table).astype(dtype)))
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return fill(self, lambda shape, _: streams.bernoulli_scalar(stream, shape, p).astype(dtype))


def check_probabilities(p: np.ndarray) -> np.ndarray:
    """``p`` itself, if it holds probabilities."""
    _need_floating(p.dtype, "bernoulli_tensor_cpu_p_")
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return p


def random_(
    self: Tensor,
    *bounds: int | None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with integers: ``random_()`` all the type holds, ``random_(to)``, ``random_(from, to)``.

    A floating tensor gets the integers that its type represents exactly. ``random_(from, None)``
    has no upper bound but the type's.
    """
    dtype = self._array.dtype
    stream = stream_of(generator)
    if not bounds:
        return fill(self, lambda shape, _: streams.integers_default(stream, shape, dtype))
    if len(bounds) > 2:
        raise TypeError(f"random_() takes at most 2 bounds, got {len(bounds)}")
    low, high = (0, *bounds)[-2:]
    if low is None:
        raise TypeError("random_(): argument 'from' must be int, not NoneType")
    if high is None:
        high = 2 ** (53 if dtype.itemsize == 8 else 24) + 1
        if dtype.kind in "iu":
            high = int(np.iinfo(dtype).max) + 1
    check_bounds(dtype, low, high)
    return fill(self, lambda shape, _: streams.integers(stream, shape, dtype, low, high))


def check_bounds(dtype: np.dtype, low: int, high: int) -> None:
    """Raise unless ``low < high`` and the type holds ``low`` and ``high - 1``."""
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.kind not in "biu":
        return
    limits = np.iinfo(dtype) if dtype.kind != "b" else None
    smallest, largest = (0, 1) if limits is None else (int(limits.min), int(limits.max))
    name = _C_NAMES.get(dtype.name, dtype.name)
    if not smallest <= low <= largest:
        raise RuntimeError(f"from is out of bounds for {name}")
    if not smallest <= high - 1 <= largest:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


#: The in-place methods of ``Tensor`` that live here.
METHODS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        bernoulli_,
        cauchy_,
        exponential_,
        geometric_,
        log_normal_,
        normal_,
        random_,
        uniform_,
    )
}
