"""Normalisation and softmax: statistics stay whole.

Once mean and variance are constants a norm is a scale and a shift. The scale acts on each part; the
shift is a bias, shared in proportion, and irrelevant where both parts are zero: the published rule
for batch norm, which ours for layer norm repeats. In evaluation batch norm is a product and a sum
with constants, so its rule is in ``arithmetic.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.interpret.parts import Parts, share_bias
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import register_rule
from minitorch.interpret.rules.pointwise import whole


def _affine(call: Call, x: Parts, scale: np.ndarray, shift: np.ndarray) -> Parts:
    dtype = x.rel._array.dtype
    factor, bias = wrap(scale.astype(dtype, copy=False)), wrap(shift.astype(dtype, copy=False))
    return share_bias(x.rel * factor, x.irr * factor, bias, call.run)


def _constant(call: Call, x: Any, *others: Any) -> list[np.ndarray | None]:
    if not isinstance(x, Parts) or any(isinstance(each, Parts) for each in others):
        raise NotImplementedError(
            f"contextual decomposition: weight or bias of {call.name} depend on the input "
            f"({call.where}); there is a rule for its input only"
        )
    return [None if each is None else each._array for each in others]


@register_rule("NativeBatchNormBackward0")
def batch_norm(call: Call, x: Parts, weight: Any, bias: Any) -> Parts:
    """Batch norm with the statistics of the batch."""
    w, b = _constant(call, x, weight, bias)
    mean, inverse, _ = call.ctx
    scale = inverse if w is None else inverse * w
    shift = -mean * scale if b is None else b - mean * scale
    column = (-1, *(1,) * (len(call.shapes[0]) - 2))
    return _affine(call, x, scale.reshape(column), shift.reshape(column))


@register_rule("NativeLayerNormBackward0")
def layer_norm(call: Call, x: Parts, weight: Any, bias: Any) -> Parts:
    """Layer norm, and group norm, which is made of it."""
    w, b = _constant(call, x, weight, bias)
    mean, inverse, dims, _ = call.ctx
    shape = call.shapes[0]
    rows = (*shape[: len(shape) - dims], *(1,) * dims)
    if math.prod(rows) != mean.size:
        raise RuntimeError(f"{call.name}: statistics of shape {mean.shape} for {shape}")
    mean, inverse = mean.reshape(rows), inverse.reshape(rows)
    scale = inverse if w is None else inverse * w
    shift = -mean * scale if b is None else b - mean * scale
    return _affine(call, x, scale, shift)


# Weights of attention, gates: they choose, and what they choose from is decomposed.
register_rule("SoftmaxBackward0", "LogSoftmaxBackward0", "LogsumexpBackward0")(whole)
