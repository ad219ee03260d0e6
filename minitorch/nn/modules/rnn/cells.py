"""Recurrent cells: one step of a recurrence, fused into one node (``ops/recurrent.py``).

Parameters have PyTorch's names and gate order, so that state dictionaries are interchangeable.
"""

from __future__ import annotations

import math
from typing import Any

import minitorch
from minitorch.nn import init
from minitorch.nn.modules.module import Module
from minitorch.nn.parameter import Parameter
from minitorch.ops import recurrent
from minitorch.ops._typing import Tensor


def _step(mode: str, x: Tensor, state: tuple, weights: tuple) -> tuple:
    """One step of any kind of cell; states are tuples here."""
    if mode == "LSTM":
        return recurrent.lstm_cell(x, state, weights)
    if mode == "GRU":
        return (recurrent.gru_cell(x, state[0], weights),)
    nonlinearity = "tanh" if mode == "RNN_TANH" else "relu"
    return (recurrent.rnn_cell(x, state[0], weights, nonlinearity),)


class RNNCellBase(Module):
    """Parameters, checks and text that the three cells share."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, dtype: Any
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(minitorch.empty(rows, input_size, dtype=dtype))
        self.weight_hh = Parameter(minitorch.empty(rows, hidden_size, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            values = Parameter(minitorch.empty(rows, dtype=dtype)) if bias else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values, uniform within one over the square root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else text + ", bias=False"

    def _weights(self) -> tuple:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check(self, input: Tensor, state: tuple[Tensor, ...]) -> None:
        name, shape = type(self).__name__, input._array.shape
        dims = len(shape)
        if dims not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {dims}D instead")
        if shape[-1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {shape[-1]} expected {self.input_size}"
            )
        for number, hidden in enumerate(state):
            found = hidden._array.shape
            if len(found) != dims:
                raise ValueError(
                    f"{name}: Expected hidden to be 1D or 2D, got {len(found)}D instead"
                    if len(found) not in (1, 2)
                    else f"{name}: input is {dims}D but hidden is {len(found)}D"
                )
            if dims == 2 and found[0] != shape[0]:
                raise RuntimeError(
                    f"Input batch size {shape[0]} doesn't match hidden{number} batch size "
                    f"{found[0]}"
                )
            if found[-1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {found[-1]}, expected "
                    f"{self.hidden_size}"
                )

    def _initial(self, input: Tensor, hx: Any, lstm: bool) -> tuple[Tensor, ...]:
        """The state as a tuple, zeros if none was given; raise unless shapes fit."""
        if hx is not None:
            state = tuple(hx) if lstm else (hx,)
            self._check(input, state)
            return state
        self._check(input, ())
        zeros = minitorch.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)
        return (zeros, zeros) if lstm else (zeros,)

    def _advance(self, mode: str, input: Tensor, state: tuple[Tensor, ...]) -> tuple:
        """One step from a checked state."""
        if input.dim() == 2:
            return _step(mode, input, state, self._weights())
        lifted = tuple(s.unsqueeze(0) for s in state)
        new = _step(mode, input.unsqueeze(0), lifted, self._weights())
        return tuple(s.squeeze(0) for s in new)

    def _run(self, mode: str, input: Tensor, hx: Any) -> tuple:
        return self._advance(mode, input, self._initial(input, hx, mode == "LSTM"))


class RNNCell(RNNCellBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or ``relu`` of it.

    Called with input ``(B, input_size)`` and the state ``(B, hidden_size)`` (zeros by default);
    returns the new state. The batch dimension may be missing from both.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run(self._mode(), input, hx)[0]

    def _mode(self) -> str:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return f"RNN_{self.nonlinearity.upper()}"

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of long short-term memory, gates in the order input, forget, cell, output.

    Called with input ``(B, input_size)`` and ``(h, c)`` of ``(B, hidden_size)`` each (zeros by
    default); returns the new ``(h, c)``.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        return self._run("LSTM", input, hx)


class GRUCell(RNNCellBase):
    """One step of the gated recurrent unit, gates in the order reset, update, new.

    Called with input ``(B, input_size)`` and the state ``(B, hidden_size)`` (zeros by default);
    returns the new state.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run("GRU", input, hx)[0]
