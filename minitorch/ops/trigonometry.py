"""Sine, cosine and their relatives, plain and hyperbolic, with their inverses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, record
from minitorch.ops import generic
from minitorch.ops.casting import floating


def sin(input: Any) -> Any:
    """Return the sine."""
    input = floating(input)
    return record(np.sin(input._array), sin_backward, (input,), (input,))


def sin_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * generic.cos(x),)


def cos(input: Any) -> Any:
    """Return the cosine."""
    input = floating(input)
    return record(np.cos(input._array), cos_backward, (input,), (input,))


def cos_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * -generic.sin(x),)


def tan(input: Any) -> Any:
    """Return the tangent."""
    input = floating(input)
    out = np.tan(input._array)
    return record(out, tan_backward, (input,), (out,))


def tan_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (grad * (out * out + 1),)


def asin(input: Any) -> Any:
    """Return the arc sine."""
    input = floating(input)
    return record(np.arcsin(input._array), asin_backward, (input,), (input,))


def asin_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / generic.sqrt(1 - x * x),)


def acos(input: Any) -> Any:
    """Return the arc cosine."""
    input = floating(input)
    return record(np.arccos(input._array), acos_backward, (input,), (input,))


def acos_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (-grad / generic.sqrt(1 - x * x),)


def atan(input: Any) -> Any:
    """Return the arc tangent."""
    input = floating(input)
    return record(np.arctan(input._array), atan_backward, (input,), (input,))


def atan_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / (x * x + 1),)


def sinh(input: Any) -> Any:
    """Return the hyperbolic sine."""
    input = floating(input)
    return record(np.sinh(input._array), sinh_backward, (input,), (input,))


def sinh_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * generic.cosh(x),)


def cosh(input: Any) -> Any:
    """Return the hyperbolic cosine."""
    input = floating(input)
    return record(np.cosh(input._array), cosh_backward, (input,), (input,))


def cosh_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * generic.sinh(x),)


def asinh(input: Any) -> Any:
    """Return the inverse hyperbolic sine."""
    input = floating(input)
    return record(np.arcsinh(input._array), asinh_backward, (input,), (input,))


def asinh_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / generic.sqrt(x * x + 1),)


def acosh(input: Any) -> Any:
    """Return the inverse hyperbolic cosine."""
    input = floating(input)
    return record(np.arccosh(input._array), acosh_backward, (input,), (input,))


def acosh_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / generic.sqrt(x * x - 1),)


def atanh(input: Any) -> Any:
    """Return the inverse hyperbolic tangent."""
    input = floating(input)
    return record(np.arctanh(input._array), atanh_backward, (input,), (input,))


def atanh_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad / (1 - x * x),)


def deg2rad(input: Any) -> Any:
    """Return degrees as radians."""
    return floating(input) * (math.pi / 180)


def rad2deg(input: Any) -> Any:
    """Return radians as degrees."""
    return floating(input) * (180 / math.pi)


arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh
