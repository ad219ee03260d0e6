"""Recurrent cells, and one-layer recurrent networks that run a cell over a sequence.

Each step is one fused node (`ops/recurrent.py`). Parameters have PyTorch's names and gate order, so
that state dictionaries are interchangeable.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import minitorch
from minitorch.nn import init
from minitorch.nn.modules.module import Module
from minitorch.nn.parameter import Parameter
from minitorch.ops import recurrent
from minitorch.ops._typing import Tensor

State = Tensor | tuple[Tensor, Tensor]


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
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected "
                f"{self.input_size}"
            )
        for number, hidden in enumerate(state):
            if hidden.dim() != input.dim():
                raise ValueError(
                    f"{name}: Expected hidden to be 1D or 2D, got {hidden.dim()}D instead"
                    if hidden.dim() not in (1, 2)
                    else f"{name}: input is {input.dim()}D but hidden is {hidden.dim()}D"
                )
            if hidden.dim() == 2 and hidden.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size "
                    f"{hidden.shape[0]}"
                )
            if hidden.shape[-1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {hidden.shape[-1]}, "
                    f"expected {self.hidden_size}"
                )

    def _run(self, mode: str, input: Tensor, state: tuple[Tensor, ...] | None) -> tuple:
        if state is None:
            self._check(input, ())
            zeros = minitorch.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)
            state = (zeros, zeros) if mode == "LSTM" else (zeros,)
        else:
            self._check(input, state)
        if input.dim() == 2:
            return _step(mode, input, state, self._weights())
        lifted = tuple(s.unsqueeze(0) for s in state)
        new = _step(mode, input.unsqueeze(0), lifted, self._weights())
        return tuple(s.squeeze(0) for s in new)


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
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        mode = f"RNN_{self.nonlinearity.upper()}"
        return self._run(mode, input, None if hx is None else (hx,))[0]

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
        return self._run("LSTM", input, None if hx is None else tuple(hx))


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
        return self._run("GRU", input, None if hx is None else (hx,))[0]


_CHUNKS = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """A recurrent network of one layer and one direction."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        for option, value, only in (
            ("num_layers", num_layers, 1),
            ("bidirectional", bidirectional, False),
            ("proj_size", proj_size, 0),
        ):
            if value != only:
                raise NotImplementedError(
                    f"{type(self).__name__}: {option}={value} is not supported; only "
                    f"{option}={only} is"
                )
        if dropout > 0:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                "dropout expects num_layers greater than 1, but got "
                f"dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _CHUNKS[mode] * hidden_size
        self.weight_ih_l0 = Parameter(minitorch.empty(rows, input_size, dtype=dtype))
        self.weight_hh_l0 = Parameter(minitorch.empty(rows, hidden_size, dtype=dtype))
        if bias:
            self.bias_ih_l0 = Parameter(minitorch.empty(rows, dtype=dtype))
            self.bias_hh_l0 = Parameter(minitorch.empty(rows, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values, uniform within one over the square root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing to do on the CPU; scripts written for GPUs call it."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, layer by layer."""
        return [list(self._parameters.values())]

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        return ", ".join(parts)

    def forward(self, input: Tensor, hx: State | None = None) -> tuple[Tensor, State]:
        """Run over a sequence ``(L, B, I)``, ``(B, L, I)`` if batch first, or ``(L, I)``.

        Returns the outputs of all steps ``(L, B, H)`` (in the input's layout) and the last state,
        ``(1, B, H)``, for the LSTM a pair of them.
        """
        name, lstm = type(self).__name__, self.mode == "LSTM"
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )
        if not batched:
            input = input.unsqueeze(1)
        elif self.batch_first:
            input = input.transpose(0, 1)
        if input.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        state = self._initial_state(input, hx, batched)
        weights = (
            self.weight_ih_l0,
            self.weight_hh_l0,
            self.bias_ih_l0 if self.bias else None,
            self.bias_hh_l0 if self.bias else None,
        )
        outputs = []
        for x in input.unbind(0):
            state = _step(self.mode, x, state, weights)
            outputs.append(state[0])
        output = minitorch.stack(outputs, 0)
        last = tuple(s.unsqueeze(0) for s in state)
        if not batched:
            output, last = output.squeeze(1), tuple(s.squeeze(1) for s in last)
        elif self.batch_first:
            output = output.transpose(0, 1)
        return output, last if lstm else last[0]

    def _initial_state(self, input: Tensor, hx: State | None, batched: bool) -> tuple:
        lstm = self.mode == "LSTM"
        if hx is None:
            zeros = minitorch.zeros(input.shape[1], self.hidden_size, dtype=input.dtype)
            return (zeros, zeros) if lstm else (zeros,)
        state = tuple(hx) if lstm else (hx,)
        dims = 3 if batched else 2
        if any(s.dim() != dims for s in state):
            words = "batched 3-D" if batched else "unbatched 2-D"
            got = ", ".join(f"{s.dim()}-D" for s in state)
            raise RuntimeError(
                f"For {words} input, hx and cx should also be {dims}-D but got ({got}) tensors"
                if lstm
                else f"For {words} input, hx should also be {dims}-D but got {got} tensor"
            )
        if not batched:
            state = tuple(s.unsqueeze(1) for s in state)
        expected = (1, input.shape[1], self.hidden_size)
        for number, s in enumerate(state):
            if tuple(s.shape) != expected:
                which = f"hidden[{number}]" if lstm else "hidden"
                raise RuntimeError(f"Expected {which} size {expected}, got {list(s.shape)}")
        return tuple(s.squeeze(0) for s in state)


class RNN(RNNBase):
    """The simple recurrent network: ``RNN(input_size, hidden_size, nonlinearity="tanh")``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # PyTorch puts `nonlinearity` fourth, after num_layers.
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over a sequence: ``LSTM(input_size, hidden_size)``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """The gated recurrent unit over a sequence: ``GRU(input_size, hidden_size)``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)
