"""Helpers that hold for NumPy arrays and Tensors alike: the language of backward rules.

In an ordinary backward a rule's gradients are arrays; with ``create_graph`` they are Tensors. A
rule written with operators (``+ - * / ** @``), ``.shape``, ``.reshape(shape)`` and these helpers
works for both, and so has derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import TensorBase, record, wrap


def is_tensor(x: Any) -> bool:
    """Whether `x` is a Tensor (and not an array or a number)."""
    return isinstance(x, TensorBase)


def raw(x: Any) -> Any:
    """Return the NumPy array of a Tensor; anything else unchanged."""
    return x._array if isinstance(x, TensorBase) else x


def like(array: Any, example: Any) -> Any:
    """Return the constant `array` as a Tensor iff `example` is one."""
    return wrap(array) if isinstance(example, TensorBase) else array


# Typed loosely: NumPy's stubs do not know keyword arguments that are decided at run time.
sum_array: Any = np.add.reduce


def _unary(name: str, ufunc: Callable) -> Callable:
    def apply(x: Any) -> Any:
        return getattr(x, name)() if isinstance(x, TensorBase) else ufunc(x)

    apply.__name__ = name
    apply.__doc__ = f"Element-wise {name} of an array or Tensor."
    return apply


exp = _unary("exp", np.exp)
log = _unary("log", np.log)
sqrt = _unary("sqrt", np.sqrt)
sin = _unary("sin", np.sin)
cos = _unary("cos", np.cos)
tan = _unary("tan", np.tan)
sinh = _unary("sinh", np.sinh)
cosh = _unary("cosh", np.cosh)
tanh = _unary("tanh", np.tanh)
sign = _unary("sign", lambda x: np.where(np.isnan(x), x.dtype.type(0), np.sign(x)))
absolute = _unary("abs", np.abs)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Choose from `a` where `condition` holds, else from `b`; each array, Tensor or number.

    The result has the floating type of the array or Tensor among `a` and `b`.
    """
    if isinstance(a, TensorBase) or isinstance(b, TensorBase):
        from minitorch.ops.selection import where as where_op

        condition = condition if isinstance(condition, TensorBase) else wrap(condition)
        return where_op(condition, a, b)
    return np.where(raw(condition), a, b)


_SAME_SIZE_INT = {2: np.int16, 4: np.int32, 8: np.int64}


def keep(g: Any, mask: ndarray) -> Any:
    """Return `g` where the raw bool array `mask` holds, else exact zero (also for NaN).

    `mask` must broadcast to the shape of `g`.
    """
    if isinstance(g, TensorBase):
        return where(mask, g, zeros_like(g))
    # np.where stumbles over random masks; and-ing the bits with all ones or none is 8 times faster.
    bits = g.view(_SAME_SIZE_INT[g.dtype.itemsize]) & -mask.view(np.int8)
    return bits.view(g.dtype)


