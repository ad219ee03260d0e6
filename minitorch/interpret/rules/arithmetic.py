"""Sums, products, quotients, casts and choices.

A residual connection is a sum of two decomposed values. A constant that is added is a bias: it is
shared in proportion, as in the published batch norm (its shift goes to the irrelevant part where
both parts are zero). Divisors are scales and stay whole, and so do conditions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.interpret.parts import Parts, lift, share_bias
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import WHOLE, register_rule
from minitorch.interpret.rules.pointwise import whole
from minitorch.ops.casting import cast
from minitorch.ops.selection import where


def _lifted(x: Any, ndim: int) -> Any:
    return x.map(lambda part: lift(part, ndim)) if isinstance(x, Parts) else x


def shifted(call: Call, x: Parts, constant: Any) -> Parts:
    """Add a constant."""
    shape = np.broadcast_shapes(tuple(x.rel.shape[1:]), tuple(constant.shape))
    full = (x.rel.shape[0], *shape)
    return share_bias(x.rel.expand(*full), x.irr.expand(*full), constant, call.run)


def _number(x: Parts, value: Any) -> Any:
    return wrap(np.asarray(value, x.rel._array.dtype))


@register_rule("AddBackward0")
def add(call: Call, a: Any, b: Any = None) -> Parts:
    """Two values, or a value and a constant."""
    ndim = len(call.shapes[0])
    if b is None:
        return shifted(call, a, _number(a, call.ctx))
    a, b = _lifted(a, ndim), _lifted(b, ndim)
    if isinstance(a, Parts) and isinstance(b, Parts):
        return Parts(a.rel + b.rel, a.irr + b.irr)
    return shifted(call, a, b) if isinstance(a, Parts) else shifted(call, b, a)


@register_rule("SubBackward0")
def sub(call: Call, a: Any, b: Any = None) -> Parts:
    """``a - b``."""
    ndim = len(call.shapes[0])
    if b is None:
        return shifted(call, a, _number(a, call.ctx))
    a, b = _lifted(a, ndim), _lifted(b, ndim)
    if isinstance(a, Parts) and isinstance(b, Parts):
        return Parts(a.rel - b.rel, a.irr - b.irr)
    if isinstance(a, Parts):
        return shifted(call, a, -b)
    return shifted(call, b.map(lambda part: -part), a)


@register_rule("RsubBackward1")
def rsub(call: Call, x: Parts) -> Parts:
    """``number - x``."""
    return shifted(call, x.map(lambda part: -part), _number(x, call.ctx))


@register_rule("NegBackward0")
def neg(call: Call, x: Parts) -> Parts:
    """``-x``."""
    return x.map(lambda part: -part)


@register_rule("MulBackward0")
def mul(call: Call, a: Any, b: Any = None) -> Parts:
    """By a number, a constant or a dropout's mask linear; else the relevant parts' product."""
    if b is None:
        factor = call.ctx if call.ctx is not None else wrap(call.saved[0])
        return a.map(lambda part: part * factor)
    ndim = len(call.shapes[0])
    a, b = _lifted(a, ndim), _lifted(b, ndim)
    if not isinstance(b, Parts):
        return a.map(lambda part: part * b)
    if not isinstance(a, Parts):
        return b.map(lambda part: part * a)
    relevant = a.rel * b.rel
    return Parts(relevant, a.total * b.total - relevant)


@register_rule("DivBackward0")
def div(call: Call, a: Any, b: Any = None) -> Parts | None:
    """By a number or a whole divisor; a constant over something is a scale and stays whole."""
    if b is None:
        return a.map(lambda part: part / call.ctx)
    if not isinstance(a, Parts):
        return WHOLE
    ndim = len(call.shapes[0])
    a, b = _lifted(a, ndim), _lifted(b, ndim)
    divisor = b.total if isinstance(b, Parts) else b
    return a.map(lambda part: part / divisor)


@register_rule("ToCopyBackward0", moves_elements=True)
def to_copy(call: Call, x: Parts) -> Parts:
    """Another element type."""
    dtype = call.outputs[0]._array.dtype
    if x.ids:
        if dtype.kind in "fV":
            raise NotImplementedError(
                "contextual decomposition: token ids were turned into floating numbers "
                f"({call.where}); hand the model floating inputs, or look the ids up in an "
                "embedding"
            )
        return x
    return x.map(lambda part: cast(part, dtype))


@register_rule("WhereBackward0")
def choose(call: Call, a: Any, b: Any) -> Parts:
    """The condition stays whole; what is chosen is a part or a constant."""
    chosen, ndim = wrap(np.asarray(call.ctx[0])), len(call.shapes[0])
    parts = [each if isinstance(each, Parts) else None for each in (a, b)]
    example = next(each for each in parts if each is not None)
    zero = wrap(np.zeros((), example.rel._array.dtype))

    def pick(which: int) -> Any:
        sides = [
            lift(each[which], ndim) if isinstance(each, Parts) else (zero if which == 0 else each)
            for each in (a, b)
        ]
        return where(chosen, *sides)

    return Parts(pick(0), pick(1))


@register_rule("MaximumBackward0", "MinimumBackward0")
def larger_or_smaller(call: Call, a: Any, b: Any) -> Parts:
    """Which of the two it is stays whole; of equals it is the first."""
    first, second = (each._array for each in call.inputs)
    chosen = first >= second if call.name == "MaximumBackward0" else first <= second
    return choose(dataclasses.replace(call, ctx=(chosen,)), a, b)


@register_rule("MaskedFillBackward0")
def masked_fill(call: Call, x: Parts, value: Any = None) -> Parts:
    """The filled-in constant is irrelevant."""
    filled = wrap(np.asarray(call.ctx[0]))
    ndim = len(call.shapes[0])
    zero = wrap(np.zeros((), x.rel._array.dtype))
    x = _lifted(x, ndim)
    fill = call.outputs[0] if value is None else value
    return Parts(where(filled, zero, x.rel), where(filled, fill, x.irr))


@register_rule("ClampBackward1")
def clamp(call: Call, x: Parts) -> Parts:
    """Which elements are clamped stays whole; a bound is a constant, so irrelevant."""
    inside = wrap(np.asarray(call.ctx))
    zero = wrap(np.zeros((), x.rel._array.dtype))
    return Parts(where(inside, x.rel, zero), where(inside, x.irr, call.outputs[0]))


register_rule("NormBackward0", "LinalgVectorNormBackward0", "StdBackward0", "VarBackward0")(whole)
