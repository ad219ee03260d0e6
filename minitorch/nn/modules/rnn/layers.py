"""``RNN``, ``LSTM`` and ``GRU``: recurrent networks over whole sequences.

Each layer and direction is one node of the graph (``ops/recurrent_sequence.py``).
"""

from __future__ import annotations

from typing import Any

from minitorch.nn.modules.rnn.base import RNNBase
from minitorch.nn.utils.rnn import PackedSequence
from minitorch.ops._typing import Tensor

__all__ = ["GRU", "LSTM", "RNN"]


def rnn_mode(args: tuple, kwargs: dict[str, Any]) -> tuple[str, str, tuple]:
    """Take `nonlinearity` (PyTorch's fourth argument) out of the arguments of an ``RNN``.

    Returns the nonlinearity, the mode, and the remaining positional arguments.
    """
    refuse_projection(kwargs)
    if len(args) > 3:
        nonlinearity = args[3]
        args = args[:3] + args[4:]
    else:
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
    return nonlinearity, f"RNN_{nonlinearity.upper()}", args


def refuse_projection(kwargs: dict[str, Any]) -> None:
    """Raise if `proj_size` is given to a network that cannot have one."""
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """The simple recurrent network, ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`` or ``relu``.

    ``RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
    batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None)``; what the
    arguments mean, and the shapes, are those of :class:`LSTM`, with the hidden state alone.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        nonlinearity, mode, args = rnn_mode(args, kwargs)
        super().__init__(mode, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Run over a sequence; returns the outputs and the last hidden state."""
        return self._run(input, hx)


class LSTM(RNNBase):
    """Long short-term memory over sequences, gates in the order input, forget, cell, output.

    ``i, f, o = sigmoid(...)``, ``g = tanh(...)``, ``c' = f c + i g``, ``h' = o tanh(c')``.

    Parameters
    ----------
    input_size, hidden_size : int
        Numbers of features.
    num_layers : int
        Layers on top of each other.
    bias : bool
    batch_first : bool
        Blocks are (B, T, features) instead of (T, B, features); states are not affected.
    dropout : float
        Rate of the dropout behind every layer but the last.
    bidirectional : bool
        A second recurrence runs from the end; outputs are side by side.
    proj_size : int
        If not 0, the hidden state is a projection of ``o tanh(c')`` to this width.

    Shapes
    ------
    input
        (T, B, I), (T, I) without a batch, or a ``PackedSequence``.
    state
        ``(h, c)`` of (layers * directions, B, H), without B if the input has none; zeros if not
        given. ``h`` has the projection's width.
    output
        (T, B, directions * H) in the input's layout, and the last ``(h, c)``.

    Examples
    --------
    >>> import minitorch
    >>> lstm = minitorch.nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    >>> output, (h, c) = lstm(minitorch.zeros(5, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([5, 2, 8]), torch.Size([4, 2, 4]))

    For truncated backpropagation through time, carry the state on and cut its history:
    ``output, state = lstm(part, tuple(s.detach() for s in state))``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, Tensor]]:
        """Run over a sequence; returns the outputs and the last ``(h, c)``."""
        return self._run(input, hx)


class GRU(RNNBase):
    """The gated recurrent unit over sequences, gates in the order reset, update, new.

    ``r, z = sigmoid(...)``, ``n = tanh(W_in x + b_in + r (W_hn h + b_hn))``,
    ``h' = (1 - z) n + z h``. Arguments and shapes are those of :class:`LSTM`, without `proj_size`
    and with the hidden state alone.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Run over a sequence; returns the outputs and the last hidden state."""
        return self._run(input, hx)
