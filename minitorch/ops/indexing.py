"""``x[index]`` and ``x[index] = value``.

Integers, slices, ``None`` and ``...`` give views. Index tensors, lists and masks give copies; their
gradient adds up where an element was chosen more than once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import Node, TensorBase, bump_version, mode, record, wrap
from minitorch.autograd.inplace import check_writable, record_view, requires_grad, write
from minitorch.autograd.overlap import refuse_overlap, refuse_repeats
from minitorch.dtypes import type_word
from minitorch.ops import generic
from minitorch.ops.casting import cast, convert
from minitorch.ops.gathering import add_at
from minitorch.ops.generic import linear_pair
from minitorch.ops.precision import in_float32


def _read(index: Any) -> tuple[tuple, bool]:
    """Return the index as NumPy understands it, and whether it is advanced (makes a copy)."""
    entries = index if index.__class__ is tuple else (index,)
    result: list[Any] = []
    advanced = False
    for entry in entries:
        kind = entry.__class__
        if kind is int or entry is None or entry is Ellipsis:
            pass
        elif kind is slice:
            entry = _read_slice(entry)
        elif isinstance(entry, (bool, np.bool_)):
            entry, advanced = np.asarray(entry), True
        elif isinstance(entry, TensorBase):
            array = entry._array
            if array.dtype.kind not in "iub":
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
            if array.ndim == 0 and array.dtype.kind in "iu":
                entry = int(array)
            else:
                # A byte tensor is a mask, as in PyTorch.
                entry = array.astype(bool) if array.dtype == np.uint8 else array
                advanced = True
        elif isinstance(entry, (list, tuple, range, ndarray)):
            entry, advanced = _read_list(entry), True
        elif hasattr(entry, "__index__"):
            entry = entry.__index__()
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                f"are valid indices (got {kind.__name__})"
            )
        result.append(entry)
    return tuple(result), advanced


def _read_slice(entry: slice) -> slice:
    bounds = [
        each if each is None else each.__index__() for each in (entry.start, entry.stop, entry.step)
    ]
    if bounds[2] is not None and bounds[2] <= 0:
        raise ValueError("step must be greater than zero")
    return slice(*bounds)


def _read_list(entry: Any) -> ndarray:
    array = np.asarray([generic.raw(each) for each in entry] if isinstance(entry, list) else entry)
    return array.astype(np.int64) if array.size == 0 else array


def _index_error(error: Exception, ndim: int) -> IndexError:
    text = str(error)
    if text.startswith("boolean index did not match"):
        return IndexError(
            "The shape of the mask does not match the shape of the indexed tensor: "
            + text.removeprefix("boolean index did not match indexed array along ").replace(
                "dimension", "at dimension", 1
            )
        )
    if "too many indices" in text:
        return IndexError(f"too many indices for tensor of dimension {ndim}")
    return IndexError(text.replace("axis", "dimension"))


# -- reading -------------------------------------------------------------------------------------


def getitem(input: Any, index: Any) -> Any:
    """Return ``input[index]``: a view for basic indices, a copy for advanced ones."""
    x = input._array
    key, advanced = _read(index)
    if x.ndim == 0 and any(entry.__class__ is int for entry in key):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` "
            "in C++ to convert a 0-dim tensor to a number"
        )
    try:
        if not advanced:
            # The ellipsis makes NumPy return an array, not a scalar, for a full index.
            out = x[key if Ellipsis in key else (*key, ...)]
            rule = select_backward if key and key[0].__class__ is int else slice_backward
            return record_view(out, rule, input, (x.shape, key), getitem, (key,))
        out = x[key]
    except IndexError as error:
        raise _index_error(error, x.ndim) from None
    return record(out, index_backward, (input,), (), (x.shape, key))


def _place_array(grad: ndarray, ctx: tuple) -> ndarray:
    shape, key = ctx
    out = np.zeros(shape, grad.dtype)
    out[key] = grad
    return out


def _cut_array(x: ndarray, ctx: tuple) -> ndarray:
    return x[ctx[1]]


_place, _cut = linear_pair(_place_array, _cut_array, "SliceBackward0")


def slice_backward(node: Node, grad: Any) -> tuple:
    return (_place(grad, node.ctx),)


def select_backward(node: Node, grad: Any) -> tuple:
    return (_place(grad, node.ctx),)


def _scatter_array(grad: ndarray, ctx: tuple) -> ndarray:
    shape, key = ctx
    out = np.zeros(shape, grad.dtype)
    if all(entry.__class__ is not ndarray or entry.dtype.kind == "b" for entry in key):
        out[key] = grad  # a mask chooses no element twice
    else:
        where = np.arange(out.size).reshape(shape)[key]
        add_at(out, where, np.broadcast_to(grad, where.shape))
    return out


_scatter, _choose = linear_pair(_scatter_array, _cut_array, "IndexPutBackward0", "IndexBackward0")


def index_backward(node: Node, grad: Any) -> tuple:
    return (_scatter(grad, node.ctx),)


# -- writing -------------------------------------------------------------------------------------


def setitem(input: Any, index: Any, value: Any) -> None:
    """Write ``input[index] = value`` in place, with history."""
    x = input._array
    key, advanced = _read(index)
    recorded = mode.grad_enabled and (
        requires_grad(input) or (isinstance(value, TensorBase) and requires_grad(value))
    )
    array = generic.raw(value)
    _check_overlap(x, key, array if isinstance(value, TensorBase) else None, advanced)
    if recorded and not advanced:
        target = getitem(input, index)
        write(target, _fit_value(value, target._array, x.dtype))
        return
    if recorded:
        write(input, index_put(input, key, value))
        return
    check_writable(x, repeats=True)
    if isinstance(array, (list, tuple, str)) or array is None:
        raise TypeError(
            f"can't assign a {type(value).__name__} to a torch.{type_word(x.dtype)}Tensor"
        )
    if isinstance(array, ndarray) and array.dtype != x.dtype:
        array = convert(array, x.dtype)
    try:
        x[key] = array
    except IndexError as error:
        raise _index_error(error, x.ndim) from None
    except ValueError:
        raise _value_mismatch(np.shape(array), x[key].shape, advanced) from None
    bump_version(input)


def _check_overlap(x: ndarray, key: tuple, value: ndarray | None, advanced: bool) -> None:
    if advanced:
        if value is not None and value.ndim:
            refuse_overlap(x, value, same_allowed=False)
        return
    if 0 not in x.strides and (value is None or not value.ndim):
        return
    try:
        target = x[key if Ellipsis in key else (*key, ...)]
    except IndexError as error:
        raise _index_error(error, x.ndim) from None
    refuse_repeats(target)
    if value is not None and value.ndim:
        refuse_overlap(target, value)


def _value_mismatch(have: tuple, want: tuple, advanced: bool) -> RuntimeError:
    if advanced:
        return RuntimeError(
            f"shape mismatch: value tensor of shape {list(have)} cannot be broadcast to indexing "
            f"result of shape {list(want)}"
        )
    for back in range(1, len(have) + 1):
        size = want[-back] if back <= len(want) else 1
        if have[-back] not in (1, size):
            return RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size "
                f"({have[-back]}) at non-singleton dimension {len(want) - back}.  Target sizes: "
                f"{list(want)}.  Tensor sizes: {list(have)}"
            )
    return RuntimeError(f"cannot assign a value of shape {list(have)} to shape {list(want)}")


def _fit_value(value: Any, target: ndarray, dtype: np.dtype) -> Any:
    """Return `value` as a tensor of the target's shape and type."""
    if not isinstance(value, TensorBase):
        return wrap(np.broadcast_to(np.asarray(value).astype(dtype), target.shape))
    value = cast(value, dtype)
    have = value._array.shape
    extra = len(have) - target.ndim
    if extra > 0 and all(n == 1 for n in have[:extra]):
        value = value.reshape(have[extra:])
    if value._array.shape == target.shape:
        return value
    try:
        return value.expand(*target.shape)
    except RuntimeError:
        raise _value_mismatch(have, target.shape, False) from None


