"""In-place versions: ``x.add_(y)`` and its relatives.

With recording on, ``x.op_(...)`` is ``write(x, op(x, ...))``: the result is computed by the
ordinary op, copied into x's memory, and its history becomes x's. Without recording the four
arithmetic operations work directly in x's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, TensorBase, bump_version, mode, record, wrap
from minitorch.autograd.inplace import check_inplace, requires_grad, write
from minitorch.dtypes import can_cast, from_numpy_dtype, type_word
from minitorch.ops import (
    arithmetic,
    division,
    gathering,
    generic,
    indexing,
    pointwise,
    powers,
    rearranging,
    rounding,
    selection,
    trigonometry,
)
from minitorch.ops.casting import cast, convert


def store(x: Any, result: Any) -> Any:
    """Write an op's result into `x`; it may widen neither category nor shape."""
    have, got = x._array, result._array
    if have.dtype is not got.dtype:
        source, target = from_numpy_dtype(got.dtype), from_numpy_dtype(have.dtype)
        if not can_cast(source, target):
            raise RuntimeError(
                f"result type {type_word(got.dtype)} can't be cast to the desired output type "
                f"{type_word(have.dtype)}"
            )
        result = cast(result, have.dtype)
    if have.shape != got.shape:
        raise RuntimeError(
            f"output with shape {list(have.shape)} doesn't match the broadcast shape "
            f"{list(got.shape)}"
        )
    return write(x, result)


def in_place(op: Callable) -> Callable:
    """Return the in-place version of an op.

    An op that saved `x` for its gradient gets a copy, as in PyTorch; unless `x` is an operand once
    more (``x.mul_(x)``), which raises in backward.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_inplace(self, requires_grad(self))
        result = op(self, *args, **kwargs)
        if result._node is not None and all(arg is not self for arg in args):
            _keep_old_values(result._node, self)
        return store(self, result)

    method.__name__ = method.__qualname__ = f"{op.__name__}_"
    method.__doc__ = f"In-place version of ``{op.__name__}``."
    return method


def _keep_old_values(node: Node, x: Any) -> None:
    """Let the node save a copy of `x`, which is about to be overwritten."""
    saved = node._saved or ()
    if all(item is not x for item in saved):
        return
    old = wrap(x._array.copy())
    old._node, old._output_nr, old._requires_grad = x._node, x._output_nr, x._requires_grad
    node._saved = tuple([old if item is x else item for item in saved])


def _arithmetic(op: Callable, ufunc: Callable) -> Callable:
    recorded_version = in_place(op)

    def method(self: Any, other: Any, **kwargs: Any) -> Any:
        x = self._array
        if not kwargs and x.dtype.kind == "f" and x.flags.writeable:
            if isinstance(other, TensorBase):
                y, quiet = other._array, not mode.grad_enabled or not requires_grad(other)
                quiet = quiet and y.dtype is x.dtype and (y.shape == x.shape or y.ndim == 0)
            else:
                y, quiet = other, other.__class__ is float or other.__class__ is int
            if quiet and not (mode.grad_enabled and requires_grad(self)):
                check_inplace(self, False)
                ufunc(x, y, out=x)
                bump_version(self)
                return self
        return recorded_version(self, other, **kwargs)

    method.__name__ = method.__qualname__ = f"{op.__name__}_"
    method.__doc__ = f"In-place version of ``{op.__name__}``."
    return method


add_ = _arithmetic(arithmetic.add, np.add)
sub_ = _arithmetic(arithmetic.sub, np.subtract)
mul_ = _arithmetic(arithmetic.mul, np.multiply)
div_ = _arithmetic(division.div, np.divide)
pow_ = in_place(powers.pow)
floor_divide_ = in_place(division.floor_divide)
remainder_ = in_place(division.remainder)
fmod_ = in_place(division.fmod)
lerp_ = in_place(arithmetic.lerp)
addcmul_ = in_place(arithmetic.addcmul)
addcdiv_ = in_place(division.addcdiv)
neg_ = in_place(arithmetic.neg)
reciprocal_ = in_place(division.reciprocal)
square_ = in_place(powers.square)
exp_ = in_place(pointwise.exp)
log_ = in_place(pointwise.log)
sqrt_ = in_place(pointwise.sqrt)
rsqrt_ = in_place(pointwise.rsqrt)
sin_ = in_place(trigonometry.sin)
cos_ = in_place(trigonometry.cos)
tanh_ = in_place(pointwise.tanh)
sigmoid_ = in_place(pointwise.sigmoid)
relu_ = in_place(pointwise.relu)
abs_ = in_place(rounding.abs)
sign_ = in_place(rounding.sign)
floor_ = in_place(rounding.floor)
ceil_ = in_place(rounding.ceil)
round_ = in_place(rounding.round)
trunc_ = in_place(rounding.trunc)
erf_ = in_place(pointwise.erf)
nan_to_num_ = in_place(rounding.nan_to_num)
clamp_ = clip_ = in_place(selection.clamp)
clamp_min_ = in_place(selection.clamp_min)
clamp_max_ = in_place(selection.clamp_max)
masked_fill_ = in_place(gathering.masked_fill)
scatter_ = in_place(gathering.scatter)
scatter_add_ = in_place(gathering.scatter_add)
index_add_ = in_place(gathering.index_add)
index_fill_ = in_place(gathering.index_fill)
tril_ = in_place(rearranging.tril)
triu_ = in_place(rearranging.triu)


def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write the values of `src`, broadcast and converted, into this tensor."""
    if not isinstance(src, TensorBase):
        raise TypeError(f"copy_(): argument 'other' must be Tensor, not {type(src).__name__}")
    if not mode.grad_enabled or not (requires_grad(self) or requires_grad(src)):
        source = src._array
        if source.dtype != self._array.dtype:
            source = convert(source, self._array.dtype)
        check_inplace(self, False)
        try:
            self._array[...] = source
        except ValueError as error:
            raise arithmetic.broadcast_error(self._array, source, error) from None
        bump_version(self)
        return self
    value = indexing._fit_value(src, self._array, self._array.dtype)
    return write(
        self, record(value._array, copy_backwards, (self, value), (), None, "CopyBackwards")
    )


