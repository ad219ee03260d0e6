"""Ops that only move, repeat or join elements: each part goes the same way as the value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minitorch
from minitorch.autograd import wrap
from minitorch.interpret.parts import Parts, as_parts
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import linear_map, register_rule
from minitorch.ops.generic import LinearMap


@register_rule(
    "ViewBackward0",
    "UnsafeViewBackward0",
    "SqueezeBackward0",
    "UnsqueezeBackward0",
    moves_elements=True,
)
def reshape(call: Call, x: Parts) -> Parts:
    """Another shape."""
    return x.reshape(call.shapes[0])


@register_rule("PermuteBackward0", moves_elements=True)
def permute(call: Call, x: Parts) -> Parts:
    """Another order of the axes."""
    order = np.argsort(call.ctx)
    return x.map(lambda part: part.permute(0, *(int(axis) + 1 for axis in order)))


@register_rule("TransposeBackward0", moves_elements=True)
def transpose(call: Call, x: Parts) -> Parts:
    """Two axes swapped."""
    a, b = call.ctx
    return x.map(lambda part: part.transpose(a + 1, b + 1) if part.dim() > 1 else part)


@register_rule("TBackward0", moves_elements=True)
def t(call: Call, x: Parts) -> Parts:
    """A matrix's transpose."""
    return x.map(lambda part: part.transpose(-1, -2) if part.dim() == 3 else part)


@register_rule("ExpandBackward0", moves_elements=True)
def expand(call: Call, x: Parts) -> Parts:
    """Axes repeated."""
    shape = call.shapes[0]

    def grow(part: Any) -> Any:
        missing = len(shape) + 1 - part.dim()
        lifted = part.reshape(part.shape[0], *(1,) * missing, *part.shape[1:])
        return lifted.expand(part.shape[0], *shape)

    return x.map(grow)


@register_rule("CloneBackward0", moves_elements=True)
def clone(call: Call, x: Parts) -> Parts:
    """A copy."""
    return x


@register_rule("SelectBackward0", "SliceBackward0", moves_elements=True)
def select(call: Call, x: Parts) -> Parts:
    """``x[index]`` with integers, slices, None and ``...``."""
    if isinstance(getattr(call.op, "__self__", None), LinearMap):
        return linear_map(call, x)
    _, key = call.ctx
    return x.map(lambda part: part[(slice(None), *key)])


@register_rule("IndexBackward0", moves_elements=True)
def index(call: Call, x: Parts) -> Parts:
    """``x[index]`` with index arrays and masks, which stay whole."""
    shape, key = call.ctx
    places = wrap(np.arange(math.prod(shape)).reshape(shape)[key])
    return x.map(lambda part: part.reshape(part.shape[0], -1)[:, places])


@register_rule(
    "FlipBackward0",
    "RollBackward0",
    "GatherBackward0",
    "IndexSelectBackward0",
    "SortBackward0",
    "TopkBackward0",
    moves_elements=True,
)
def taken(call: Call, x: Parts) -> Parts:
    """Elements taken in another order; what the order depends on stays whole."""
    return linear_map(call, x)


@register_rule("CatBackward0", moves_elements=True)
def cat(call: Call, *inputs: Any) -> Parts:
    """Joined along an axis; constants among the pieces are irrelevant."""
    return _joined(inputs, lambda pieces: minitorch.cat(pieces, call.ctx[0] + 1))


@register_rule("StackBackward0", moves_elements=True)
def stack(call: Call, *inputs: Any) -> Parts:
    """Joined along a new axis."""
    return _joined(inputs, lambda pieces: minitorch.stack(pieces, call.ctx + 1))


def _joined(inputs: tuple, join: Any) -> Parts:
    example = next(each for each in inputs if isinstance(each, Parts))
    if example.ids and not all(isinstance(each, Parts) for each in inputs):
        raise NotImplementedError(
            "contextual decomposition: token ids were joined with constant ids; pass them as part "
            "of the input"
        )
    pieces = [as_parts(each, example.rel.shape[0]) for each in inputs]
    return Parts(
        join([each.rel for each in pieces]), join([each.irr for each in pieces]), example.ids
    )


@register_rule("SplitBackward0", "SplitWithSizesBackward0", moves_elements=True)
def split(call: Call, x: Parts) -> tuple[Parts, ...]:
    """Pieces along an axis."""
    where, _, spans, *_ = call.ctx
    lead = (slice(None),) * (where + 1)
    cuts = [(*lead, slice(*span)) for span in spans]
    return tuple(Parts(x.rel[cut], x.irr[cut], x.ids) for cut in cuts)


@register_rule("UnbindBackward0", moves_elements=True)
def unbind(call: Call, x: Parts) -> tuple[Parts, ...]:
    """Slices along an axis."""
    pairs = zip(x.rel.unbind(call.ctx[0] + 1), x.irr.unbind(call.ctx[0] + 1), strict=True)
    return tuple(Parts(rel, irr, x.ids) for rel, irr in pairs)


def look_up(table: Any, ids: Any, chosen: Parts) -> Parts:
    """Rows of `table`; a position is wholly relevant or wholly irrelevant."""
    rows = minitorch.nn.functional.embedding(ids, table)
    return Parts(
        chosen.rel.unsqueeze(-1).to(rows.dtype) * rows,
        chosen.irr.unsqueeze(-1).to(rows.dtype) * rows,
    )


@register_rule("EmbeddingBackward0", moves_elements=True)
def embedding(call: Call, weight: Any, ids: Any) -> Parts:
    """A look-up of ids that are part of the input."""
    if isinstance(weight, Parts) or not isinstance(ids, Parts):
        raise NotImplementedError(
            "contextual decomposition: an embedding's table depends on the input; there is a rule "
            "for its ids only"
        )
    return look_up(weight, call.inputs[1], ids)


@register_rule("torch::autograd::CopySlices")
def copy_slices(call: Call, base: Any, value: Any) -> Parts:
    """``base[index] = value``: both parts of the value are written over those of the base."""
    masks = next(each for each in (base, value) if isinstance(each, Parts)).rel.shape[0]
    base, value = as_parts(base, masks), as_parts(value, masks)

    def written(old: Any, new: Any) -> Any:
        out = wrap(np.array(old._array, copy=True))
        for number in range(masks):
            # The view that was written to, of each mask's copy in turn: it shares its memory.
            call.ctx(wrap(out._array[number]))._array[...] = new._array[number]
        return out

    return Parts(written(base.rel, value.rel), written(base.irr, value.irr))
