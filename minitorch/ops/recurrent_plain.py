"""Recurrences spelled out in elementary ops: the lesson, and the truth the fused ones are held to.

One step makes a dozen nodes here, where a whole sequence is one node in ``recurrent_sequence.py``.
It is what a first reader should read, what second derivatives go through, and what runs when gates
are layer-normalised.

====  ===========================  =============================================================
cell  gates                        new state
====  ===========================  =============================================================
RNN   ``a``                        ``h' = tanh(a)`` or ``relu(a)``
LSTM  ``i, f, g, o``               ``c' = f*c + i*g``, ``h' = o * tanh(c')``
GRU   ``r, z, n``                  ``n = tanh(x_n + r * h_n)``, ``h' = n + z * (h - n)``
====  ===========================  =============================================================
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_common import NO_EXTRAS, Expect, Extras
from minitorch.ops.recurrent_schedule import Schedule

Norm = Callable[[str, Tensor], Tensor]
State = tuple[Tensor, ...]


def linear(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    """``x @ w.T + b``."""
    out = x @ w.transpose(0, 1)
    return out if b is None else out + b


def _unchanged(place: str, x: Tensor) -> Tensor:
    return x


def rnn_step(
    x: Tensor,
    state: State,
    weights: Sequence[Tensor | None],
    relu: bool = False,
    drop: Tensor | None = None,
    norm: Norm = _unchanged,
    read: Tensor | None = None,
) -> State:
    """One step of the simple recurrence.

    `drop` are factors of the update, `read` is the hidden state as the gates see it (by default as
    it is), `norm` normalises ``"ih"``, ``"hh"`` (the two products) and ``"c"`` (the LSTM's cell).
    """
    h = state[0] if read is None else read
    w_ih, w_hh, b_ih, b_hh = weights[:4]
    total = _gates(x, h, w_ih, w_hh, b_ih, b_hh, norm)
    new = total.relu() if relu else total.tanh()
    return (new if drop is None else new * drop,)


def _gates(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, norm: Norm) -> Tensor:
    from_x, from_h = norm("ih", linear(x, w_ih, None)), norm("hh", linear(h, w_hh, None))
    total = from_x + from_h
    return total if b_ih is None else total + (b_ih + b_hh)


def lstm_step(
    x: Tensor,
    state: State,
    weights: Sequence[Tensor | None],
    drop: Tensor | None = None,
    norm: Norm = _unchanged,
    read: Tensor | None = None,
) -> State:
    """One step of the LSTM; a fifth weight projects the new hidden state."""
    h, c = state
    w_ih, w_hh, b_ih, b_hh, *projection = weights
    gates = _gates(x, h if read is None else read, w_ih, w_hh, b_ih, b_hh, norm)
    i, f, g, o = gates.chunk(4, 1)
    update = i.sigmoid() * g.tanh()
    new_c = f.sigmoid() * c + (update if drop is None else update * drop)
    new_h = o.sigmoid() * norm("c", new_c).tanh()
    if projection and projection[0] is not None:
        new_h = linear(new_h, projection[0], None)
    return new_h, new_c


def gru_step(
    x: Tensor,
    state: State,
    weights: Sequence[Tensor | None],
    drop: Tensor | None = None,
    norm: Norm = _unchanged,
    read: Tensor | None = None,
) -> State:
    """One step of the GRU."""
    (h,) = state
    w_ih, w_hh, b_ih, b_hh = weights[:4]
    from_x = norm("ih", linear(x, w_ih, None))
    from_h = norm("hh", linear(h if read is None else read, w_hh, None))
    if b_ih is not None:
        from_x, from_h = from_x + b_ih, from_h + b_hh
    (x_r, x_z, x_n), (h_r, h_z, h_n) = from_x.chunk(3, 1), from_h.chunk(3, 1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    if drop is not None:
        n = n * drop
    return (n + z * (h - n),)


STEPS: dict[str, Callable[..., State]] = {
    "LSTM": lstm_step,
    "GRU": gru_step,
    "RNN_TANH": rnn_step,
    "RNN_RELU": functools.partial(rnn_step, relu=True),
}


def zoneout(old: Tensor, new: Tensor, keep: Any, rows: slice = slice(None)) -> Tensor:
    """Mix the old and the new value of a state: by mask, by its mean, or not at all (None)."""
    if keep is None:
        return new
    if isinstance(keep, Expect):
        return keep.rate * old + (1 - keep.rate) * new
    from minitorch.ops.selection import where

    return where(wrap(keep.mask[rows]), old, new)


def sequence(
    mode: str,
    x: Tensor,
    state: State,
    weights: Sequence[Tensor | None],
    schedule: Schedule,
    extras: Extras = NO_EXTRAS,
    norm: Norm = _unchanged,
) -> tuple[Tensor, ...]:
    """All steps of a recurrence: outputs ``(rows, H)``, then each final state ``(batch, H)``.

    The arguments are those of :func:`minitorch.ops.recurrent_sequence.sequence`, except `norm`.
    """
    from minitorch.ops.joining import cat

    step = STEPS[mode]
    state = tuple(state)
    keeps = (extras.keep_hidden, extras.keep_cell)
    outputs = []
    for rows, n in schedule.steps:
        old = tuple(s[:n] for s in state)
        read = None if extras.drop_hidden is None else old[0] * _constant(extras.drop_hidden[:n], x)
        drop = None if extras.drop_candidate is None else _constant(extras.drop_candidate[rows], x)
        new = step(x[rows], old, weights, drop=drop, norm=norm, read=read)
        new = tuple(zoneout(*pair, rows) for pair in zip(old, new, keeps, strict=False))
        outputs.append(new[0])
        state = (
            new
            if n == schedule.batch
            else tuple(cat([fresh, rest[n:]], 0) for fresh, rest in zip(new, state, strict=True))
        )
    if schedule.reverse:
        outputs.reverse()
    return cat(outputs, 0), *state


def _constant(factors: np.ndarray, like: Tensor) -> Tensor:
    return wrap(factors.astype(like._array.dtype, copy=False))