def index_put(input: Any, key: tuple, value: Any, accumulate: bool = False) -> Any:
    """Return `input` with the elements that `key` chooses replaced by `value` (or increased)."""
    x = input._array
    key, _ = _read(tuple(key))
    try:
        chosen = x[key]
    except IndexError as error:
        raise _index_error(error, x.ndim) from None
    if (
        isinstance(value, TensorBase)
        and np.broadcast_shapes(value._array.shape, chosen.shape) != chosen.shape
        and value._array.size != chosen.size
    ):
        raise _value_mismatch(value._array.shape, chosen.shape, True)
    part = _fit_value(value, np.asarray(chosen), x.dtype)
    if accumulate:
        return in_float32(lambda into, what: into + _scatter(what, (x.shape, key)), input, part)
    out = x.copy()
    out[key] = part._array
    return record(out, index_put_backward, (input, part), (), (x.shape, key))


def index_put_backward(node: Node, grad: Any) -> tuple:
    shape, key = node.ctx
    for_input = for_value = None
    if node._next[0] is not None:
        keep = np.ones(shape, generic.raw(grad).dtype)
        keep[key] = 0
        for_input = grad * generic.like(keep, grad)
    if node._next[1] is not None:
        for_value = _choose(grad, node.ctx)
    return for_input, for_value
