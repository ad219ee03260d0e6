"""Recurrences over a whole sequence on plain arrays: forward, and backward by hand.

What makes them fast:

* the products with the input do not depend on the state: one product for all steps,
* weight gradients are sums over steps: one product at the end, over all rows of all steps,
* what a backward step multiplies its gradient by was known when the forward was over: it is
  computed for all steps at once, and a step of the loop is one product of matrices and a handful
  of products of arrays,
* nothing is allocated per step that could be written into its place,
* each gate lies in a block of its own, ``(gates, rows, H)``, so that every step works on
  contiguous memory.

What is kept for backward grows linearly with the number of steps; per row: LSTM ``7 H`` numbers
(gates 4, cell, its tanh, state), GRU ``5 H``, RNN ``2 H``.

The weights of logistic gates are negated on entry, so that products come out as what
``1 / (1 + exp(.))`` wants; this is undone in the weights' gradients.

A kernel is a pair

* ``forward(arrays, schedule, extras) -> (chains, memory)``
* ``backward(grads, arrays, memory, schedule, extras, needs) -> gradients of arrays``

with ``arrays = (x, *state, w_ih, w_hh, b_ih, b_hh, ...)``; `grads` are those of all outputs (or
None) and of each final state (zeros by default, in memory of their own: they are overwritten).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.ops.recurrent_common import Extras, affine, logistic_of_minus
from minitorch.ops.recurrent_memory import reused
from minitorch.ops.recurrent_schedule import Chain, Schedule

Order = tuple[tuple[int, int], ...]  # per block: which of PyTorch's gates, and its sign


def _blocks(w: np.ndarray, order: Order) -> np.ndarray:
    """Cut ``(gates * H, ...)`` into blocks ``(gates, H, ...)`` in the given order, with signs."""
    parts = w.reshape(len(order), -1, *w.shape[1:])
    return np.stack([parts[gate] if sign > 0 else -parts[gate] for gate, sign in order])


def _unblocked(blocks: np.ndarray, order: Order) -> np.ndarray:
    """Undo :func:`_blocks`."""
    _, size, *rest = blocks.shape
    out = np.empty((len(order) * size, *rest), blocks.dtype)
    for block, (gate, sign) in zip(blocks, order, strict=True):
        np.multiply(block, sign, out=out[gate * size : (gate + 1) * size])
    return out


def _input_products(x: np.ndarray, w: np.ndarray, b: np.ndarray | None, order: Order) -> np.ndarray:
    """``x @ w.T + b`` for all rows, ``(gates, rows, H)``."""
    blocks = _blocks(w, order)
    out = reused((len(order), len(x), blocks.shape[1]), x.dtype)
    np.matmul(x, blocks.swapaxes(1, 2), out=out)
    if b is not None:
        out += _blocks(b, order)[:, None, :]
    return out


def _input_gradient(delta: np.ndarray, w: np.ndarray, order: Order) -> np.ndarray:
    return np.add.reduce(np.matmul(delta, _blocks(w, order)), axis=0)


def _weight_gradient(delta: np.ndarray, x: np.ndarray, order: Order) -> np.ndarray:
    return _unblocked(np.matmul(delta.swapaxes(1, 2), x), order)


def _bias_gradient(delta: np.ndarray, order: Order) -> np.ndarray:
    # A product with ones: BLAS sums columns several times faster than NumPy does.
    return _unblocked(np.matmul(np.ones(delta.shape[1], delta.dtype), delta), order)


def _bias(b_ih: np.ndarray | None, b_hh: np.ndarray | None) -> np.ndarray | None:
    return None if b_ih is None else b_ih + b_hh


def _twice(grad: np.ndarray | None, second: bool) -> tuple:
    """The gradient of both biases, where only their sum is used."""
    return grad, grad.copy() if grad is not None and second else None


def _dropped(h: np.ndarray, extras: Extras, n: int) -> np.ndarray:
    return h if extras.drop_hidden is None else h * extras.drop_hidden[:n]


def _all_dropped(before: np.ndarray, extras: Extras, schedule: Schedule) -> np.ndarray:
    if extras.drop_hidden is None:
        return before
    return before * schedule.per_row(extras.drop_hidden)


def _split(keep: Any, grad: np.ndarray, rows: slice) -> tuple[Any, np.ndarray]:
    """Gradients of a state's old and new value; None where the old one is not kept at all."""
    return (None, grad) if keep is None else keep.split(grad, rows)


