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
from minitorch.autograd.inplace import check_inplace, check_writable, requires_grad, write
from minitorch.autograd.overlap import refuse_overlap, refuse_repeats
from minitorch.dtypes import can_cast, check_fits, from_numpy_dtype, type_word
from minitorch.ops import (
    arithmetic,
    cumulative,
    diagonals,
    division,
    gathering,
    generic,
    indexing,
    paired,
    pointwise,
    powers,
    rounding,
    selection,
    trigonometry,
)
from minitorch.ops.casting import cast, convert, is_number


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


def in_place(op: Callable, disjoint: bool = False) -> Callable:
    """Return the in-place version of an op.

    An op that saved `x` for its gradient gets a copy, as in PyTorch; unless `x` is an operand once
    more (``x.mul_(x)``), which raises in backward. With `disjoint` no operand may share the
    target's memory at all.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_inplace(self, requires_grad(self))
        _check_operands(self._array, (*args, *kwargs.values()), disjoint)
        result = op(self, *args, **kwargs)
        if result._node is not None and all(arg is not self for arg in args):
            _keep_old_values(result._node, self)
        return store(self, result)

    method.__name__ = method.__qualname__ = f"{op.__name__}_"
    method.__doc__ = f"In-place version of ``{op.__name__}``."
    return method


def _check_operands(x: np.ndarray, operands: tuple, disjoint: bool = False) -> None:
    for each in operands:
        if isinstance(each, TensorBase):
            refuse_overlap(x, each._array, same_allowed=not disjoint)


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
        if not kwargs and x.dtype.kind == "f" and x.itemsize > 2 and x.flags.writeable:
            if isinstance(other, TensorBase):
                y, quiet = other._array, not mode.grad_enabled or not requires_grad(other)
                quiet = quiet and y.dtype is x.dtype and (y.shape == x.shape or y.ndim == 0)
                if quiet and x is not y and not (x.base is None and y.base is None):
                    refuse_overlap(x, y)
            else:
                y, quiet = other, other.__class__ is float or other.__class__ is int
            if quiet and not (mode.grad_enabled and requires_grad(self)):
                check_inplace(self, False)
                if 0 in x.strides:
                    refuse_repeats(x)
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
for _module, _names in {
    arithmetic: "lerp addcmul neg",
    division: "floor_divide remainder fmod addcdiv reciprocal",
    powers: "pow square float_power",
    pointwise: """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tanh sigmoid logit relu erf
        erfc""",
    trigonometry: """sin cos tan asin acos atan sinh cosh asinh acosh atanh deg2rad rad2deg arcsin
        arccos arctan arcsinh arccosh arctanh""",
    rounding: "abs sign sgn floor ceil round trunc fix frac nan_to_num absolute",
    selection: """clamp clip clamp_min clamp_max eq ne lt le gt ge logical_and logical_or
        logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not""",
    paired: "atan2 hypot xlogy copysign",
    cumulative: "cumsum cumprod",
    gathering: "masked_fill index_fill",
    diagonals: "tril triu",
}.items():
    for _name in _names.split():
        globals()[f"{_name}_"] = in_place(getattr(_module, _name))
for _name in ("scatter", "scatter_add", "index_add"):
    globals()[f"{_name}_"] = in_place(getattr(gathering, _name), disjoint=True)
negative_, multiply_, subtract_ = globals()["neg_"], mul_, sub_
divide_ = true_divide_ = div_


def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write the values of `src`, broadcast and converted, into this tensor."""
    if isinstance(src, (bool, int, float)):
        src = wrap(np.asarray(src))
    if not isinstance(src, TensorBase):
        raise TypeError(f"copy_(): argument 'other' must be Tensor, not {type(src).__name__}")
    if not mode.grad_enabled or not (requires_grad(self) or requires_grad(src)):
        source = src._array
        if source.dtype != self._array.dtype:
            source = convert(source, self._array.dtype)
        check_inplace(self, False)
        check_writable(self._array)
        refuse_overlap(self._array, src._array)
        try:
            self._array[...] = source
        except ValueError as error:
            raise arithmetic.broadcast_error(self._array, source, error) from None
        bump_version(self)
        return self
    refuse_overlap(self._array, src._array)
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
    if not is_number(value):
        raise TypeError(f"fill_(): argument 'value' must be Number, not {type(value).__name__}")
    check_fits(value, from_numpy_dtype(self._array.dtype))
    filled = np.empty(self._array.shape, self._array.dtype)
    filled.fill(value)
    out = record(filled, rounding.step_backward, (self,), (), None, "FillBackward0")
    return write(self, out, repeats=True)


def zero_(self: Any) -> Any:
    """Write zero everywhere."""
    if not (mode.grad_enabled and requires_grad(self)) and self._array.flags.writeable:
        check_inplace(self, False)
        self._array.fill(0)
        bump_version(self)
        return self
    return fill_(self, 0)
