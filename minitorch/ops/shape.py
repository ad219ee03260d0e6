"""Looking at the same elements in another shape: views where memory allows, else copies.

A view shares memory, version and history with its base (``autograd/inplace.py``); each of these
ops tells ``record_view`` how to make the same view of another tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minitorch.autograd.graph import Node, record
from minitorch.autograd.inplace import record_view
from minitorch.dtypes import type_word
from minitorch.ops import generic
from minitorch.ops.axes import axes, axis, sizes_or
from minitorch.ops.generic import sum_to

# -- reshape -------------------------------------------------------------------------------------


def _resolve(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Fill in a -1, and check that `shape` has `count` elements."""
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(n < -1 for n in shape):
        raise RuntimeError(f"invalid shape dimension {min(shape)}")
    if unknown:
        known = math.prod([n for n in shape if n != -1])
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
        if count % known == 0:
            i = unknown[0]
            return (*shape[:i], count // known, *shape[i + 1 :])
    if unknown or math.prod(shape) != count:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
    return shape


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """Return the elements in another shape; one size may be -1. A view if possible."""
    x = input._array
    new = _resolve(sizes_or(sizes, shape, "shape"), x.size)
    if x.flags.c_contiguous:
        return record_view(x.reshape(new), view_backward, input, x.shape, reshape, (new,))
    try:
        out = np.reshape(x, new, copy=False)
    except ValueError:
        return record(x.reshape(new), unsafe_view_backward, (input,), (), x.shape)
    return record_view(out, view_backward, input, x.shape, reshape, (new,))


def view_backward(node: Node, grad: Any) -> tuple:
    return (grad.reshape(node.ctx),)


def unsafe_view_backward(node: Node, grad: Any) -> tuple:
    return (grad.reshape(node.ctx),)


def view(input: Any, *shape: Any, size: Any = None) -> Any:
    """Return a view in another shape.

    Raises
    ------
    RuntimeError
        If the memory layout does not allow it; ``reshape`` copies then.
    """
    if len(shape) == 1 and hasattr(shape[0], "is_floating_point"):
        return _view_as_type(input, shape[0])
    x = input._array
    new = _resolve(sizes_or(shape, size, "size"), x.size)
    try:
        out = np.reshape(x, new, copy=False)
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        ) from None
    return record_view(out, view_backward, input, x.shape, view, (new,))


def _view_as_type(input: Any, dtype: Any) -> Any:
    from minitorch.autograd.inplace import detached

    if input._requires_grad and dtype.is_floating_point:
        raise RuntimeError("view(dtype) of a tensor that requires grad is not differentiable")
    ratio = dtype.itemsize // input._array.itemsize
    if ratio > 1 and (not input._array.ndim or input._array.shape[-1] % ratio):
        raise RuntimeError(
            f"self.size(-1) must be divisible by {ratio} to view {type_word(input._array.dtype)} "
            f"as {type_word(dtype.numpy)} (different element sizes), but got "
            f"{input._array.shape[-1] if input._array.ndim else 1}"
        )
    out = detached(input)
    out._array = input._array.view(dtype.numpy)
    return out


def view_as(input: Any, other: Any) -> Any:
    """Return a view in the shape of `other`."""
    return view(input, other._array.shape)


def reshape_as(input: Any, other: Any) -> Any:
    """Return the elements in the shape of `other`."""
    return reshape(input, other._array.shape)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Return `input` with the dimensions from `start_dim` to `end_dim` merged into one."""
    shape = input._array.shape
    if not shape:
        return reshape(input, 1)
    first, last = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Return `input` with dimension `dim` split into `sizes`."""
    shape = input._array.shape
    where = axis(dim, len(shape))
    try:
        inner = _resolve(tuple(sizes), shape[where])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {where} "
            f"({shape[where]}) in the input tensor"
        ) from None
    return view(input, (*shape[:where], *inner, *shape[where + 1 :]))


def ravel(input: Any) -> Any:
    """Return the elements as one dimension."""
    return reshape(input, -1)


# -- axes of length one --------------------------------------------------------------------------


def squeeze(input: Any, dim: Any = None) -> Any:
    """Return a view without the axes of length 1 (all of them, or those in `dim`)."""
    x = input._array
    over = axes(dim, x.ndim) if dim is not None and x.ndim else tuple(range(x.ndim))
    if dim is not None and not isinstance(dim, int) and not tuple(dim):
        over = ()
    new = tuple([n for i, n in enumerate(x.shape) if n != 1 or i not in over])
    if isinstance(dim, int):
        axis(dim, x.ndim)
    out = (
        x.reshape(new)
        if x.flags.c_contiguous
        else x.squeeze(tuple([i for i in over if x.shape[i] == 1]))
    )
    args = () if dim is None else (dim,)
    return record_view(out, squeeze_backward, input, x.shape, squeeze, args)


def squeeze_backward(node: Node, grad: Any) -> tuple:
    return (grad.reshape(node.ctx),)


def unsqueeze(input: Any, dim: int) -> Any:
    """Return a view with an axis of length 1 inserted at `dim`."""
    x = input._array
    where = axis(dim, x.ndim + 1)
    out = np.expand_dims(x, where)
    return record_view(out, unsqueeze_backward, input, x.shape, unsqueeze, (where,))


