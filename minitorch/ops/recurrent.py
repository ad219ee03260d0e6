"""One step of the recurrent cells, each fused into one node: forward and backward in a few GEMMs.

All gates of a cell are computed by one product with the input and one with the hidden state, side
by side in one array ``(batch, gates * hidden)`` in PyTorch's order:

====  ===========================  =============================================================
cell  gates                        new state
====  ===========================  =============================================================
RNN   ``a``                        ``h' = tanh(a)`` or ``relu(a)``
LSTM  ``i, f, g, o``               ``c' = f*c + i*g``, ``h' = o * tanh(c')``
GRU   ``r, z, n``                  ``n = tanh(x_n + r * h_n)``, ``h' = n + z * (h - n)``
====  ===========================  =============================================================

Gates are computed and differentiated in place: an elementary-op version of the LSTM step makes a
dozen nodes and twice as many temporary arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import Node, TensorBase, record, record_many
from minitorch.ops._arguments import quiet, widen
from minitorch.ops._composed import composed_gradients
from minitorch.ops._typing import Tensor

Weights = tuple[Tensor, Tensor, Tensor, Tensor]


def _affine(x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    out = np.matmul(x, w.T)
    if b is not None:
        out += b
    return out


def _logistic(x: np.ndarray) -> None:
    """Replace `x` by its logistic function, in place, through the (vectorised) tanh."""
    x *= x.dtype.type(0.5)
    np.tanh(x, out=x)
    x *= x.dtype.type(0.5)
    x += x.dtype.type(0.5)


def _arrays(*tensors: Tensor | None) -> list:
    return [None if t is None else widen(t._array) for t in tensors]


def _linear_gradients(
    grad: np.ndarray, x: np.ndarray, w: np.ndarray, needs: tuple[bool, bool, bool]
) -> tuple:
    """Gradients of ``x @ w.T + b`` for ``x``, ``w`` and ``b``."""
    return (
        grad @ w if needs[0] else None,
        grad.T @ x if needs[1] else None,
        np.add.reduce(grad, axis=0) if needs[2] else None,
    )


def _narrow(grads: tuple, like: np.ndarray) -> tuple:
    if like.dtype.itemsize > 2:
        return grads
    return tuple(None if g is None else g.astype(like.dtype) for g in grads)


def _linear(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    out = x @ w.transpose(0, 1)
    return out if b is None else out + b


# ------------------------------------------------------------------------------------------ LSTM


def _composed_lstm(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> tuple:
    gates = _linear(x, w_ih, b_ih) + _linear(h, w_hh, b_hh)
    i, f, g, o = gates.chunk(4, 1)
    new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * new_c.tanh(), new_c


@quiet
def lstm_cell(x: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """One LSTM step: input ``(B, I)``, state ``(h, c)`` of ``(B, H)``; returns the new state.

    `weights` are ``(w_ih (4H, I), w_hh (4H, H), b_ih or None, b_hh or None)``.
    """
    h, c = state
    inputs = (x, h, c, *weights)
    ax, ah, ac, w_ih, w_hh, b_ih, b_hh = _arrays(*inputs)
    size = ah.shape[1]
    gates = np.matmul(ax, w_ih.T)
    gates += np.matmul(ah, w_hh.T)
    if b_ih is not None:
        gates += b_ih + b_hh
    candidate = gates[:, 2 * size : 3 * size]
    # One tanh for all gates: logistic(x) = (1 + tanh(x/2)) / 2.
    _halve(gates, size)
    np.tanh(gates, out=gates)
    for part in (gates[:, : 2 * size], gates[:, 3 * size :]):
        part *= part.dtype.type(0.5)
        part += part.dtype.type(0.5)
    i, f, o = gates[:, :size], gates[:, size : 2 * size], gates[:, 3 * size :]
    new_c = f * ac
    new_c += i * candidate
    squashed = np.tanh(new_c)
    new_h = o * squashed
    dtype = x._array.dtype
    return record_many(
        (new_h.astype(dtype, copy=False), new_c.astype(dtype, copy=False)),
        lstm_cell_backward,
        inputs,
        inputs,
        (gates, squashed),
        "LstmCellBackward0",
    )


def _halve(gates: np.ndarray, size: int) -> None:
    half = gates.dtype.type(0.5)
    gates[:, : 2 * size] *= half
    gates[:, 3 * size :] *= half


@quiet
def lstm_cell_backward(node: Node, grads: Any) -> tuple:
    saved = node.saved
    if any(isinstance(g, TensorBase) for g in grads):
        return composed_gradients(_composed_lstm, saved, grads, node.needs_input_grad)
    x, h, c, w_ih, w_hh, *_ = saved
    gates, squashed = node.ctx
    need_x, need_h, need_c, need_wi, need_wh, need_bi, need_bh = node.needs_input_grad
    size = squashed.shape[1]
    i, f = gates[:, :size], gates[:, size : 2 * size]
    g, o = gates[:, 2 * size : 3 * size], gates[:, 3 * size :]
    grad_h, grad_c = grads
    delta = np.empty_like(gates)
    d_o = delta[:, 3 * size :]
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
        np.multiply(grad_h, squashed, out=d_o)
    np.multiply(total, g, out=delta[:, :size])
    np.multiply(total, widen(c), out=delta[:, size : 2 * size])
    d_g = delta[:, 2 * size : 3 * size]
    np.multiply(total, i, out=d_g)
    # Through the gates' own non-linearities: y(1-y) for the logistic, 1-y^2 for tanh.
    slope = gates * gates
    d_g -= d_g * slope[:, 2 * size : 3 * size]
    np.subtract(gates, slope, out=slope)
    delta[:, : 2 * size] *= slope[:, : 2 * size]
    d_o *= slope[:, 3 * size :]
    for_x, for_wi, for_bias = _linear_gradients(
        delta, widen(x), widen(w_ih), (need_x, need_wi, need_bi or need_bh)
    )
    for_h, for_wh, _ = _linear_gradients(delta, widen(h), widen(w_hh), (need_h, need_wh, False))
    for_c = total * f if need_c else None
    return _narrow(
        (for_x, for_h, for_c, for_wi, for_wh, for_bias, for_bias if need_bh else None), x
    )


# ------------------------------------------------------------------------------------------- GRU


def _composed_gru(
    x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    x_r, x_z, x_n = _linear(x, w_ih, b_ih).chunk(3, 1)
    h_r, h_z, h_n = _linear(h, w_hh, b_hh).chunk(3, 1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return n + z * (h - n)


@quiet
def gru_cell(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """One GRU step: input ``(B, I)``, state ``(B, H)``; returns the new state.

    `weights` are ``(w_ih (3H, I), w_hh (3H, H), b_ih or None, b_hh or None)``.
    """
    inputs = (x, h, *weights)
    ax, ah, w_ih, w_hh, b_ih, b_hh = _arrays(*inputs)
    size = ah.shape[1]
    gates, from_h = _affine(ax, w_ih, b_ih), _affine(ah, w_hh, b_hh)
    gates[:, : 2 * size] += from_h[:, : 2 * size]
    _logistic(gates[:, : 2 * size])
    r, z, n = gates[:, :size], gates[:, size : 2 * size], gates[:, 2 * size :]
    h_n = from_h[:, 2 * size :]
    n += r * h_n
    np.tanh(n, out=n)
    new_h = ah - n
    new_h *= z
    new_h += n
    return record(
        new_h.astype(x._array.dtype, copy=False),
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
        return composed_gradients(_composed_gru, saved, grad, needs)
    x, h, w_ih, w_hh, *_ = saved
    gates, h_n = node.ctx
    size = h_n.shape[1]
    r, z, n = gates[:, :size], gates[:, size : 2 * size], gates[:, 2 * size :]
    grad, wide_h = widen(grad), widen(h)
    # `delta` is for the input's share of the gates, `delta_h` for the state's: they differ in n.
    delta = np.empty_like(gates)
    d_r, d_z, d_n = delta[:, :size], delta[:, size : 2 * size], delta[:, 2 * size :]
    np.multiply(grad, 1 - z, out=d_n)
    d_n *= 1 - n * n
    np.multiply(d_n, h_n, out=d_r)
    d_r *= r * (1 - r)
    np.multiply(grad, wide_h - n, out=d_z)
    d_z *= z * (1 - z)
    delta_h = delta.copy()
    delta_h[:, 2 * size :] *= r
    for_x, for_wi, for_bi = _linear_gradients(
        delta, widen(x), widen(w_ih), (needs[0], needs[2], needs[4])
    )
    for_h, for_wh, for_bh = _linear_gradients(
        delta_h, wide_h, widen(w_hh), (needs[1], needs[3], needs[5])
    )
    if for_h is not None:
        for_h += grad * z
    return _narrow((for_x, for_h, for_wi, for_wh, for_bi, for_bh), x)


# ------------------------------------------------------------------------------------------- RNN


def _composed_rnn(nonlinearity: str) -> Any:
    def composition(
        x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
    ) -> Tensor:
        total = _linear(x, w_ih, b_ih) + _linear(h, w_hh, b_hh)
        return total.tanh() if nonlinearity == "tanh" else total.relu()

    return composition


@quiet
def rnn_cell(x: Tensor, h: Tensor, weights: Weights, nonlinearity: str = "tanh") -> Tensor:
    """One step of the simple recurrence: ``tanh`` or ``relu`` of the sum of both products."""
    inputs = (x, h, *weights)
    ax, ah, w_ih, w_hh, b_ih, b_hh = _arrays(*inputs)
    out = _affine(ax, w_ih, b_ih)
    out += _affine(ah, w_hh, b_hh)
    if nonlinearity == "tanh":
        np.tanh(out, out=out)
    else:
        np.maximum(out, 0, out=out)
    result = out.astype(x._array.dtype, copy=False)
    saved = (*inputs, result)
    return record(result, rnn_cell_backward, inputs, saved, nonlinearity, "RnnCellBackward0")


@quiet
def rnn_cell_backward(node: Node, grad: Any) -> tuple:
    (*inputs, out), needs, nonlinearity = node.saved, node.needs_input_grad, node.ctx
    if isinstance(grad, TensorBase):
        return composed_gradients(_composed_rnn(nonlinearity), inputs, grad, needs)
    x, h, w_ih, w_hh, *_ = inputs
    out = widen(out)
    delta = widen(grad) * (1 - out * out if nonlinearity == "tanh" else out > 0)
    for_x, for_wi, for_bias = _linear_gradients(
        delta, widen(x), widen(w_ih), (needs[0], needs[2], needs[4] or needs[5])
    )
    for_h, for_wh, _ = _linear_gradients(delta, widen(h), widen(w_hh), (needs[1], needs[3], False))
    return _narrow((for_x, for_h, for_wi, for_wh, for_bias, for_bias if needs[5] else None), x)
