"""Products of vectors, matrices and batches of them.

16-bit floats multiply in float32 and round once: NumPy's own float16 product has no fast path.
Transposes stay views: BLAS reads them as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.amp.autocast_mode import active as autocast
from minitorch.amp.autocast_mode import cast_inputs
from minitorch.autograd.graph import Node, TensorBase, record
from minitorch.dtypes import c_type_word, type_word
from minitorch.ops import generic
from minitorch.ops.generic import sum_to, swap_last


def product(x: Any, y: Any) -> Any:
    """Return ``x @ y`` of arrays or Tensors (at least 2-d)."""
    if isinstance(x, TensorBase) or isinstance(y, TensorBase):
        return matmul(x, y)
    if x.dtype.itemsize == 2 and x.dtype.kind in "fV":
        return (_float32(x) @ _float32(y)).astype(x.dtype)
    return x @ y


def _float32(x: ndarray) -> ndarray:
    return x.astype(np.float32)


def matmul(input: Any, other: Any) -> Any:
    """Return the matrix product, batched over leading dimensions.

    Raises
    ------
    RuntimeError
        If types differ or inner dimensions do not fit.
    """
    x, y = input._array, other._array
    if x.ndim == 2 and y.ndim == 2:
        return mm(input, other)
    if autocast.dtype is not None:
        input, other = cast_inputs("lower", input, other)
        x, y = input._array, other._array
    _check_types(x, y)
    if x.ndim == 0 or y.ndim == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {x.ndim}D and {y.ndim}D"
        )
    if x.ndim == 1 and y.ndim == 1:
        return dot(input, other)
    if x.ndim == 1:
        return matmul(input.unsqueeze(0), other).squeeze(-2)
    if y.ndim == 1:
        return matmul(input, other.unsqueeze(1)).squeeze(-1)
    if y.ndim == 2:
        # One large product instead of many small ones.
        if x.shape[-1] != y.shape[0]:
            raise _mismatch((math.prod(x.shape[:-1]), x.shape[-1]), y.shape)
        flat = mm(input.reshape(math.prod(x.shape[:-1]), x.shape[-1]), other)
        return flat.reshape(*x.shape[:-1], y.shape[1])
    if x.shape[-1] != y.shape[-2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{math.prod(y.shape[:-2])}, {x.shape[-1]}] but got: "
            f"[{math.prod(y.shape[:-2])}, {y.shape[-2]}]."
        )
    try:
        out = product(x, y)
    except ValueError:
        from minitorch.ops.arithmetic import broadcast_error

        raise broadcast_error(x[..., 0, 0], y[..., 0, 0], ValueError("matmul")) from None
    return record(out, bmm_backward, (input, other), _saved(input, other), (x.shape, y.shape))


def _saved(a: Any, b: Any) -> tuple:
    return (a if b._requires_grad else None, b if a._requires_grad else None)


def bmm_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    x_shape, y_shape = node.ctx
    return (
        None if y is None else sum_to(product(grad, swap_last(y)), x_shape),
        None if x is None else sum_to(product(swap_last(x), grad), y_shape),
    )


def _check_types(x: ndarray, y: ndarray) -> None:
    if x.dtype != y.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{c_type_word(x.dtype)} != {c_type_word(y.dtype)}"
        )


def _mismatch(a: tuple, b: tuple) -> RuntimeError:
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})"
    )


def mm(input: Any, mat2: Any) -> Any:
    """Return the product of two matrices."""
    if autocast.dtype is not None:
        input, mat2 = cast_inputs("lower", input, mat2)
    x, y = input._array, mat2._array
    if x.dtype is not y.dtype:
        _check_types(x, y)
    if x.ndim != 2 or y.ndim != 2:
        raise RuntimeError(f"{'self' if x.ndim != 2 else 'mat2'} must be a matrix")
    try:
        out = product(x, y) if x.dtype.itemsize == 2 else x @ y
    except ValueError:
        raise _mismatch(x.shape, y.shape) from None
    return record(out, mm_backward, (input, mat2), _saved(input, mat2))


def mm_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    if grad.__class__ is ndarray and grad.dtype.itemsize != 2:
        return (None if y is None else grad @ y.T, None if x is None else x.T @ grad)
    return (
        None if y is None else product(grad, swap_last(y)),
        None if x is None else product(swap_last(x), grad),
    )


def bmm(input: Any, mat2: Any) -> Any:
    """Return the products of two batches of matrices, without broadcasting."""
    x, y = input._array, mat2._array
    if x.ndim != 3 or y.ndim != 3:
        raise RuntimeError(f"batch{1 if x.ndim != 3 else 2} must be a 3D tensor")
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{x.shape[0]}, {x.shape[2]}] but got: [{y.shape[0]}, {y.shape[1]}]."
        )
    return matmul(input, mat2)


def mv(input: Any, vec: Any) -> Any:
    """Return the product of a matrix and a vector."""
    if input._array.ndim != 2 or vec._array.ndim != 1:
        raise RuntimeError(
            "vector + matrix @ vector expected, got "
            f"{vec._array.ndim}, {input._array.ndim}, {vec._array.ndim}"
        )
    if input._array.shape[1] != vec._array.shape[0]:
        n, m = input._array.shape
        raise RuntimeError(f"size mismatch, got input ({n}), mat ({n}x{m}), vec ({vec.shape[0]})")
    return matmul(input, vec)


def dot(input: Any, tensor: Any) -> Any:
    """Return the inner product of two vectors."""
    x, y = input._array, tensor._array
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.dtype != y.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{type_word(x.dtype)} and {type_word(y.dtype)}"
        )
    if x.shape != y.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"[{x.shape[0]}] and src [{y.shape[0]}] to have the same number of elements, but got "
            f"{x.shape[0]} and {y.shape[0]} elements respectively"
        )
    return record(product(x, y), dot_backward, (input, tensor), _saved(input, tensor))


def dot_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    return (None if y is None else grad * y, None if x is None else grad * x)


def outer(input: Any, vec2: Any) -> Any:
    """Return the matrix of all products of two vectors' elements."""
    if input._array.ndim != 1 or vec2._array.ndim != 1:
        raise RuntimeError(
            f"outer: Expected 1-D argument {'self' if input._array.ndim != 1 else 'vec2'}, but got "
            f"{input._array.ndim if input._array.ndim != 1 else vec2._array.ndim}-D"
        )
    return input.unsqueeze(1) * vec2


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``input @ weight.T + bias`` as one node.

    Parameters
    ----------
    input : Tensor
        ``(..., in_features)``
    weight : Tensor
        ``(out_features, in_features)`` or ``(in_features,)``
    bias : Tensor, optional
        ``(out_features,)``
    """
    if autocast.dtype is not None:
        input, weight, bias = cast_inputs("lower", input, weight, bias)
    x, w = input._array, weight._array
    if w.ndim != 2 or x.ndim < 1:
        out = matmul(input, weight)
        return out if bias is None else out + bias
    if x.dtype is not w.dtype or (bias is not None and bias._array.dtype is not x.dtype):
        _check_types(x, w)
        if bias is not None:
            _check_types(x, bias._array)
    flat = x if x.ndim == 2 else _as_matrix(x)
    short = x.dtype.itemsize == 2 and x.dtype.kind in "fV"
    try:
        # 16-bit floats are rounded once, after the bias.
        out = product(_float32(flat), _float32(w.T)) if short else product(flat, w.T)
    except ValueError:
        raise _mismatch(flat.shape, w.T.shape) from None
    if bias is not None:
        try:
            # The product is ours alone: add in place.
            out += _float32(bias._array) if short else bias._array
        except ValueError as error:
            raise RuntimeError(
                f"The size of tensor a ({out.shape[-1]}) must match the size of tensor b "
                f"({bias._array.shape[-1]}) at non-singleton dimension {x.ndim - 1}"
            ) from error
    if short:
        out = out.astype(x.dtype)
    if x.ndim != 2:
        out = out.reshape(*x.shape[:-1], w.shape[0])
    # The bias comes first, as in PyTorch: its gradient is ready before the weight's.
    inputs = (input, weight) if bias is None else (bias, input, weight)
    return record(out, linear_backward, inputs, _saved(input, weight), None, "AddmmBackward0")


def _as_matrix(x: Any) -> Any:
    """Merge all axes but the last; works for arrays and Tensors, also empty ones."""
    shape = x.shape
    return x.reshape((math.prod(shape[:-1]), shape[-1]))


def linear_backward(node: Node, grad: Any) -> tuple:
    x, w = node.saved
    following = node._next
    flat = grad if len(grad.shape) == 2 else _as_matrix(grad)
    for_x = for_w = None
    if w is not None:
        for_x = product(flat, w)
        if flat is not grad:
            for_x = for_x.reshape((*grad.shape[:-1], w.shape[1]))
    if x is not None:
        x = x if len(x.shape) == 2 else _as_matrix(x)
        for_w = product(swap_last(flat), x)
    if len(following) == 2:
        return for_x, for_w
    for_bias = None if following[0] is None else generic.total(flat, 0)
    return for_bias, for_x, for_w


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)``."""
    out = mm(mat1, mat2)
    if alpha != 1:
        out = out * alpha
    return (input if beta == 1 else input * beta) + out


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * bmm(batch1, batch2)``."""
    out = bmm(batch1, batch2)
    if alpha != 1:
        out = out * alpha
    return (input if beta == 1 else input * beta) + out