def _one_minus_square(y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The slope of tanh where its value is `y`."""
    np.multiply(y, y, out=out)
    return np.subtract(1, out, out=out)


# ------------------------------------------------------------------------------------------ LSTM

# PyTorch's i, f, g, o as o, i, f, g: the logistic gates together, and those together that the
# cell's gradient passes through.
_LSTM: Order = ((3, -1), (0, -1), (1, -1), (2, 1))


def lstm_forward(arrays: list, schedule: Schedule, extras: Extras) -> tuple[list[Chain], tuple]:
    """All steps of an LSTM; with ``w_hr`` the hidden state is a projection of ``o * tanh(c)``."""
    x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr = arrays
    size, batch = c0.shape[1], schedule.batch
    gates = _input_products(x, w_ih, _bias(b_ih, b_hh), _LSTM)
    recurrent = _blocks(w_hh, _LSTM).swapaxes(1, 2)
    hidden, cell = Chain(schedule, h0), Chain(schedule, c0)
    squashed = reused((schedule.rows, size), x.dtype)
    from_hidden = np.empty((4, batch, size), x.dtype)
    update = np.empty((batch, size), x.dtype)
    for rows, n in schedule.steps:
        h, c = hidden.start(rows, n), cell.start(rows, n)
        a = gates[:, rows]
        a += np.matmul(_dropped(h, extras, n), recurrent, out=from_hidden[:, :n])
        logistic_of_minus(a[:3])
        o, i, f, g = a
        np.tanh(g, out=g)
        added = np.multiply(i, g, out=update[:n])
        if extras.drop_candidate is not None:
            added *= extras.drop_candidate[rows]
        new_c, new_h = cell.after[rows], hidden.after[rows]
        np.multiply(f, c, out=new_c)
        new_c += added
        # The hidden state sees the cell before zoneout, as in the authors' code.
        tanh_c = np.tanh(new_c, out=squashed[rows])
        if w_hr is None:
            np.multiply(o, tanh_c, out=new_h)
        else:
            np.matmul(o * tanh_c, w_hr.T, out=new_h)
        if extras.keep_cell is not None:
            extras.keep_cell.mix(c, new_c, rows)
        if extras.keep_hidden is not None:
            extras.keep_hidden.mix(h, new_h, rows)
        hidden.finish(rows, n)
        cell.finish(rows, n)
    return [hidden, cell], (gates, squashed, hidden.before, cell.before)


def _lstm_slopes(memory: tuple, extras: Extras) -> tuple[np.ndarray, np.ndarray]:
    """What the gradients of the gates, and of the hidden state into the cell, are multiplied by."""
    gates, squashed, _, c_before = memory
    o, i, _, g = gates
    delta = reused(gates.shape, gates.dtype)
    # s * (s - 1), since the arguments of logistic gates are negated.
    np.subtract(gates[:3], 1, out=delta[:3])
    delta[:3] *= gates[:3]
    to_o, to_i, to_f, to_g = delta
    to_o *= squashed
    to_i *= g
    to_f *= c_before
    _one_minus_square(g, out=to_g)
    to_g *= i
    if extras.drop_candidate is not None:
        to_i *= extras.drop_candidate
        to_g *= extras.drop_candidate
    through = _one_minus_square(squashed, out=reused(squashed.shape, squashed.dtype))
    through *= o
    return delta, through


def lstm_backward(
    grads: list, arrays: tuple, memory: tuple, schedule: Schedule, extras: Extras, needs: tuple
) -> tuple:
    """Gradients for ``x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr``."""
    x, _, _, w_ih, w_hh, _, _, w_hr = arrays
    gates, squashed, h_before, _ = memory
    grad_y, d_h, d_c = grads
    o, _, f, _ = gates
    delta, through = _lstm_slopes(memory, extras)
    recurrent = _blocks(w_hh, _LSTM)
    back = np.empty((4, *d_h.shape), d_h.dtype)
    d_projected = None if w_hr is None else np.empty_like(h_before)
    for rows, n in schedule.backward():
        d_hidden, d_cell = d_h[:n], d_c[:n]
        if grad_y is not None:
            d_hidden += grad_y[rows]
        old_h, new_h = _split(extras.keep_hidden, d_hidden, rows)
        old_c, new_c = _split(extras.keep_cell, d_cell, rows)
        if d_projected is not None:
            d_projected[rows] = new_h
            new_h = new_h @ w_hr
        total = through[rows]
        total *= new_h
        total += new_c
        d = delta[:, rows]
        d[0] *= new_h
        d[1:] *= total
        np.multiply(total, f[rows], out=d_cell)
        if old_c is not None:
            d_cell += old_c
        np.add.reduce(np.matmul(d, recurrent, out=back[:, :n]), axis=0, out=d_hidden)
        if extras.drop_hidden is not None:
            d_hidden *= extras.drop_hidden[:n]
        if old_h is not None:
            d_hidden += old_h
    for_wh = None
    if needs[4]:
        for_wh = _weight_gradient(delta, _all_dropped(h_before, extras, schedule), _LSTM)
    return (
        _input_gradient(delta, w_ih, _LSTM) if needs[0] else None,
        d_h,
        d_c,
        _weight_gradient(delta, x, _LSTM) if needs[3] else None,
        for_wh,
        *_twice(_bias_gradient(delta, _LSTM) if needs[5] or needs[6] else None, needs[6]),
        None if d_projected is None else d_projected.T @ (o * squashed),
    )


# ------------------------------------------------------------------------------------------- GRU

# PyTorch's r, z, n. The input's share and the state's differ in n, where the reset gate stands
# before the state's share only: gradients have the blocks n, r, z and n of the state, of which
# the first three belong to the input and the last three to the state.
_GRU_INPUT: Order = ((2, 1), (0, -1), (1, -1))
_GRU_STATE: Order = ((0, -1), (1, -1), (2, 1))


def gru_forward(arrays: list, schedule: Schedule, extras: Extras) -> tuple[list[Chain], tuple]:
    """All steps of a GRU."""
    x, h0, w_ih, w_hh, b_ih, b_hh = arrays
    gates = _input_products(x, w_ih, b_ih, _GRU_INPUT)
    recurrent = _blocks(w_hh, _GRU_STATE).swapaxes(1, 2)
    bias = None if b_hh is None else _blocks(b_hh, _GRU_STATE)[:, None, :]
    hidden = Chain(schedule, h0)
    h_n = reused((schedule.rows, h0.shape[1]), x.dtype)
    from_hidden = np.empty((3, *h0.shape), x.dtype)
    for rows, count in schedule.steps:
        h = hidden.start(rows, count)
        product = np.matmul(_dropped(h, extras, count), recurrent, out=from_hidden[:, :count])
        if bias is not None:
            product += bias
        a = gates[:, rows]
        a[1:] += product[:2]
        logistic_of_minus(a[1:])
        n, r, z = a
        h_n[rows] = product[2]
        n += np.multiply(r, h_n[rows], out=product[2])
        np.tanh(n, out=n)
        candidate = n if extras.drop_candidate is None else n * extras.drop_candidate[rows]
        new_h = np.subtract(h, candidate, out=hidden.after[rows])
        new_h *= z
        new_h += candidate
        if extras.keep_hidden is not None:
            extras.keep_hidden.mix(h, new_h, rows)
        hidden.finish(rows, count)
    return [hidden], (gates, h_n, hidden.before)


def _gru_slopes(memory: tuple, extras: Extras) -> np.ndarray:
    """What the gradients of the gates are multiplied by; the last block stays to be filled."""
    gates, h_n, h_before = memory
    n, _, z = gates
    delta = reused((4, *h_n.shape), h_n.dtype)
    to_n, to_r, to_z, _ = delta
    np.subtract(gates[1:], 1, out=delta[1:3])
    delta[1:3] *= gates[1:]
    to_r *= h_n
    to_z *= h_before - (n if extras.drop_candidate is None else n * extras.drop_candidate)
    _one_minus_square(n, out=to_n)
    to_n *= 1 - z
    if extras.drop_candidate is not None:
        to_n *= extras.drop_candidate
    return delta


def gru_backward(
    grads: list, arrays: tuple, memory: tuple, schedule: Schedule, extras: Extras, needs: tuple
) -> tuple:
    """Gradients for ``x, h0, w_ih, w_hh, b_ih, b_hh``."""
    x, _, w_ih, w_hh, _, _ = arrays
    gates, _, h_before = memory
    grad_y, d_h = grads
    _, r, z = gates
    delta = _gru_slopes(memory, extras)
    recurrent = _blocks(w_hh, _GRU_STATE)
    back = np.empty((3, *d_h.shape), d_h.dtype)
    for rows, count in schedule.backward():
        d_hidden = d_h[:count]
        if grad_y is not None:
            d_hidden += grad_y[rows]
        old, new = _split(extras.keep_hidden, d_hidden, rows)
        d_n, d_r, d_z, d_n_state = d = delta[:, rows]
        d_n *= new
        d_r *= d_n
        d_z *= new
        np.multiply(d_n, r[rows], out=d_n_state)
        direct = new * z[rows]
        np.add.reduce(np.matmul(d[1:], recurrent, out=back[:, :count]), axis=0, out=d_hidden)
        if extras.drop_hidden is not None:
            d_hidden *= extras.drop_hidden[:count]
        d_hidden += direct
        if old is not None:
            d_hidden += old
    for_input, for_state = delta[:3], delta[1:]
    for_wh = None
    if needs[3]:
        for_wh = _weight_gradient(for_state, _all_dropped(h_before, extras, schedule), _GRU_STATE)
    return (
        _input_gradient(for_input, w_ih, _GRU_INPUT) if needs[0] else None,
        d_h,
        _weight_gradient(for_input, x, _GRU_INPUT) if needs[2] else None,
        for_wh,
        _bias_gradient(for_input, _GRU_INPUT) if needs[4] else None,
        _bias_gradient(for_state, _GRU_STATE) if needs[5] else None,
    )


# ------------------------------------------------------------------------------------------- RNN


def _rnn_forward(relu: bool) -> Any:
    def forward(arrays: list, schedule: Schedule, extras: Extras) -> tuple[list[Chain], tuple]:
        """All steps of a simple recurrence."""
        x, h0, w_ih, w_hh, b_ih, b_hh = arrays
        fresh = affine(x, w_ih, _bias(b_ih, b_hh))
        hidden = Chain(schedule, h0)
        from_hidden = np.empty((schedule.batch, h0.shape[1]), x.dtype)
        for rows, n in schedule.steps:
            h = hidden.start(rows, n)
            a = fresh[rows]
            a += np.matmul(_dropped(h, extras, n), w_hh.T, out=from_hidden[:n])
            if relu:
                np.maximum(a, 0, out=a)
            else:
                np.tanh(a, out=a)
            new_h = hidden.after[rows]
            new_h[...] = a
            if extras.drop_candidate is not None:
                new_h *= extras.drop_candidate[rows]
            if extras.keep_hidden is not None:
                extras.keep_hidden.mix(h, new_h, rows)
            hidden.finish(rows, n)
        return [hidden], (fresh, hidden.before)

    return forward


def _rnn_backward(relu: bool) -> Any:
    def backward(
        grads: list, arrays: tuple, memory: tuple, schedule: Schedule, extras: Extras, needs: tuple
    ) -> tuple:
        """Gradients for ``x, h0, w_ih, w_hh, b_ih, b_hh``."""
        x, _, w_ih, w_hh, _, _ = arrays
        fresh, h_before = memory
        grad_y, d_h = grads
        delta = reused(fresh.shape, fresh.dtype)
        if relu:
            np.greater(fresh, 0, out=delta)
        else:
            _one_minus_square(fresh, out=delta)
        if extras.drop_candidate is not None:
            delta *= extras.drop_candidate
        for rows, n in schedule.backward():
            d_hidden = d_h[:n]
            if grad_y is not None:
                d_hidden += grad_y[rows]
            old, new = _split(extras.keep_hidden, d_hidden, rows)
            d = delta[rows]
            d *= new
            np.matmul(d, w_hh, out=d_hidden)
            if extras.drop_hidden is not None:
                d_hidden *= extras.drop_hidden[:n]
            if old is not None:
                d_hidden += old
        ones = np.ones(len(delta), delta.dtype)
        return (
            delta @ w_ih if needs[0] else None,
            d_h,
            delta.T @ x if needs[2] else None,
            delta.T @ _all_dropped(h_before, extras, schedule) if needs[3] else None,
            *_twice(ones @ delta if needs[4] or needs[5] else None, needs[5]),
        )

    return backward


KERNELS = {
    "LSTM": (lstm_forward, lstm_backward),
    "GRU": (gru_forward, gru_backward),
    "RNN_TANH": (_rnn_forward(False), _rnn_backward(False)),
    "RNN_RELU": (_rnn_forward(True), _rnn_backward(True)),
}
