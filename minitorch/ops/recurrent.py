"""One step of the recurrent cells, each fused into one node: forward and backward in a few GEMMs.

What a step computes is spelled out in ``recurrent_plain.py``, which second derivatives go through.
Here all gates come from one product with the input and one with the hidden state, and are computed
and differentiated in place: in elementary ops an LSTM step makes a dozen nodes and twice as many
temporary arrays. Gates lie in blocks, ``(gates, batch, H)``, so that each is contiguous.

Whole sequences are one node in ``recurrent_sequence.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import Node, TensorBase, record, record_many
from minitorch.ops import recurrent_plain as plain
from minitorch.ops._arguments import quiet, widen
from minitorch.ops._composed import composed_gradients
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_common import (
    affine,
    arrays_of,
    linear_gradients,
    logistic_of_minus,
    narrow,
    operands,
)
from minitorch.ops.recurrent_memory import reused

__all__ = ["gru_cell", "lstm_cell", "rnn_cell"]

Weights = tuple[Tensor, Tensor, Tensor, Tensor]


def _blocks(w: np.ndarray, gates: int) -> np.ndarray:
    return w.reshape(gates, -1, *w.shape[1:])


def _products(x: np.ndarray, w: np.ndarray, gates: int) -> np.ndarray:
    """``x @ w.T``, (gates, batch, H)."""
    return np.matmul(x, _blocks(w, gates).swapaxes(1, 2))


def _logistic(x: np.ndarray) -> None:
    """Replace `x` by its logistic function, in place."""
    np.negative(x, out=x)
    logistic_of_minus(x)


def _block_gradients(
    delta: np.ndarray, x: np.ndarray, w: np.ndarray, needs: tuple[bool, bool, bool]
) -> tuple:
    """Gradients of ``x @ w.T + b`` for ``x``, ``w`` and ``b``, from (gates, batch, H)."""
    gates, _, size = delta.shape
    for_x = for_w = for_b = None
    if needs[0]:
        for_x = np.add.reduce(np.matmul(delta, _blocks(w, gates)), axis=0)
    if needs[1]:
        for_w = reused((gates, size, x.shape[1]), x.dtype)
        for_w = np.matmul(delta.swapaxes(1, 2), x, out=for_w).reshape(w.shape)
    if needs[2]:
        for_b = np.add.reduce(delta, axis=1).reshape(-1)
    return for_x, for_w, for_b


# ------------------------------------------------------------------------------------------ LSTM


def _plain_lstm(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor | None) -> tuple:
    return plain.lstm_step(x, (h, c), weights)


@quiet
def lstm_cell(x: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """One LSTM step: input ``(B, I)``, state ``(h, c)`` of ``(B, H)``; returns the new state.

    `weights` are ``(w_ih (4H, I), w_hh (4H, H), b_ih or None, b_hh or None)``.
    """
    inputs = operands((x, *state, *weights), weights[0])
    ax, ah, ac, w_ih, w_hh, b_ih, b_hh = arrays_of(*inputs)
    gates = _products(ax, w_ih, 4)
    gates += _products(ah, w_hh, 4)
    if b_ih is not None:
        gates += _blocks(b_ih + b_hh, 4)[:, None, :]
    _logistic(gates[:2])
    _logistic(gates[3])
    i, f, g, o = gates
    np.tanh(g, out=g)
    new_c = f * ac
    new_c += i * g
    squashed = np.tanh(new_c)
    new_h = o * squashed
    dtype = inputs[0]._array.dtype
    return record_many(
        (new_h.astype(dtype, copy=False), new_c.astype(dtype, copy=False)),
        lstm_cell_backward,
        inputs,
        inputs,
        (gates, squashed),
        "LstmCellBackward0",
    )


@quiet
def lstm_cell_backward(node: Node, grads: Any) -> tuple:
    saved = node.saved
    if any(isinstance(g, TensorBase) for g in grads):
        return composed_gradients(_plain_lstm, saved, grads, node.needs_input_grad)
    x, h, c, w_ih, w_hh, *_ = saved
    gates, squashed = node.ctx
    need_x, need_h, need_c, need_wi, need_wh, need_bi, need_bh = node.needs_input_grad
    i, f, g, o = gates
    grad_h, grad_c = grads
    # First the slopes: y(1-y) for the logistic, 1-y^2 for tanh.
    delta = np.multiply(gates, gates)
    np.subtract(gates, delta, out=delta)
    d_i, d_f, d_g, d_o = delta
    np.multiply(g, g, out=d_g)
    np.subtract(1, d_g, out=d_g)
    if grad_h is None:
        d_o[...] = 0
        total = widen(grad_c)
    else:
        grad_h = widen(grad_h)
        # d loss / d c' gathers what comes through h' = o * tanh(c') and what comes directly.
        total = squashed * squashed
        np.subtract(1, total, out=total)
        total *= o
        total *= grad_h
        if grad_c is not None:
            total += grad_c
        d_o *= grad_h
        d_o *= squashed
    delta[:3] *= total
    d_i *= g
    d_f *= widen(c)
    d_g *= i
    for_h, for_wh, for_bias = _block_gradients(
        delta, widen(h), widen(w_hh), (need_h, need_wh, need_bi or need_bh)
    )
    for_x, for_wi, _ = _block_gradients(delta, widen(x), widen(w_ih), (need_x, need_wi, False))
    for_c = total * f if need_c else None
    return narrow((for_x, for_h, for_c, for_wi, for_wh, for_bias, for_bias if need_bh else None), x)


# ------------------------------------------------------------------------------------------- GRU


def _plain_gru(x: Tensor, h: Tensor, *weights: Tensor | None) -> Tensor:
    return plain.gru_step(x, (h,), weights)[0]


@quiet
def gru_cell(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """One GRU step: input ``(B, I)``, state ``(B, H)``; returns the new state.

    `weights` are ``(w_ih (3H, I), w_hh (3H, H), b_ih or None, b_hh or None)``.
    """
    inputs = operands((x, h, *weights), weights[0])
    ax, ah, w_ih, w_hh, b_ih, b_hh = arrays_of(*inputs)
    gates, from_h = _products(ax, w_ih, 3), _products(ah, w_hh, 3)
    if b_ih is not None:
        gates += _blocks(b_ih, 3)[:, None, :]
        from_h += _blocks(b_hh, 3)[:, None, :]
    gates[:2] += from_h[:2]
    _logistic(gates[:2])
    r, z, n = gates
    h_n = from_h[2]
    n += r * h_n
    np.tanh(n, out=n)
    new_h = ah - n
    new_h *= z
    new_h += n
    return record(
        new_h.astype(inputs[0]._array.dtype, copy=False),
        gru_cell_backward,
        inputs,
        inputs,
        (gates, h_n),
        "GruCellBackward0",
    )


@quiet
def gru_cell_backward(node: Node, grad: Any) -> tuple:
    saved, needs = node.saved, node.needs_input_grad
    if isinstance(grad, TensorBase):
        return composed_gradients(_plain_gru, saved, grad, needs)
    x, h, w_ih, w_hh, *_ = saved
    gates, h_n = node.ctx
    r, z, n = gates
    grad, wide_h = widen(grad), widen(h)
    # `delta` is for the input's share of the gates, `delta_h` for the state's: they differ in n.
    delta = np.empty_like(gates)
    d_r, d_z, d_n = delta
    np.multiply(grad, 1 - z, out=d_n)
    d_n *= 1 - n * n
    np.multiply(d_n, h_n, out=d_r)
    d_r *= r * (1 - r)
    np.multiply(grad, wide_h - n, out=d_z)
    d_z *= z * (1 - z)
    delta_h = delta.copy()
    delta_h[2] *= r
    for_x, for_wi, for_bi = _block_gradients(
        delta, widen(x), widen(w_ih), (needs[0], needs[2], needs[4])
    )
    for_h, for_wh, for_bh = _block_gradients(
        delta_h, wide_h, widen(w_hh), (needs[1], needs[3], needs[5])
    )
    if for_h is not None:
        for_h += grad * z
    return narrow((for_x, for_h, for_wi, for_wh, for_bi, for_bh), x)


# ------------------------------------------------------------------------------------------- RNN


def _plain_rnn(nonlinearity: str) -> Any:
    def composition(x: Tensor, h: Tensor, *weights: Tensor | None) -> Tensor:
        return plain.rnn_step(x, (h,), weights, relu=nonlinearity == "relu")[0]

    return composition


@quiet
def rnn_cell(x: Tensor, h: Tensor, weights: Weights, nonlinearity: str = "tanh") -> Tensor:
    """One step of the simple recurrence: ``tanh`` or ``relu`` of the sum of both products."""
    inputs = operands((x, h, *weights), weights[0])
    ax, ah, w_ih, w_hh, b_ih, b_hh = arrays_of(*inputs)
    out = affine(ax, w_ih, b_ih)
    out += affine(ah, w_hh, b_hh)
    if nonlinearity == "tanh":
        np.tanh(out, out=out)
    else:
        np.maximum(out, 0, out=out)
    result = out.astype(inputs[0]._array.dtype, copy=False)
    saved = (*inputs, result)
    return record(result, rnn_cell_backward, inputs, saved, nonlinearity, "RnnCellBackward0")


@quiet
def rnn_cell_backward(node: Node, grad: Any) -> tuple:
    (*inputs, out), needs, nonlinearity = node.saved, node.needs_input_grad, node.ctx
    if isinstance(grad, TensorBase):
        return composed_gradients(_plain_rnn(nonlinearity), inputs, grad, needs)
    x, h, w_ih, w_hh, *_ = inputs
    out = widen(out)
    delta = widen(grad) * (1 - out * out if nonlinearity == "tanh" else out > 0)
    for_x, for_wi, for_bias = linear_gradients(
        delta, widen(x), widen(w_ih), (needs[0], needs[2], needs[4] or needs[5])
    )
    for_h, for_wh, _ = linear_gradients(delta, widen(h), widen(w_hh), (needs[1], needs[3], False))
    return narrow((for_x, for_h, for_wi, for_wh, for_bias, for_bias if needs[5] else None), x)