def copy_backwards(node: Node, grad: Any) -> tuple:
    """All of the gradient goes to the source, zero to what was overwritten."""
    return generic.zeros_like(grad), grad


def fill_(self: Any, value: Any) -> Any:
    """Write `value` (a number or 0-d tensor) everywhere."""
    if isinstance(value, TensorBase):
        if value._array.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value._array.ndim} dimensions."
            )
        return copy_(self, value)
    filled = np.empty_like(self._array)
    filled.fill(value)
    return write(self, record(filled, rounding.step_backward, (self,), (), None, "FillBackward0"))


def zero_(self: Any) -> Any:
    """Write zero everywhere."""
    if not (mode.grad_enabled and requires_grad(self)) and self._array.flags.writeable:
        check_inplace(self, False)
        self._array.fill(0)
        bump_version(self)
        return self
    return fill_(self, 0)


def index_put_(self: Any, indices: tuple, values: Any, accumulate: bool = False) -> Any:
    """Write `values` at the elements that the index tensors choose."""
    return store(self, indexing.index_put(self, tuple(indices), values, accumulate))


def index_copy_(self: Any, dim: int, index: Any, source: Any) -> Any:
    """Write the slices of `source` at `index` along `dim`."""
    key = (slice(None),) * (dim % max(self._array.ndim, 1)) + (index,)
    indexing.setitem(self, key, source)
    return self


def masked_scatter_(self: Any, mask: Any, source: Any) -> Any:
    """Write consecutive elements of `source` where `mask` holds."""
    count = int(np.broadcast_to(mask._array, self._array.shape).sum())
    full = wrap(np.broadcast_to(mask._array, self._array.shape))
    indexing.setitem(self, full, source.reshape(-1)[:count])
    return self


def fill_diagonal_(self: Any, fill_value: Any, wrap_around: bool = False) -> Any:
    """Write `fill_value` on the main diagonal."""
    mask = np.zeros(self._array.shape, bool)
    np.fill_diagonal(mask, True, wrap_around)
    return masked_fill_(self, wrap(mask), fill_value)