def short_with_number(ufunc: Any, x: Any, number: Any) -> Any:
    """Return ``ufunc(x, number)`` of a 16-bit array; if it is floating, in float32, rounded once.

    NumPy would round the number to 16 bits first, and a learning rate of 0.1 become 0.1001.
    """
    if isinstance(x, TensorBase) or x.dtype.kind not in "fV":
        return ufunc(x, number)
    return ufunc(x.astype(np.float32), number).astype(x.dtype)


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum `g` over what broadcasting `shape` to ``g.shape`` repeated."""
    if g.shape == shape:
        return g
    extra = len(g.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(
        [extra + i for i, n in enumerate(shape) if n == 1 and g.shape[extra + i] != 1]
    )
    if axes:
        g = total(g, axes)
    return g.reshape(shape)


unbroadcast = sum_to


def total(x: Any, axes: tuple[int, ...] | int | None = None, keepdims: bool = False) -> Any:
    """Sum over `axes` (all by default); 16-bit floats accumulate in float32."""
    if isinstance(x, TensorBase):
        return x.sum(axes, keepdims)
    if x.dtype.itemsize == 2 and x.dtype.kind in "fV":
        wide = sum_array(x, axis=axes, dtype=np.float32, keepdims=keepdims)
        return np.asarray(wide).astype(x.dtype)
    return sum_array(x, axis=axes, keepdims=keepdims)


def expand(x: Any, shape: Sequence[int]) -> Any:
    """Broadcast `x` to `shape` without copying."""
    return x.expand(*shape) if isinstance(x, TensorBase) else np.broadcast_to(x, shape)


def unsqueeze(x: Any, axes: tuple[int, ...] | int) -> Any:
    """Insert axes of length 1 at the given places of the result."""
    if isinstance(x, TensorBase):
        for axis in sorted((axes,) if isinstance(axes, int) else axes):
            x = x.unsqueeze(axis)
        return x
    return np.expand_dims(x, axes)


def permute(x: Any, axes: Sequence[int]) -> Any:
    """Reorder the axes."""
    return x.permute(*axes) if isinstance(x, TensorBase) else x.transpose(axes)


def swap_last(x: Any) -> Any:
    """Transpose the last two axes."""
    return x.transpose(-1, -2) if isinstance(x, TensorBase) else x.swapaxes(-1, -2)


def cast(x: Any, dtype: np.dtype) -> Any:
    """Convert to the NumPy type `dtype`; `x` itself if it has it."""
    if isinstance(x, TensorBase):
        from minitorch.ops.casting import cast as cast_op

        return cast_op(x, dtype)
    return x.astype(dtype, copy=False)


def zeros_like(x: Any) -> Any:
    """Zeros of the shape and type of `x`."""
    return wrap(np.zeros_like(x._array)) if isinstance(x, TensorBase) else np.zeros_like(x)


def concatenate(parts: Sequence[Any], axis: int) -> Any:
    """Join arrays, or Tensors, along an axis."""
    if any(isinstance(part, TensorBase) for part in parts):
        from minitorch.ops.joining import cat

        return cat([part if isinstance(part, TensorBase) else wrap(part) for part in parts], axis)
    return np.concatenate(parts, axis)


def maximum(a: Any, b: Any) -> Any:
    """Element-wise maximum."""
    return a.maximum(b) if isinstance(a, TensorBase) else np.maximum(a, b)


class LinearMap:
    """A linear function of one array and its transpose: an op whose gradient is another op.

    ``apply(array, ctx)`` computes; the gradient of ``f(x, ctx)`` is ``f.transposed(grad, ctx)``,
    whose gradient is ``f`` again, so derivatives of every order come for free. Calling it works for
    arrays and for Tensors. Made in pairs by :func:`linear_pair`.
    """

    __slots__ = ("__name__", "apply", "name", "transposed")

    transposed: LinearMap

    def __init__(self, apply: Callable[[ndarray, Any], Any], name: str) -> None:
        self.apply = apply
        self.name = name
        self.__name__ = name

    def __call__(self, x: Any, ctx: Any) -> Any:
        if x.__class__ is ndarray or not isinstance(x, TensorBase):
            return self.apply(x, ctx)
        return record(self.apply(x._array, ctx), self.rule, (x,), (), ctx, self.name)

    def rule(self, node: Any, grad: Any) -> tuple:
        return (self.transposed(grad, node.ctx),)


def linear_pair(
    forward: Callable[[ndarray, Any], Any],
    adjoint: Callable[[ndarray, Any], Any],
    name: str,
    adjoint_name: str | None = None,
) -> tuple[LinearMap, LinearMap]:
    """Return the two maps that are each other's gradient.

    Parameters
    ----------
    forward, adjoint
        ``f(array, ctx) -> array``; both must get along with the same `ctx`, so put what either
        needs (such as the input's shape) into it.
    name, adjoint_name
        Names of their nodes, such as ``CumsumBackward0``.
    """
    there, back = LinearMap(forward, name), LinearMap(adjoint, adjoint_name or name)
    there.transposed, back.transposed = back, there
    return there, back
