"""The arguments that all random factories share: sizes, ``out``, ``dtype``, ``device``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..autograd.graph import wrap
from ..device import as_device
from ..dtypes import as_dtype, type_word

__all__ = ["finish", "new_like", "new_or_out", "shape_of"]


def shape_of(name: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    """``(2, 3)``, ``((2, 3),)`` and ``([2, 3],)`` as a checked shape."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    elif not size:
        raise TypeError(f"{name}() received an invalid combination of arguments: size is missing")
    lengths = []
    for place, length in enumerate(size, 1):
        try:
            lengths.append(operator.index(length))
        except TypeError:
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {place} with error "
                f'"type must be tuple of ints,but got {type(length).__name__}"'
            ) from None
    if any(length < 0 for length in lengths):
        negative = next(length for length in lengths if length < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {lengths}")
    return tuple(lengths)


def _check_device(device: Any, layout: Any = None) -> None:
    as_device(device)
    if layout is not None and "strided" not in str(layout):
        raise RuntimeError(f"layout {layout!r} is not supported: tensors are strided")


def new_or_out(
    shape: tuple[int, ...],
    dtype: Any,
    default: Any,
    out: Any,
    device: Any,
    layout: Any,
    requires_grad: bool = False,
) -> Any:
    """The tensor to fill: a new one, or ``out`` in the wanted shape."""
    _check_device(device, layout)
    if out is None:
        kind = as_dtype(dtype or default)
        _check_requires_grad(requires_grad, kind)
        return wrap(np.empty(shape, dtype=kind.numpy))
    if dtype is not None and as_dtype(dtype).numpy != out._array.dtype:
        raise RuntimeError(
            f"dtype {type_word(as_dtype(dtype).numpy)} does not match dtype of out parameter "
            f"({type_word(out._array.dtype)})"
        )
    if out._array.shape != shape:
        out._array = np.empty(shape, dtype=out._array.dtype)
    return out


def _check_requires_grad(requires_grad: bool, kind: Any) -> None:
    # Before drawing: a refused call must not move the generator.
    if requires_grad and not kind.is_floating_point:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")


def finish(tensor: Any, requires_grad: bool) -> Any:
    """The filled tensor, ready to be handed out."""
    return tensor.requires_grad_() if requires_grad else tensor


def new_like(input: Any, dtype: Any, device: Any, layout: Any, requires_grad: bool = False) -> Any:
    """An unfilled tensor with the shape and layout of ``input``."""
    _check_device(device, layout)
    kind = input.dtype if dtype is None else as_dtype(dtype)
    _check_requires_grad(requires_grad, kind)
    return wrap(np.empty_like(input._array, dtype=kind.numpy))
