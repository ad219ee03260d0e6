"""Pooling and reductions: linear once it is known which element won.

A maximum is read from both parts at the place where the sum of the parts, the value itself, is
largest (Singh et al. 2019). Means and sums act on each part alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.interpret.parts import Parts
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import register_rule
from minitorch.ops.axes import kept_shape


@register_rule("MaxPool2DWithIndicesBackward0")
def max_pool(call: Call, x: Parts) -> Parts:
    """Read both parts at the winners of the forward pass."""
    winner, masks = call.ctx.winner, x.rel.shape[0]
    if winner is None:
        raise RuntimeError(f"the winners of {call.name} were not recorded ({call.where})")
    context = call.ctx._replace(
        winner=np.broadcast_to(winner, (masks, *winner.shape)), shape=tuple(x.rel.shape)
    )
    return x.map(lambda part: call.op.__self__(part, context))


@register_rule("AvgPool2DBackward0")
def avg_pool(call: Call, x: Parts) -> Parts:
    """The mean of each part."""
    context = call.ctx._replace(shape=tuple(x.rel.shape))
    return x.map(lambda part: call.op.__self__(part, context))


@register_rule("AmaxBackward0", "AminBackward0", "MaxBackward1", "MinBackward1")
def extreme(call: Call, x: Parts) -> Parts:
    """Read both parts at the extreme; elements that tie share evenly, as in the gradient."""
    value, over = call.inputs[0]._array, call.ctx[1]
    hit = value == call.outputs[0]._array.reshape(kept_shape(value.shape, over))
    count = np.maximum(hit.sum(axis=over, keepdims=True), 1)  # nothing equals nan
    share = wrap((hit / count).astype(value.dtype))
    shared = x.map(lambda part: part * share)
    return _reduced(shared, over, lambda part, dims: part.sum(dims), call.shapes[0])


@register_rule("SumBackward0", "SumBackward1")
def total(call: Call, x: Parts) -> Parts:
    """The sum of each part."""
    shape, kept, everything = call.ctx
    axes = [
        axis
        for axis, (before, after) in enumerate(zip(shape, kept, strict=True))
        if everything or before != after
    ]
    return _reduced(x, axes, lambda part, dims: part.sum(dims), call.shapes[0])


@register_rule("MeanBackward0", "MeanBackward1")
def mean(call: Call, x: Parts) -> Parts:
    """The mean of each part."""
    return _reduced(x, call.ctx[1], lambda part, dims: part.mean(dims), call.shapes[0])


def _reduced(x: Parts, axes: Any, reduce: Any, shape: tuple[int, ...]) -> Parts:
    dims = tuple(int(axis) + 1 for axis in axes)
    return x.map(lambda part: reduce(part, dims) if dims else part).reshape(shape)
