"""Reading and writing elements by index tensors: gather, scatter, index_select, masks.

``take_elements`` and ``add_elements`` are each other's gradient; repeated indices add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import Node, TensorBase, record, wrap
from minitorch.dtypes import type_word
from minitorch.ops import generic
from minitorch.ops.axes import axis
from minitorch.ops.casting import cast
from minitorch.ops.generic import linear_pair
from minitorch.ops.precision import in_float32, is_short


def add_at(out: ndarray, flat_index: ndarray, values: ndarray) -> None:
    """Add `values` to contiguous ``out.reshape(-1)`` at `flat_index`, repeats included."""
    # One index array into a flat array is the case that NumPy runs as a plain loop.
    accumulate_at(out.reshape(-1), flat_index.reshape(-1), values.reshape(-1))


def accumulate_at(out: ndarray, key: Any, values: ndarray) -> None:
    """Add `values` at ``out[key]`` in place, repeats included; 16-bit floats sum in float32."""
    if not is_short(out.dtype):
        np.add.at(out, key, values)
        return
    wide = out.astype(np.float32)
    np.add.at(wide, key, values.astype(np.float32))
    out[...] = wide


def _full_index(shape: tuple[int, ...], where: int, index: ndarray) -> tuple:
    """Return the index tuple that addresses, along axis `where`, the elements `index` names."""
    grid: list[Any] = list(np.ogrid[tuple([slice(n) for n in index.shape])])
    grid[where] = index
    return tuple(grid)


def _check_range(index: ndarray, size: int, where: int) -> None:
    if index.size and (index.min() < 0 or index.max() >= size):
        bad = index[(index < 0) | (index >= size)].flat[0]
        raise RuntimeError(f"index {bad} is out of bounds for dimension {where} with size {size}")


def _take(x: ndarray, ctx: tuple) -> ndarray:
    shape, where, index = ctx
    return x[_full_index(shape, where, index)]


def _put(grad: ndarray, ctx: tuple) -> ndarray:
    shape, where, index = ctx
    out = np.zeros(shape, grad.dtype)
    accumulate_at(out, _full_index(shape, where, index), grad)
    return out


_gather, _scatter_zero = linear_pair(_take, _put, "GatherBackward0")


def take_elements(x: Any, where: int, index: ndarray, name: str = "GatherBackward0") -> Any:
    """Gather by a raw index array along a non-negative axis."""
    ctx = (x._array.shape, where, index)
    return record(_take(x._array, ctx), _gather.rule, (x,), (), ctx, name)


def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Return ``out[i][j] = input[index[i][j]][j]`` (for ``dim=0``)."""
    x, where_to = input._array, index._array
    where = axis(dim, x.ndim)
    if where_to.dtype.kind not in "iu" or where_to.dtype.itemsize < 4:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if where_to.ndim != x.ndim:
        if where_to.size == 0:
            return wrap(np.zeros(where_to.shape, x.dtype))
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for i, (n, limit) in enumerate(zip(where_to.shape, x.shape, strict=True)):
        if i != where and n > limit:
            raise RuntimeError(
                f"Size does not match at dimension {i} expected index {list(where_to.shape)} to be "
                f"no larger than self {list(x.shape)} apart from dimension {where}"
            )
    if x.ndim == 0:
        return input * 1
    _check_range(where_to, x.shape[where], where)
    return take_elements(input, where, where_to)