def unsqueeze_backward(node: Node, grad: Any) -> tuple:
    return (grad.reshape(node.ctx),)


# -- order of axes -------------------------------------------------------------------------------


def permute(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Return a view with the axes in the given order."""
    x = input._array
    order = sizes_or(axes, dims, "dims")
    if len(order) != x.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {x.ndim} is not "
            f"equal to len(dims) = {len(order)}"
        )
    order = tuple([axis(each, x.ndim) for each in order])
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    inverse = tuple([order.index(i) for i in range(len(order))])
    return record_view(x.transpose(order), permute_backward, input, inverse, permute, (order,))


def permute_backward(node: Node, grad: Any) -> tuple:
    return (generic.permute(grad, node.ctx),)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Return a view with two axes swapped."""
    x = input._array
    a, b = axis(dim0, x.ndim), axis(dim1, x.ndim)
    out = x.swapaxes(a, b) if x.ndim else x.view()
    return record_view(out, transpose_backward, input, (a, b), transpose, (a, b))


def transpose_backward(node: Node, grad: Any) -> tuple:
    a, b = node.ctx
    if generic.is_tensor(grad):
        return (grad.transpose(a, b),)
    return (grad.swapaxes(a, b) if grad.ndim else grad,)


def t(input: Any) -> Any:
    """Return the transpose of a matrix (a vector stays as it is)."""
    x = input._array
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return record_view(x.T, t_backward, input, None, t, ())


def t_backward(node: Node, grad: Any) -> tuple:
    return (grad.T,)


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Return a view with the axes at `source` moved to `destination`."""
    ndim = input._array.ndim
    old = [axis(each, ndim) for each in ((source,) if isinstance(source, int) else source)]
    new = [
        axis(each, ndim)
        for each in ((destination,) if isinstance(destination, int) else destination)
    ]
    if len(old) != len(new):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({old} dims) should contain the same number of dims as destination ({new} dims)"
        )
    rest = iter([i for i in range(ndim) if i not in old])
    order = [old[new.index(i)] if i in new else next(rest) for i in range(ndim)]
    return permute(input, order)


swapaxes = swapdims = transpose
moveaxis = movedim


# -- expand --------------------------------------------------------------------------------------


def expand(input: Any, *shape: Any, size: Any = None) -> Any:
    """Return a view with axes of length 1 repeated without copying; -1 keeps a length."""
    x = input._array
    wanted = sizes_or(shape, size, "size")
    extra = len(wanted) - x.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(x.shape)}}}, size={list(wanted)}): the number of "
            f"sizes provided ({len(wanted)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({x.ndim})"
        )
    new = list(wanted)
    for i, n in enumerate(wanted):
        have = x.shape[i - extra] if i >= extra else 1
        if n == -1:
            if i < extra:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
            new[i] = have
        elif n != have and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at "
                f"non-singleton dimension {i}.  Target sizes: {list(wanted)}.  Tensor sizes: "
                f"{list(x.shape)}"
            )
    final = tuple(new)
    # Not np.broadcast_to, whose result is read-only: what an in-place op may not write to, it
    # finds out by itself, and filling is allowed.
    strides = [0] * extra + [
        step if n == have else 0
        for step, have, n in zip(x.strides, x.shape, new[extra:], strict=True)
    ]
    out = as_strided(x, final, strides, writeable=x.flags.writeable)
    return record_view(out, expand_backward, input, x.shape, expand, (final,))


def expand_backward(node: Node, grad: Any) -> tuple:
    return (sum_to(grad, node.ctx),)


def expand_as(input: Any, other: Any) -> Any:
    """Return a view expanded to the shape of `other`."""
    return expand(input, other._array.shape)


def broadcast_to(input: Any, shape: Sequence[int]) -> Any:
    """Return a view broadcast to `shape`."""
    return expand(input, shape)


def broadcast_tensors(*tensors: Any) -> tuple:
    """Return views of the tensors, broadcast to their common shape."""
    shape = np.broadcast_shapes(*[each._array.shape for each in tensors])
    return tuple([expand(each, shape) for each in tensors])


def broadcast_shapes(*shapes: Any) -> tuple:
    """Return the shape that tensors of these shapes (tuples or ints) broadcast to."""
    from minitorch.tensor import Size

    plain = [(shape,) if hasattr(shape, "__index__") else tuple(shape) for shape in shapes]
    try:
        return Size(np.broadcast_shapes(*plain))
    except ValueError:
        raise RuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape: "
            + " and ".join(str(list(shape)) for shape in plain)
        ) from None


# -- copies --------------------------------------------------------------------------------------


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Return a copy, recorded."""
    x = input._array
    # The layout is kept if it has no holes or repeats.
    out = x.copy(order="K") if 0 not in x.strides else np.ascontiguousarray(x).copy()
    return record(out, clone_backward, (input,))


def clone_backward(node: Node, grad: Any) -> tuple:
    return (grad,)


def contiguous(input: Any, *, memory_format: Any = None) -> Any:
    """Return the tensor itself if its memory is in row-major order, else a copy that is."""
    x = input._array
    if x.flags.c_contiguous:
        return input
    return record(np.ascontiguousarray(x), clone_backward, (input,))
