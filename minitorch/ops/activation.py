"""Activation functions beyond the basic ones (those are in `pointwise.py`).

Piecewise linear ones multiply the gradient by a factor that is constant on each piece, so they keep
just that factor. The smooth ones keep their input and have a formula for the derivative that holds
for arrays and Tensors alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import Node, TensorBase, record
from minitorch.ops import generic
from minitorch.ops._arguments import check_float, quiet, widen
from minitorch.ops._typing import Tensor
from minitorch.ops.generic import exp, where
from minitorch.ops.precision import computed_in_float32, wide

# ------------------------------------------------------------------------------ piecewise linear


@quiet
def _factor_backward(node: Node, grad: Any) -> tuple:
    (factor,) = node.saved
    # Not a product: where the factor is 0, a gradient of inf or nan must not get through.
    return (where(factor != 0, grad * factor, 0.0),)


def _piecewise(
    x: Tensor, out: np.ndarray, factor: np.ndarray, name: str, constants: tuple = ()
) -> Tensor:
    dtype = x._array.dtype
    saved = (np.asarray(factor, dtype),)
    return record(out.astype(dtype, copy=False), _factor_backward, (x,), saved, constants, name)


def _finish(x: Tensor, out: Tensor, inplace: bool) -> Tensor:
    """Write `out` back into `x` if the caller asked for that."""
    return x.copy_(out) if inplace else out


@quiet
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where positive, ``negative_slope * x`` elsewhere."""
    x = check_float(input, "leaky_relu_cpu")
    factor = np.where(x > 0, x.dtype.type(1), x.dtype.type(negative_slope))
    out = _piecewise(input, x * factor, factor, "LeakyReluBackward0", (negative_slope,))
    return _finish(input, out, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``x`` clamped to ``[min_val, max_val]``; no gradient at or beyond the bounds."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    x = input._array
    out = _piecewise(
        input,
        np.clip(x, min_val, max_val),
        ~((x <= min_val) | (x >= max_val)),
        "HardtanhBackward0",
        (min_val, max_val),
    )
    return _finish(input, out, inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``x`` clamped to ``[0, 6]``."""
    return hardtanh(input, 0.0, 6.0, inplace)


@quiet
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``clamp(x + 3, 0, 6) / 6``."""
    x = check_float(input, "hardsigmoid")
    inside = ((x > -3) & (x < 3)) / 6
    out = _piecewise(input, np.clip(x + 3, 0, 6) / 6, inside, "HardsigmoidBackward0")
    return _finish(input, out, inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it exceeds `threshold`, else `value`."""
    x = input._array
    above = x > threshold
    out = _piecewise(input, np.where(above, x, x.dtype.type(value)), above, "ThresholdBackward0")
    return _finish(input, out, inplace)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` where ``|x| > lambd``, else 0."""
    x = check_float(input, "hardshrink_cpu")
    far = np.abs(x) > lambd
    return _piecewise(input, np.where(far, x, x.dtype.type(0)), far, "HardshrinkBackward0")


@quiet
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by `lambd`, and 0 where it would change sign."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    x = check_float(input, "softshrink_cpu")
    out = x - np.clip(x, -lambd, lambd)
    return _piecewise(input, out, np.abs(x) > lambd, "SoftshrinkBackward0")


@computed_in_float32
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``x`` where positive, ``weight * x`` elsewhere; one weight, or one per channel."""
    if weight.numel() != 1:
        channels = input.shape[1] if input.dim() > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
        weight = weight.reshape(-1, *(1,) * (input.dim() - 2))
    return where(input > 0, input, weight * input)


# ---------------------------------------------------------------------------------------- smooth


def sigmoid_array(x: np.ndarray) -> np.ndarray:
    """Logistic function of an array. Where the exponential overflows the result is 0, rightly.

    The form ``(1 + tanh(x/2)) / 2`` never overflows, but cancels for negative `x`.
    """
    out = np.asarray(np.negative(x))  # of a 0-d array NumPy makes a scalar
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def _sigmoid(x: Any) -> Any:
    return x.sigmoid() if isinstance(x, TensorBase) else sigmoid_array(x)


def _silu_slope(x: Any, _: Any) -> Any:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


def _elu_slope(x: Any, ctx: Any) -> Any:
    alpha, scale, sharpness = ctx
    # The exponential is only wanted for negative x; elsewhere it could overflow.
    negative = where(x > 0, 0.0, x)
    slope = where(x > 0, scale, exp(negative * sharpness) * (alpha * scale * sharpness))
    return where(x != x, scale, slope)  # as PyTorch: NaN passes the gradient on


def _mish_slope(x: Any, _: Any) -> Any:
    # With s = sigmoid(x) and t = tanh(softplus(x)) = s(2-s) / (s^2 - 2s + 2)
    # ... rewritten in s, so that nothing overflows.
    s = _sigmoid(x)
    t = s * (2 - s) / (s * s - 2 * s + 2)
    return t + x * s * (1 - t * t)


def _hardswish_slope(x: Any, _: Any) -> Any:
    return where(x <= -3, 0.0, where(x < 3, x / 3 + 0.5, 1.0))


def _logsigmoid_slope(x: Any, _: Any) -> Any:
    return _sigmoid(-x)


@quiet
def _slope_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    slope, constants = node.ctx
    return (generic.cast(wide(grad) * slope(wide(x), constants), generic.raw(x).dtype),)


def _smooth(x: Tensor, out: np.ndarray, slope: Any, name: str, ctx: Any = None) -> Tensor:
    out = out.astype(x._array.dtype, copy=False)
    return record(out, _slope_backward, (x,), (x,), (slope, ctx), name)


@quiet
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also called swish."""
    x = widen(check_float(input, "silu_cpu"))
    return _finish(
        input, _smooth(input, x * sigmoid_array(x), _silu_slope, "SiluBackward0"), inplace
    )


@quiet
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))``, accurate for large ``|x|``."""
    x = widen(check_float(input, "log_sigmoid_cpu"))
    out = np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))
    return _smooth(input, out, _logsigmoid_slope, "LogSigmoidBackward0")


@quiet
def _elu(
    input: Tensor, alpha: float, scale: float, sharpness: float, name: str, inplace: bool
) -> Tensor:
    x = widen(check_float(input, "elu_cpu"))
    out = np.where(x > 0, scale * x, alpha * scale * np.expm1(np.minimum(x, 0) * sharpness))
    out = _smooth(input, out, _elu_slope, name, (alpha, scale, sharpness))
    return _finish(input, out, inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return _elu(input, alpha, 1.0, 1.0, "EluBackward0", inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled ELU whose constants keep activations at mean 0 and variance 1."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return _elu(input, alpha, scale, 1.0, "EluBackward0", inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, ``alpha * (exp(x/alpha) - 1)`` elsewhere."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu(input, alpha, 1.0, 1.0 / alpha, "EluBackward0", inplace)


@quiet
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    x = widen(check_float(input, "mish"))
    s = sigmoid_array(x)
    out = x * (s * (2 - s) / (s * s - 2 * s + 2))
    return _finish(input, _smooth(input, out, _mish_slope, "MishBackward0"), inplace)


@quiet
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * clamp(x + 3, 0, 6) / 6``."""
    x = widen(check_float(input, "hardswish"))
    out = _smooth(input, x * (np.clip(x + 3, 0, 6) / 6), _hardswish_slope, "HardswishBackward0")
    return _finish(input, out, inplace)


@computed_in_float32
def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


@computed_in_float32
def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - input.tanh()


@computed_in_float32
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Split in halves ``a, b`` along `dim` and return ``a * sigmoid(b)``."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}"
        )
    first, second = input.narrow(dim, 0, size // 2), input.narrow(dim, size // 2, size // 2)
    return first * second.sigmoid()
