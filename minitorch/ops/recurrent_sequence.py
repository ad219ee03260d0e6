"""A recurrence over a whole sequence as one node of the graph.

The work is done by ``recurrent_kernels.py`` on plain arrays. Where a gradient shall itself be
differentiated, the sequence is spelled out in elementary ops once more (``recurrent_plain.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.autograd import Node, TensorBase, record_many
from minitorch.autograd.grad_mode import mode
from minitorch.ops import recurrent_plain
from minitorch.ops._arguments import quiet, widen
from minitorch.ops._composed import composed_gradients
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_common import NO_EXTRAS, Extras, arrays_of, narrow, operands
from minitorch.ops.recurrent_kernels import KERNELS
from minitorch.ops.recurrent_schedule import Schedule

__all__ = ["sequence"]

_STATES = {"LSTM": 2}
_NAMES = {"LSTM": "LstmBackward0", "GRU": "GruBackward0"}


@quiet
def sequence(
    kind: str,
    x: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    schedule: Schedule,
    extras: Extras = NO_EXTRAS,
) -> tuple[Tensor, ...]:
    """Run a recurrence over all steps.

    Parameters
    ----------
    kind : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
    x : Tensor
        (rows, I): the inputs of all steps, step after step.
    state : sequence of Tensor
        The initial state: (batch, H), for the LSTM ``(h, c)``.
    weights : sequence of Tensor or None
        ``(w_ih, w_hh, b_ih, b_hh)`` in PyTorch's layout, for the LSTM also ``w_hr`` (P, H) or None;
        both biases or neither.
    schedule : Schedule
        Which rows belong to which step, and the direction.
    extras : Extras
        Zoneout and dropout of the recurrence.

    Returns
    -------
    tuple of Tensor
        Outputs (rows, H), then each final state (batch, H).
    """
    inputs = operands((x, *state, *weights), weights[0])
    arrays = arrays_of(*inputs)
    chains, memory = KERNELS[kind][0](arrays, schedule, extras)
    recorded = mode.grad_enabled and any(t is not None and t.requires_grad for t in inputs)
    dtype = inputs[0]._array.dtype
    results = [chains[0].outputs(recorded), *(chain.final(schedule) for chain in chains)]
    results = [each.astype(dtype, copy=False) for each in results]
    return record_many(
        results,
        sequence_backward,
        inputs,
        (*inputs, *memory),
        (kind, schedule, extras, len(inputs)),
        _NAMES.get(kind, "RnnBackward0"),
    )


@quiet
def sequence_backward(node: Node, grads: Any) -> tuple:
    kind, schedule, extras, count = node.ctx
    saved, needs = node.saved, node.needs_input_grad
    inputs, memory = saved[:count], saved[count:]
    states = _STATES.get(kind, 1)
    if any(isinstance(g, TensorBase) for g in grads):

        def composition(x: Tensor, *rest: Tensor | None) -> tuple[Tensor, ...]:
            return recurrent_plain.sequence(kind, x, rest[:states], rest[states:], schedule, extras)

        return composed_gradients(composition, inputs, grads, needs)
    arrays = tuple(None if a is None else widen(a) for a in inputs)
    grad_y = None if grads[0] is None else widen(grads[0])
    finals = [
        np.zeros_like(initial) if g is None else np.array(widen(g))
        for g, initial in zip(grads[1:], arrays[1:], strict=False)
    ]
    found = KERNELS[kind][1]([grad_y, *finals], arrays, memory, schedule, extras, needs)
    return narrow(found, inputs[0])