def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Like :func:`gather`, with broadcasting of all other dimensions."""
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    where = axis(dim, input._array.ndim)
    x_shape, i_shape = list(input._array.shape), list(indices._array.shape)
    x_shape[where] = i_shape[where] = 1
    common = list(np.broadcast_shapes(tuple(x_shape), tuple(i_shape)))
    common[where] = input._array.shape[where]
    source = input.expand(*common)
    common[where] = indices._array.shape[where]
    return gather(source, dim, wrap(np.broadcast_to(indices._array, common)))


def take(input: Any, index: Any) -> Any:
    """Return the elements that `index` names in the flattened `input`, in the shape of `index`."""
    if index._array.dtype != np.int64:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {type_word(index._array.dtype)}"
        )
    flat = input.reshape(-1)
    n, at = flat._array.size, index._array
    if at.size and (at.min() < -n or at.max() >= n):
        raise IndexError("out of range: tried to access an index beyond the tensor's elements")
    return take_elements(flat, 0, (at % max(n, 1)).reshape(-1)).reshape(at.shape)


# -- scatter -------------------------------------------------------------------------------------


def scatter(
    input: Any, dim: int, index: Any, src: Any = None, value: Any = None, *, reduce: Any = None
) -> Any:
    """Return `input` with ``out[index[i][j]][j] = src[i][j]`` (for ``dim=0``)."""
    if reduce == "add":
        return scatter_add(input, dim, index, src)
    if reduce is not None:
        raise RuntimeError(f"reduce argument must be 'add' or None, got {reduce}")
    if src is None:
        src = value
    where, at, part = _scatter_arguments("scatter", input, dim, index, src)
    x = input._array
    places = _full_index(x.shape, where, at)
    out = x.copy()
    if x.ndim:
        out[places] = part if not isinstance(part, TensorBase) else part._array[_corner(at)]
    else:
        out[...] = generic.raw(part)
    tensor = part if isinstance(part, TensorBase) else None
    return record(
        out,
        scatter_backward,
        (input, tensor),
        (),
        (x.shape, where, at, tensor is not None and tensor._array.shape),
    )


def scatter_backward(node: Node, grad: Any) -> tuple:
    shape, where, at, src_shape = node.ctx
    for_input = for_src = None
    if node._next[0] is not None:
        keep = np.ones(shape, generic.raw(grad).dtype)
        keep[_full_index(shape, where, at) if shape else ...] = 0
        for_input = grad * generic.like(keep, grad)
    if node._next[1] is not None:
        for_src = _pad_back(_gather(grad, (shape, where, at)) if shape else grad, src_shape)
    return for_input, for_src


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Return `input` with ``out[index[i][j]][j] += src[i][j]`` (for ``dim=0``)."""
    where, at, part = _scatter_arguments("scatter_add", input, dim, index, src)
    x = input._array
    if x.ndim == 0:
        return input + part
    out = x.copy()
    accumulate_at(out, _full_index(x.shape, where, at), part._array[_corner(at)])
    ctx = (x.shape, where, at, part._array.shape)
    return record(out, scatter_add_backward, (input, part), (), ctx)


def scatter_add_backward(node: Node, grad: Any) -> tuple:
    shape, where, at, src_shape = node.ctx
    return grad, _pad_back(_gather(grad, (shape, where, at)), src_shape)


def _corner(at: ndarray) -> tuple:
    return tuple([slice(n) for n in at.shape])


def _pad_back(part: Any, shape: tuple[int, ...]) -> Any:
    """Zero-pad the used corner of `src` to the whole."""
    return part if part.shape == shape else _embed(part, (shape, _corner(generic.raw(part))))


def _embed_array(part: ndarray, ctx: tuple) -> ndarray:
    shape, corner = ctx
    out = np.zeros(shape, part.dtype)
    out[corner] = part
    return out


def _crop_array(whole: ndarray, ctx: tuple) -> ndarray:
    return whole[ctx[1]]


_embed, _crop = linear_pair(_embed_array, _crop_array, "SliceBackward0")


