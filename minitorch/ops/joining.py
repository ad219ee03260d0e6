"""Putting tensors together and taking them apart: cat, stack, split, unbind, narrow, pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.amp.autocast_mode import active as autocast
from minitorch.amp.autocast_mode import cast_inputs
from minitorch.autograd.graph import Node, record, record_many, wrap
from minitorch.autograd.inplace import alias_of
from minitorch.dtypes import result_type
from minitorch.ops import generic
from minitorch.ops.axes import axis
from minitorch.ops.casting import cast
from minitorch.ops.generic import linear_pair

# -- cat and stack -------------------------------------------------------------------------------


def cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """Join tensors along an existing dimension."""
    tensors = _same_types(tensors, "cat")
    # PyTorch skips tensors of shape (0,), whatever the others' rank.
    kept = [each for each in tensors if each._array.shape != (0,)]
    if not kept:
        kept = list(tensors[:1])
    ndim = kept[0]._array.ndim
    if ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    where = axis(dim, ndim)
    first = kept[0]._array.shape
    for number, each in enumerate(kept):
        _check_fit(first, each._array.shape, where, number)
    arrays = [each._array for each in kept]
    ends = np.cumsum([array.shape[where] for array in arrays]).tolist()
    spans = tuple(zip([0, *ends[:-1]], ends, strict=True))
    return record(np.concatenate(arrays, where), cat_backward, tuple(kept), (), (where, spans))


def _check_fit(first: tuple, other: tuple, where: int, number: int) -> None:
    if len(first) != len(other):
        raise RuntimeError(
            f"Tensors must have same number of dimensions: got {len(first)} and {len(other)}"
        )
    for i, (a, b) in enumerate(zip(first, other, strict=True)):
        if i != where and a != b:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {where}. Expected size {a} but "
                f"got size {b} for tensor number {number} in the list."
            )


def _same_types(tensors: Sequence[Any], what: str) -> list:
    tensors = list(tensors)
    if not tensors:
        if what == "cat":
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        raise RuntimeError("stack expects a non-empty TensorList")
    if autocast.dtype is not None:
        tensors = list(cast_inputs("widest", *tensors))
    if len({each._array.dtype for each in tensors}) > 1:
        dtype = result_type(*tensors).numpy
        tensors = [cast(each, dtype) for each in tensors]
    return tensors


def cat_backward(node: Node, grad: Any) -> tuple:
    where, spans = node.ctx
    lead = (slice(None),) * where
    return tuple(
        [
            grad[(*lead, slice(start, stop))] if needed is not None else None
            for needed, (start, stop) in zip(node._next, spans, strict=True)
        ]
    )


def stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """Join tensors of one shape along a new dimension."""
    tensors = _same_types(tensors, "stack")
    first = tensors[0]._array.shape
    where = axis(dim, len(first) + 1)
    for number, each in enumerate(tensors):
        if each._array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 "
                f"and {list(each._array.shape)} at entry {number}"
            )
    joined = np.stack([each._array for each in tensors], where)
    return record(joined, stack_backward, tuple(tensors), (), where)


def stack_backward(node: Node, grad: Any) -> tuple:
    lead = (slice(None),) * node.ctx
    return tuple(
        [
            grad[(*lead, number)] if needed is not None else None
            for number, needed in enumerate(node._next)
        ]
    )


concat = concatenate = cat


# -- split ---------------------------------------------------------------------------------------


def _pieces(input: Any, where: int, spans: Sequence[tuple[int, int]], name: str) -> tuple:
    x = input._array
    lead = (slice(None),) * where
    arrays = [x[(*lead, slice(start, stop))] for start, stop in spans]
    outs = record_many(arrays, split_backward, (input,), (), (where, x.shape, spans, x.dtype), name)
    for out, (start, stop) in zip(outs, spans, strict=True):
        alias_of(out, input, narrow, (where, start, stop - start), multi=True)
    return outs


def split_backward(node: Node, grads: tuple) -> tuple:
    where, whole, spans, dtype = node.ctx
    example = next(grad for grad in grads if grad is not None)
    parts = []
    for grad, (start, stop) in zip(grads, spans, strict=True):
        if grad is None:
            zero = np.zeros((*whole[:where], stop - start, *whole[where + 1 :]), dtype)
            grad = generic.like(zero, example)
        parts.append(grad)
    return (generic.concatenate(parts, where),)


def _refuse_zero_dim(what: str, input: Any) -> None:
    if not input._array.ndim:
        raise RuntimeError(f"{what} expects at least a 1-dimensional tensor")


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple:
    """Return views of pieces: of one size (the last may be smaller), or of given sizes."""
    _refuse_zero_dim("split", tensor)
    where = axis(dim, tensor._array.ndim)
    length = tensor._array.shape[where]
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        if step < 0 or (step == 0 and length):
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={step}"
            )
        starts = range(0, length, step) if length else range(1)
        spans = [(start, min(start + step, length)) for start in starts]
        return _pieces(tensor, where, spans, "SplitBackward0")
    sections = list(split_size_or_sections)
    if sum(sections) != length or min(sections, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size "
            f"at dimension {where}), but got split_sizes={sections}"
        )
    ends = np.cumsum(sections).tolist()
    return _pieces(
        tensor, where, list(zip([0, *ends[:-1]], ends, strict=True)), "SplitWithSizesBackward0"
    )


def split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple:
    """Return views of pieces of the given sizes."""
    return split(input, list(split_sizes), dim)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple:
    """Return views of `chunks` pieces of equal size (the last may be smaller or missing)."""
    _refuse_zero_dim("chunk", input)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = input._array.shape[axis(dim, input._array.ndim)]
    return split(input, max(-(-length // chunks), 1), dim)


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple:
    """Return views of pieces whose sizes differ by at most one, or cut at the given indices."""
    where = axis(dim, input._array.ndim)
    length = input._array.shape[where]
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        if n <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {n}")
        cuts = [length // n + (i < length % n) for i in range(n)]
    else:
        marks = [min(each, length) for each in indices_or_sections]
        cuts = [b - a for a, b in zip([0, *marks], [*marks, length], strict=True)]
    return split(input, cuts, dim)


def hsplit(input: Any, indices_or_sections: Any) -> tuple:
    """Return views of pieces along the second dimension (the first, of a vector)."""
    return _split_along("hsplit", input, indices_or_sections, 0 if input._array.ndim == 1 else 1, 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple:
    """Return views of pieces along the first dimension."""
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Any, indices_or_sections: Any) -> tuple:
    """Return views of pieces along the third dimension."""
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


def _split_along(what: str, input: Any, parts: Any, where: int, at_least: int) -> tuple:
    shape = input._array.shape
    if len(shape) < at_least:
        raise RuntimeError(
            f"torch.{what} requires a tensor with at least {at_least} dimension, but got a tensor "
            f"with {len(shape)} dimensions!"
        )
    if isinstance(parts, int) and (parts <= 0 or shape[where] % parts):
        raise RuntimeError(
            f"torch.{what} attempted to split along dimension {where}, but the size of the "
            f"dimension {shape[where]} is not divisible by the split_size {parts}!"
        )
    return tensor_split(input, parts, where)


def unbind(input: Any, dim: int = 0) -> tuple:
    """Return views of the slices along `dim`, without that dimension."""
    x = input._array
    if x.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    where = axis(dim, x.ndim)
    lead = (slice(None),) * where
    arrays = [x[(*lead, number, ...)] for number in range(x.shape[where])]
    outs = record_many(arrays, unbind_backward, (input,), (), (where, x.shape, x.dtype))
    for number, out in enumerate(outs):
        alias_of(out, input, select, (where, number), multi=True)
    return outs


def unbind_backward(node: Node, grads: tuple) -> tuple:
    where, whole, dtype = node.ctx
    example = next(grad for grad in grads if grad is not None)
    zero = np.zeros((*whole[:where], *whole[where + 1 :]), dtype)
    parts = [generic.like(zero, example) if grad is None else grad for grad in grads]
    if generic.is_tensor(example):
        return (stack(parts, where),)
    return (np.stack(parts, where),)


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Return a view of `length` slices from `start` along `dim`."""
    where = axis(dim, input._array.ndim)
    size = input._array.shape[where]
    begin = start + size if start < 0 else start
    if not 0 <= begin <= size or length < 0 or begin + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return input[(slice(None),) * where + (slice(begin, begin + length),)]


