"""Recurrent cells and layers, with zoneout.

A step's parts are computed in ``recurrent_steps.py``. Here are the rules for one step and for a
whole sequence. Zoneout in evaluation is a fixed mix of old and new state, hence linear.

Masks over words have a structure that saves most of the work: all masks read the same words, so the
product with the input's weights is formed once; and before its first relevant word a mask's parts
are those of the empty mask, so it joins the work only there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.interpret.parts import Parts, as_parts
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import register_rule
from minitorch.interpret.rules.recurrent_steps import STEPS, Step, Weights, product


def _weights(call: Call, weights: tuple) -> Weights:
    if any(isinstance(each, Parts) for each in weights):
        raise NotImplementedError(
            f"contextual decomposition: a weight of {call.name} depends on the input "
            f"({call.where}); there is a rule for its input and states only"
        )
    arrays = [None if each is None else each._array for each in weights]
    # A product with few rows is faster with the matrix in its own order than through a transpose.
    to_gates, recurrent, *projection = [
        None if each is None else np.ascontiguousarray(each.T)
        for each in (*arrays[:2], *arrays[4:])
    ]
    assert to_gates is not None
    assert recurrent is not None
    zero = np.zeros(to_gates.shape[1], to_gates.dtype)
    bias_ih, bias_hh = [zero if each is None else each for each in arrays[2:4]]
    return Weights(to_gates, recurrent, bias_ih, bias_hh, projection[0] if projection else None)


def _ownership(x: np.ndarray) -> np.ndarray:
    """How much of each input vector is relevant: ``(masks, rows)``, 1 and 0 for whole words."""
    relevant, rest = np.abs(x).sum(axis=-1)
    return relevant / (relevant + rest + np.finfo(relevant.dtype).tiny)


def _are_words(x: np.ndarray, own: np.ndarray) -> bool:
    """Whether the masks only distribute whole words, the same for all of them."""
    total = x[0] + x[1]
    return bool(((own == 0) | (own == 1)).all() and (total == total[:1]).all())


def _projected(x: np.ndarray, own: np.ndarray, weight: np.ndarray, words: bool) -> np.ndarray:
    """``x @ weight``; once for all masks if they distribute whole words."""
    if not words:
        return product(x, weight)
    once = product(x[0, 0] + x[1, 0], weight)
    read = np.empty((2, *own.shape, once.shape[-1]), once.dtype)
    np.multiply(own[..., None], once, out=read[0])
    np.subtract(once, read[0], out=read[1])
    return read


def _arrays(inputs: tuple, count: int) -> list[np.ndarray]:
    """Return the first `count` inputs as stacked arrays, constants as irrelevant."""
    masks = next(each for each in inputs if isinstance(each, Parts)).rel.shape[0]
    parts = [as_parts(each, masks) for each in inputs[:count]]
    return [np.stack([each.rel._array, each.irr._array]) for each in parts]


def _parts(array: np.ndarray) -> Parts:
    return Parts(wrap(array[0]), wrap(array[1]))


# -- rules ---------------------------------------------------------------------------------------


def _cell(kind: str, call: Call, inputs: tuple) -> tuple:
    states = 2 if kind == "LSTM" else 1
    x, *state = _arrays(inputs, 1 + states)
    weights = _weights(call, inputs[1 + states :])
    if call.run.lstm_bias == "all_but_last" and kind == "LSTM":
        raise NotImplementedError(
            'contextual decomposition: lstm_bias="all_but_last" needs to see the whole sequence; '
            "use nn.LSTM in place of a loop over cells, or another lstm_bias"
        )
    own = _ownership(x)
    to_gates, step = STEPS[kind](weights)
    read = _projected(x, own, to_gates, _are_words(x, own))
    if call.run.lstm_bias == "irrelevant":
        own[...] = 0
    call.run.after_lstm |= kind == "LSTM"
    return tuple(_parts(each) for each in step(read, tuple(state), own[..., None]))


@register_rule("LstmCellBackward0")
def lstm_cell(call: Call, *inputs: Any) -> tuple:
    """One step of the LSTM: inputs ``x, h, c`` and weights."""
    return _cell("LSTM", call, inputs)


@register_rule("GruCellBackward0")
def gru_cell(call: Call, *inputs: Any) -> tuple:
    """One step of the GRU: inputs ``x, h`` and weights."""
    return _cell("GRU", call, inputs)


@register_rule("RnnCellBackward0")
def rnn_cell(call: Call, *inputs: Any) -> tuple:
    """One step of the simple recurrence: inputs ``x, h`` and weights."""
    return _cell(f"RNN_{call.ctx.upper()}", call, inputs)


@register_rule("LstmBackward0", "GruBackward0", "RnnBackward0")
def sequence(call: Call, *inputs: Any) -> tuple:
    """A whole layer in one direction: inputs ``(rows, I)``, step after step, states and weights.

    A batch of sequences of different lengths has fewer rows in later steps; the states of those
    that are over stay as they are.
    """
    kind, schedule, extras, *_ = call.ctx
    if extras.drop_candidate is not None or extras.drop_hidden is not None:
        raise NotImplementedError(
            f"contextual decomposition: {call.name} drops units at random ({call.where}); put the "
            "model into evaluation mode"
        )
    states = 2 if kind == "LSTM" else 1
    x, *state = _arrays(inputs, 1 + states)
    if "step" not in call.memo:
        weights = _weights(call, inputs[1 + states :])
        call.memo["step"] = STEPS[kind](weights)
    to_gates, step = call.memo["step"]
    own = _ownership(x)
    words = _are_words(x, own)
    read = _projected(x, own, to_gates, words)
    first = np.zeros(len(own), np.int64)
    if words and _untouched(state):
        first = _first_relevant(own, schedule)
    if kind == "LSTM":
        call.run.after_lstm = True
        if call.run.lstm_bias == "irrelevant":
            own[...] = 0
        elif call.run.lstm_bias == "all_but_last":
            _drop_last(own, schedule)
    # Masks in the order in which they join the work.
    order = np.argsort(first, kind="stable")
    sorted_already = bool((order[:-1] < order[1:]).all())
    joined = np.searchsorted(first[order], np.arange(len(schedule.steps)), side="right")
    chain, outputs = _empty_mask(int(first.max()), call, x, read, state, step)
    if not sorted_already:
        read, own, state = read[:, order], own[order], [each[:, order] for each in state]
    output = np.empty((*read.shape[:-1], state[0].shape[-1]), read.dtype)
    output[0] = 0
    output[1] = outputs
    begin, before = int(first.min()), 0
    for number, ((rows, n), active) in enumerate(zip(schedule.steps, joined, strict=True)):
        if number < begin:
            continue
        if number and before < active:
            for each, start in zip(state, chain[number], strict=True):
                each[:, before:active] = start
        before = active
        at_work = [each[:, :active] for each in state]
        _advance(step, extras, read[:, :active, rows], at_work, own[:active, rows], rows, n)
        output[:, :active, rows] = at_work[0][:, :, :n]
    for each, end in zip(state, chain[-1], strict=True):
        each[:, before:] = end
    if not sorted_already:
        back = np.argsort(order)
        output, state = output[:, back], [each[:, back] for each in state]
    return tuple(_parts(each) for each in (output, *state))


def _advance(
    step: Step, extras: Any, read: np.ndarray, state: list, own: np.ndarray, rows: slice, n: int
) -> None:
    """Take one step, in place, for the first `n` sequences."""
    old = tuple(each[:, :, :n] for each in state)
    keeps = (extras.keep_hidden, extras.keep_cell)
    new = step(read, old, own[..., None])
    for each, before, after, keep in zip(state, old, new, keeps, strict=False):
        each[:, :, :n] = _zoneout(before, after, keep, rows)


def _untouched(state: list) -> bool:
    """Whether the initial state is wholly irrelevant, the same for all masks."""
    return all(not each[0].any() and (each[1] == each[1, :1]).all() for each in state)


def _first_relevant(own: np.ndarray, schedule: Any) -> np.ndarray:
    """Return for each mask how many steps pass before it sees a relevant word."""
    seen = np.stack([own[:, rows].any(axis=1) for rows, _ in schedule.steps], axis=1)
    return np.where(seen.any(axis=1), seen.argmax(axis=1), len(schedule.steps))


def _empty_mask(
    count: int, call: Call, x: np.ndarray, read: np.ndarray, state: list, step: Step
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """Return what the empty mask, to which all is irrelevant, leads to.

    Its states after 0, 1, ... `count` steps, each (2, 1, batch, hidden), and its outputs (rows,
    hidden), right for these steps. They are remembered with the call as far as they were needed.
    """
    _, schedule, extras, *_ = call.ctx
    start = [each[:, :1].copy() for each in state]
    words = x[:, 0].sum(axis=0)
    memo = call.memo
    same = "words" in memo and np.array_equal(memo["words"], words)
    if not same or not all(map(np.array_equal, memo["states"][0], start)):
        memo["words"], memo["states"] = words, [start]
        memo["outputs"] = np.zeros((len(words), state[0].shape[-1]), read.dtype)
    states, outputs = memo["states"], memo["outputs"]
    for rows, n in schedule.steps[len(states) - 1 : count]:
        everything = read[:, :1, rows].sum(axis=0)
        alone = np.stack([np.zeros_like(everything), everything])
        current = [each.copy() for each in states[-1]]
        _advance(step, extras, alone, current, np.zeros((1, n), read.dtype), rows, n)
        outputs[rows] = current[0][1, 0, :n]
        states.append(current)
    return states[: count + 1], outputs


def _drop_last(own: np.ndarray, schedule: Any) -> None:
    """Take the biases from the last relevant word of every sequence, for every mask."""
    last = np.full((own.shape[0], schedule.batch), -1)
    for rows, n in schedule.steps:
        numbers = np.arange(rows.start, rows.stop)
        last[:, :n] = np.where(own[:, rows] > 0.5, numbers, last[:, :n])
    mask, sequence = np.nonzero(last >= 0)
    own[mask, last[mask, sequence]] = 0


def _zoneout(old: np.ndarray, new: np.ndarray, keep: Any, rows: slice) -> np.ndarray:
    """Mix old and new state: by the mask's mean in evaluation, or by the mask that was drawn."""
    if keep is None:
        return new
    if hasattr(keep, "rate"):
        return keep.rate * old + (1 - keep.rate) * new
    return np.where(keep.mask[rows], old, new)