def _scatter_arguments(what: str, input: Any, dim: int, index: Any, src: Any) -> tuple:
    x, at = input._array, index._array
    where = axis(dim, x.ndim)
    if at.dtype != np.int64:
        raise RuntimeError(f"{what}(): Expected dtype int64 for index")
    if at.size and max(at.ndim, 1) != max(x.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    for i, (n, limit) in enumerate(zip(at.shape, x.shape, strict=False)):
        if at.size and i != where and n > limit:
            raise RuntimeError(
                f"Expected index {list(at.shape)} to be no larger than self {list(x.shape)} apart "
                f"from dimension {where}"
            )
    if isinstance(src, TensorBase):
        if src._array.dtype != x.dtype:
            raise RuntimeError(f"{what}(): Expected self.dtype to be equal to src.dtype")
        if at.size and max(src._array.ndim, 1) != max(at.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        for i, (n, limit) in enumerate(zip(at.shape, src._array.shape, strict=False)):
            if n > limit:
                raise RuntimeError(
                    f"Expected index {list(at.shape)} to be no larger than src "
                    f"{list(src._array.shape)} in dimension {i}"
                )
    if x.ndim:
        _check_range(at, x.shape[where], where)
    return where, at, src


# -- along one dimension -------------------------------------------------------------------------


def _select(x: ndarray, ctx: tuple) -> ndarray:
    shape, where, index = ctx
    return np.take(x, index, axis=where)


def _select_back(grad: ndarray, ctx: tuple) -> ndarray:
    shape, where, index = ctx
    out = np.zeros(shape, grad.dtype)
    accumulate_at(out, (slice(None),) * where + (index,), grad)
    return out


_index_select, _index_sum = linear_pair(_select, _select_back, "IndexSelectBackward0")


def index_select(input: Any, dim: int, index: Any) -> Any:
    """Return the slices of `input` along `dim` that the 1-d `index` names."""
    at = index._array
    if at.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if at.dtype.kind not in "iu":
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    x = input._array
    where = axis(dim, x.ndim)
    if x.ndim == 0:
        return input * 1
    if at.size and (at.min() < 0 or at.max() >= x.shape[where]):
        raise IndexError("index out of range in self")
    return _index_select(input, (x.shape, where, at.reshape(-1)))


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Return `input` with the slices of `source` added at `index` along `dim`."""
    x, at = input._array, index._array.reshape(-1)
    where = axis(dim, x.ndim)
    if source._array.dtype != x.dtype:
        raise RuntimeError(
            "index_add_(): self and source expected to have the same dtype, but got (self) "
            f"{type_word(x.dtype)} and (source) {type_word(source._array.dtype)}"
        )
    given = source._array.shape[where] if source._array.ndim > where else 1
    if given != at.size:
        raise RuntimeError(
            f"index_add_(): Number of indices ({at.size}) should be equal to source.size(dim): "
            f"({given}), for dim: {where}"
        )
    if x.ndim and (
        source._array.shape[:where] != x.shape[:where]
        or source._array.shape[where + 1 :] != x.shape[where + 1 :]
    ):
        raise RuntimeError(
            f"source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(x.shape)} source.shape = {list(source._array.shape)}"
        )
    if x.ndim and at.size and (at.min() < 0 or at.max() >= x.shape[where]):
        raise IndexError("index out of range in self")
    return in_float32(_index_add, input, source, (x.shape, where, at), alpha)


def _index_add(input: Any, source: Any, ctx: tuple, alpha: Any) -> Any:
    return input + _index_sum(source if alpha == 1 else source * alpha, ctx)


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Return `input` with `value` in the slices that `index` names."""
    mask = np.zeros(input._array.shape, bool)
    mask[(slice(None),) * axis(dim, mask.ndim) + (index._array,)] = True
    return masked_fill(input, wrap(mask), value)


# -- masks ---------------------------------------------------------------------------------------


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Return `input` with `value` (a number or 0-d tensor) where `mask` holds."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{type_word(mask._array.dtype).lower()}"
        )
    x = input._array
    tensor = value if isinstance(value, TensorBase) else None
    if tensor is not None and tensor._array.ndim:
        raise RuntimeError(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
            f"{tensor._array.ndim} dimension(s)."
        )
    if tensor is not None:
        tensor = cast(tensor, x.dtype)
    chosen = mask._array
    filling = x.dtype.type(value) if tensor is None else tensor._array
    out = np.where(chosen, filling, x)
    return record(out, masked_fill_backward, (input, tensor), (), (chosen, x.shape))


def masked_fill_backward(node: Node, grad: Any) -> tuple:
    chosen, shape = node.ctx
    for_value = None
    if node._next[1] is not None:
        for_value = generic.total(generic.keep(grad, chosen))
    return generic.sum_to(generic.keep(grad, ~chosen), shape), for_value


def masked_select(input: Any, mask: Any) -> Any:
    """Return the elements where `mask` holds, as a 1-d tensor."""
    if mask._array.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(input._array.shape, mask._array.shape)
    source = input if input._array.shape == shape else input.expand(*shape)
    return source[wrap(np.broadcast_to(mask._array, shape))]


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Return the indices of nonzero elements: (count, ndim), or one tensor per dimension."""
    x = input._array
    if as_tuple:
        return tuple([wrap(each) for each in np.nonzero(x if x.ndim else x.reshape(1))])
    return wrap(np.argwhere(x))


argwhere = nonzero
