"""Element-wise functions of one tensor: exp and log, square roots, activations, the error function.

Rules save the *output* where the derivative is cheapest from it (exp, tanh, sigmoid, sqrt, relu).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, record
from minitorch.ops import generic
from minitorch.ops._arguments import quiet
from minitorch.ops.casting import floating
from minitorch.ops.erf import erf_array, erfc_array
from minitorch.ops.precision import computed_in_float32, wide

# -- exp and log ---------------------------------------------------------------------------------


def exp(input: Any) -> Any:
    """Return e to the power of each element."""
    input = floating(input)
    out = np.exp(input._array)
    return record(out, exp_backward, (input,), (out,))


def exp_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad * out,)


def exp2(input: Any) -> Any:
    """Return 2 to the power of each element."""
    input = floating(input)
    out = np.exp2(input._array)
    return record(out, exp2_backward, (input,), (out,), None, "Exp2Backward0")


def exp2_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad * out * math.log(2.0),)


@computed_in_float32
def expm1(input: Any) -> Any:
    """Return ``exp(x) - 1``, precise near zero."""
    input = floating(input)
    out = np.expm1(input._array)
    return record(out, expm1_backward, (input,), (out,), None, "Expm1Backward0")


def expm1_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad * (out + 1),)


def log(input: Any) -> Any:
    """Return the natural logarithm."""
    input = floating(input)
    return record(np.log(input._array), log_backward, (input,), (input,))


def log_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / x,)


@computed_in_float32
def log2(input: Any) -> Any:
    """Return the logarithm to base 2."""
    input = floating(input)
    return record(
        np.log2(input._array), scaled_log_backward, (input,), (input,), 2.0, "Log2Backward0"
    )


@computed_in_float32
def log10(input: Any) -> Any:
    """Return the logarithm to base 10."""
    input = floating(input)
    out = np.log10(input._array)
    return record(out, scaled_log_backward, (input,), (input,), 10.0, "Log10Backward0")


def scaled_log_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / (x * math.log(node.ctx)),)


@computed_in_float32
def log1p(input: Any) -> Any:
    """Return ``log(1 + x)``, precise near zero."""
    input = floating(input)
    return record(
        np.log1p(input._array), log1p_backward, (input,), (input,), None, "Log1PBackward0"
    )


def log1p_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / (x + 1),)


def sqrt(input: Any) -> Any:
    """Return the square root."""
    input = floating(input)
    out = np.sqrt(input._array)
    return record(out, sqrt_backward, (input,), (out,))


def sqrt_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad / (out * 2),)


@computed_in_float32
def rsqrt(input: Any) -> Any:
    """Return the reciprocal of the square root."""
    input = floating(input)
    out = np.reciprocal(np.sqrt(input._array))
    return record(out, rsqrt_backward, (input,), (out,))


def rsqrt_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad * (out * out * out) * -0.5,)


def tanh(input: Any) -> Any:
    """Return the hyperbolic tangent."""
    input = floating(input)
    out = np.tanh(input._array)
    return record(out, tanh_backward, (input,), (out,))


def tanh_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    if grad.dtype.itemsize == 2:
        out = wide(out)
        return (generic.cast(wide(grad) * (1 - out * out), generic.raw(grad).dtype),)
    return (grad * (1 - out * out),)


# -- activations ---------------------------------------------------------------------------------


def sigmoid(input: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    input = floating(input)
    x = input._array
    out = np.negative(x if x.dtype.itemsize != 2 else wide(x))
    if out.__class__ is np.ndarray:
        np.exp(out, out)
        out += 1
        np.reciprocal(out, out)
    else:
        out = np.reciprocal(np.exp(out) + out.dtype.type(1))
    if out.dtype is not x.dtype:
        out = np.asarray(out, x.dtype)
    return record(out, sigmoid_backward, (input,), (out,))


def sigmoid_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    if grad.dtype.itemsize == 2:
        out = wide(out)
        return (generic.cast(wide(grad) * (out * (1 - out)), generic.raw(grad).dtype),)
    return (grad * (out * (1 - out)),)


@computed_in_float32
def logit(input: Any, eps: float | None = None) -> Any:
    """Return ``log(x / (1 - x))``, with `x` clamped to ``[eps, 1 - eps]`` if `eps` is given."""
    from minitorch.ops.selection import clamp

    x = floating(input)
    if eps is not None:
        x = clamp(x, eps, 1 - eps)
    return log(x / (1 - x))


def relu(input: Any) -> Any:
    """Return ``max(x, 0)``; the gradient at 0 is 0."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    out = np.maximum(input._array, 0)
    return record(out, relu_backward, (input,), (out,))


def relu_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad * (out != 0),)  # which is where it is positive, or NaN


@quiet
@computed_in_float32
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return ``log(1 + exp(beta * x)) / beta``; the identity where ``beta * x > threshold``."""
    input = floating(input)
    x = input._array
    scaled = x * beta
    # logaddexp cannot overflow; beyond the threshold the curve is the identity.
    out = np.where(scaled > threshold, x, (np.logaddexp(scaled, 0) / beta).astype(x.dtype))
    return record(out, softplus_backward, (input,), (input,), (beta, threshold))


@quiet
def softplus_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    beta, threshold = node.ctx
    scaled = x * beta
    slope = 1 / (1 + generic.exp(-scaled))
    return (generic.where(scaled > threshold, grad, grad * slope),)


@computed_in_float32
def gelu(input: Any, approximate: str = "none") -> Any:
    """Return ``x * Phi(x)`` with the normal distribution's Phi, or its tanh approximation.

    Source: Hendrycks and Gimpel, Gaussian error linear units, 2016.
    """
    input = floating(input)
    x = input._array
    if approximate == "none":
        out = (0.5 * x) * (1 + erf_array(x * _INV_SQRT2))
        return record(out, gelu_backward, (input,), (input,))
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    inner = _GELU_SCALE * (x + _GELU_CUBIC * (x * x * x))
    out = (0.5 * x) * (1 + np.tanh(inner))
    return record(out, gelu_tanh_backward, (input,), (input,), None, "GeluBackward0")


_INV_SQRT2 = math.sqrt(0.5)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_GELU_SCALE = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715


def gelu_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    cdf = 0.5 * (1 + _erf(x * _INV_SQRT2))
    pdf = generic.exp(x * x * -0.5) * _INV_SQRT_2PI
    return (grad * (cdf + x * pdf),)


def gelu_tanh_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    square = x * x
    t = generic.tanh(_GELU_SCALE * (x + _GELU_CUBIC * (square * x)))
    slope = _GELU_SCALE * (1 + (3 * _GELU_CUBIC) * square)
    return (grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope),)


# -- error function ------------------------------------------------------------------------------


@computed_in_float32
def erf(input: Any) -> Any:
    """Return the error function."""
    input = floating(input)
    return record(erf_array(input._array), erf_backward, (input,), (input,))


def erf_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * generic.exp(-(x * x)) * (2 / math.sqrt(math.pi)),)


@computed_in_float32
def erfc(input: Any) -> Any:
    """Return ``1 - erf(x)``, precise for large `x`."""
    input = floating(input)
    return record(erfc_array(input._array), erfc_backward, (input,), (input,))


def erfc_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * generic.exp(-(x * x)) * (-2 / math.sqrt(math.pi)),)


def _erf(x: Any) -> Any:
    return x.erf() if generic.is_tensor(x) else erf_array(x)