def select(input: Any, dim: int, index: int) -> Any:
    """Return a view of one slice along `dim`, without that dimension."""
    where = axis(dim, input._array.ndim)
    return input[(slice(None),) * where + (index,)]


# -- pad -----------------------------------------------------------------------------------------


def _pad_array(x: ndarray, ctx: tuple) -> ndarray:
    widths, inner = ctx
    return np.pad(x, widths)


def _unpad_array(x: ndarray, ctx: tuple) -> ndarray:
    return x[ctx[1]]


_pad, _unpad = linear_pair(_pad_array, _unpad_array, "ConstantPadNdBackward0", "SliceBackward0")


def pad_constant(input: Any, pad: Sequence[int], value: float = 0.0) -> Any:
    """Pad (or crop, where negative) from the last dimension backwards: (left, right, top, ...)."""
    x = input._array
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * x.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {x.ndim} dimensions."
        )
    before_after = [(0, 0)] * (x.ndim - len(pad) // 2)
    before_after += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    crop = tuple(
        [slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, before_after, strict=True)]
    )
    if any(min(pair) < 0 for pair in before_after):
        input = input[crop]
    widths = [(max(a, 0), max(b, 0)) for a, b in before_after]
    inner = tuple([slice(a, a + n) for n, (a, _) in zip(input._array.shape, widths, strict=True)])
    out = _pad(input, (widths, inner))
    if value == 0:
        return out
    # The margin is a constant: adding it leaves the gradient as it is.
    margin = np.full(out._array.shape, value, x.dtype)
    margin[inner] = 0
    return out + wrap(margin)
