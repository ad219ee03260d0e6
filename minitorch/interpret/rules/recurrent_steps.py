"""One step of the recurrent cells in parts: Murdoch, Liu and Yu (2018), section 3.2.

Inside a cell every gate's pre-activation has three parts: what comes from the relevant side, from
the irrelevant side, and the bias. Its squashing function is split between the three, and the
products of gates are multiplied out:

* relevant x relevant, and relevant x bias, is relevant;
* whatever has an irrelevant factor is irrelevant;
* bias x bias belongs to the word that is read: relevant for relevant words (the author's reading,
  by which a whole sentence's score is its prediction), irrelevant by the paper's equation 32, or
  as ``lstm_bias`` says. For inputs that are partly relevant it is shared in proportion.

The output gate stays whole. For the GRU and the simple recurrence the literature has no rule; ours
repeat these steps: the GRU's update gate is split like the LSTM's gates, its reset gate, which only
scales what the candidate reads, stays whole.

Parts are plain arrays here, with one axis more: [0] is relevant, [1] irrelevant. Both take the same
products, and a step is a few calls in place of a hundred small ops. The rules are in
``recurrent.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minitorch.autograd import wrap
from minitorch.interpret.parts import Run, share_bias

__all__ = ["STEPS", "Step", "Weights", "product"]


class Weights(NamedTuple):
    """The constants of one layer, matrices ready to be multiplied from the right."""

    to_gates: np.ndarray
    recurrent: np.ndarray
    bias_ih: np.ndarray
    bias_hh: np.ndarray
    projection: np.ndarray | None


# -- one step ------------------------------------------------------------------------------------
# ``_lstm(weights)`` and its like prepare what is the same at every step. They return the matrix
# that the input is multiplied with, and the step, ``step(read, state, own) -> state``. `read` is
# that product, (2, masks, batch, gates * hidden); states are (2, masks, batch, hidden); `own` is
# (masks, batch, 1), the relevant share of what is due to the biases alone.

Step = Callable[[np.ndarray, tuple, np.ndarray], tuple]


def product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """``x @ weight`` as one product of matrices."""
    return (x.reshape(-1, x.shape[-1]) @ weight).reshape(*x.shape[:-1], weight.shape[1])


def _squashed_with(read: np.ndarray, bias: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Split ``tanh(rel + irr + bias)``: both parts, where ``base = tanh(bias)`` is the bias's own.

    This is the paper's average over orders in which the bias comes first.
    """
    three = np.empty((3, *read.shape[1:]), read.dtype)
    three[:2] = read
    np.add(read[0], read[1], out=three[2])
    three += bias
    np.tanh(three, out=three)
    parts = three[2] - three[1::-1]
    parts += three[:2]
    parts -= base
    parts *= 0.5
    return parts


def _gated(gate: np.ndarray, gate_bias: Any, x: np.ndarray, x_bias: Any = None) -> np.ndarray:
    """Multiply a gate by a value, both in three parts, bias x bias left out."""
    out = (gate[0] + gate_bias) * x
    both = x[0] + x[1]
    if x_bias is not None:
        out[0] += gate[0] * x_bias
        both += x_bias
    both *= gate[1]
    out[1] += both
    return out


def _give(out: np.ndarray, own: np.ndarray, biases: np.ndarray) -> None:
    """Add what is due to biases alone, by whose word it is."""
    due = own * biases
    out[0] += due
    out[1] += biases - due


def _lstm(weights: Weights) -> tuple[np.ndarray, Step]:
    size = len(weights.bias_ih) // 4
    i, f, g, o = (slice(k * size, (k + 1) * size) for k in range(4))
    inner = slice(0, 3 * size)  # the gates that are split
    # logistic(x) = (1 + tanh(x/2)) / 2: with halved weights one tanh serves all gates.
    half = np.full(4 * size, 0.5, weights.bias_ih.dtype)
    half[g] = 1
    to_gates, recurrent = weights.to_gates * half, weights.recurrent * half
    bias = (weights.bias_ih + weights.bias_hh) * half
    base = np.tanh(bias[inner])
    half = half[inner]
    gates = base * half + (1 - half)
    bias_i, bias_f, bias_g = gates[i], gates[f], gates[g]
    biases = bias_i * bias_g

    def step(read: np.ndarray, state: tuple, own: np.ndarray) -> tuple:
        h, c = state
        read = read + product(h, recurrent)
        parts = _squashed_with(read[..., inner], bias[inner], base)
        parts *= half
        new_c = _gated(parts[..., i], bias_i, parts[..., g], bias_g)
        new_c += _gated(parts[..., f], bias_f, c)
        _give(new_c, own, biases)
        out_gate = np.tanh(read[0, ..., o] + read[1, ..., o] + bias[o])
        out_gate += 1
        out_gate *= 0.5
        new_h = _squashed(new_c)
        new_h *= out_gate
        if weights.projection is not None:
            new_h = product(new_h, weights.projection)
        return new_h, new_c

    return to_gates, step


def _squashed(x: np.ndarray) -> np.ndarray:
    """The hyperbolic tangent, split between two."""
    alone, whole = np.tanh(x), np.tanh(x[0] + x[1])
    out = whole - alone[::-1]
    out += alone
    out *= 0.5
    return out


def _gru(weights: Weights) -> tuple[np.ndarray, Step]:
    size = len(weights.bias_ih) // 3
    r, z, n = (slice(k * size, (k + 1) * size) for k in range(3))
    half = np.full(3 * size, 0.5, weights.bias_ih.dtype)
    half[n] = 1
    to_gates, recurrent = weights.to_gates * half, weights.recurrent * half
    bias = (weights.bias_ih + weights.bias_hh) * half
    base = np.tanh(bias[z])
    gate_bias = (base + 1) * 0.5

    def step(read: np.ndarray, state: tuple, own: np.ndarray) -> tuple:
        (h,) = state
        from_h = product(h, recurrent)
        reset = 0.5 + 0.5 * np.tanh((read[..., r] + from_h[..., r]).sum(axis=0) + bias[r])
        gate = _squashed_with(read[..., z] + from_h[..., z], bias[z], base) * 0.5
        due = weights.bias_ih[n] + reset * weights.bias_hh[n]
        new_bias = np.tanh(due)
        new = _squashed_with(read[..., n] + reset * from_h[..., n], due, new_bias)
        # 1 - z takes the role of the LSTM's input gate, z that of its forget gate.
        out = _gated(-gate, 1 - gate_bias, new, new_bias)
        out += _gated(gate, gate_bias, h)
        _give(out, own, (1 - gate_bias) * new_bias)
        return (out,)

    return to_gates, step


def _tanh_rnn(weights: Weights) -> tuple[np.ndarray, Step]:
    bias = weights.bias_ih + weights.bias_hh
    base = np.tanh(bias)

    def step(read: np.ndarray, state: tuple, own: np.ndarray) -> tuple:
        out = _squashed_with(read + product(state[0], weights.recurrent), bias, base)
        _give(out, own, base)
        return (out,)

    return weights.to_gates, step


def _relu_rnn(weights: Weights) -> tuple[np.ndarray, Step]:
    bias = wrap(weights.bias_ih + weights.bias_hh)

    def step(read: np.ndarray, state: tuple, own: np.ndarray) -> tuple:
        rel, irr = read + product(state[0], weights.recurrent)
        parts = share_bias(wrap(rel), wrap(irr), bias, Run())
        relevant = parts.rel.relu()
        return (np.stack([relevant._array, (parts.total.relu() - relevant)._array]),)

    return weights.to_gates, step


STEPS = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _tanh_rnn, "RNN_RELU": _relu_rnn}
