"""What ``RNN``, ``LSTM`` and ``GRU`` share: parameters, checks, layers and directions.

Parameters are called ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0`` and, with
`proj_size`, ``weight_hr_l0``; the number is the layer's, and the backward direction adds
``_reverse``. Gates lie in PyTorch's order, so that state dictionaries are interchangeable.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import minitorch
from minitorch.amp import is_autocast_enabled
from minitorch.nn import functional as F
from minitorch.nn import init
from minitorch.nn.modules.module import Module
from minitorch.nn.parameter import Parameter
from minitorch.nn.utils.rnn import PackedSequence
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_schedule import Schedule
from minitorch.ops.recurrent_sequence import sequence

__all__ = ["RNNBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _check_options(
    input_size: Any,
    hidden_size: Any,
    num_layers: int,
    bias: Any,
    batch_first: Any,
    dropout: Any,
    proj_size: int,
) -> None:
    """Raise as PyTorch does for options that make no sense."""
    if (
        not isinstance(dropout, numbers.Number)
        or isinstance(dropout, bool)
        or not 0 <= dropout <= 1  # type: ignore[operator]
    ):
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
    if input_size <= 0:
        raise ValueError("input_size must be greater than zero")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNNBase(Module):
    """A stack of recurrent layers; see :class:`LSTM`, :class:`GRU` and :class:`RNN`."""

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
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(self._directions):
                self._add_weights(layer, direction, dtype)
        self.reset_parameters()

    def _add_weights(self, layer: int, direction: int, dtype: Any) -> None:
        gates = _GATES[self.mode] * self.hidden_size
        width = self.input_size if layer == 0 else self._output_size * self._directions
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, width),
            "weight_hh": (gates, self._output_size),
        }
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        suffix = f"_l{layer}" + ("_reverse" if direction else "")
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(minitorch.empty(*shape, dtype=dtype)))
        self._all_weights.append([name + suffix for name in shapes])

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        """Width of the hidden state, which is what the layer puts out per direction."""
        return self.proj_size or self.hidden_size

    def reset_parameters(self) -> None:
        """Draw new values, uniform within one over the square root of the hidden size."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing to do on the CPU; scripts written for GPUs call it."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != usual:
                parts.append(f"{name}={value}")
        return ", ".join(parts)

    # -- checks ------------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless the input has the weights' dtype and the right number of features."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert "
                f"input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Shape of the hidden state: layers times directions, batch, width."""
        if batch_sizes is None:
            batch = input.shape[0 if self.batch_first else 1]
        else:
            batch = int(batch_sizes[0])
        return self.num_layers * self._directions, batch, self._output_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise unless a state has the expected shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def _check_state(self, state: tuple, expected: tuple[int, int, int]) -> None:
        if self.mode != "LSTM":
            self.check_hidden_size(state[0], expected)
            return
        self.check_hidden_size(state[0], expected, "Expected hidden[0] size {}, got {}")
        cell = (*expected[:2], self.hidden_size)
        self.check_hidden_size(state[1], cell, "Expected hidden[1] size {}, got {}")

    def _check_state_dims(self, state: tuple, batched: bool) -> None:
        dims = 3 if batched else 2
        if all(s.dim() == dims for s in state):
            return
        words = f"For {'batched' if batched else 'unbatched'} {dims}-D input, hx "
        if self.mode == "LSTM":
            got = ", ".join(f"{s.dim()}-D" for s in state)
            raise RuntimeError(f"{words}and cx should also be {dims}-D but got ({got}) tensors")
        raise RuntimeError(f"{words}should also be {dims}-D but got {state[0].dim()}-D tensor")

    # -- running -----------------------------------------------------------------------------------

    def _as_state(self, hx: Any) -> tuple | None:
        """The initial state as a tuple; None stays None."""
        if hx is None:
            return None
        return tuple(hx) if self.mode == "LSTM" else (hx,)

    def _zero_state(self, expected: tuple[int, int, int], dtype: Any) -> tuple:
        hidden = minitorch.zeros(*expected, dtype=dtype)
        if self.mode != "LSTM":
            return (hidden,)
        return hidden, minitorch.zeros(*expected[:2], self.hidden_size, dtype=dtype)

    def _run(self, input: Any, hx: Any, **options: Any) -> tuple[Any, Any]:
        """Run the stack over a padded, packed or single sequence; return outputs and last state."""
        state = self._as_state(hx)
        if isinstance(input, PackedSequence):
            output, state = self._run_packed(input, state, **options)
        else:
            output, state = self._run_padded(input, state, **options)
        return output, state if self.mode == "LSTM" else state[0]

    def _run_packed(self, input: PackedSequence, state: tuple | None, **options: Any) -> tuple:
        data, sizes, order, back = input
        self.check_input(data, sizes)
        expected = self.get_expected_hidden_size(data, sizes)
        if state is None:
            state = self._zero_state(expected, data.dtype)
        else:
            state = tuple(self.permute_hidden(s, order) for s in state)
        self._check_state(state, expected)
        if order is not None:
            options["order"] = order._array
        rows, state = self._run_layers(data, state, sizes._array.tolist(), **options)
        state = tuple(self.permute_hidden(s, back) for s in state)
        return PackedSequence(rows, sizes, order, back), state

    def _run_padded(self, input: Tensor, state: tuple | None, **options: Any) -> tuple:
        if input.dim() not in (2, 3):
            name = type(self).__name__.removeprefix("Zoneout")
            kind = " tensor" if name == "RNN" else ""
            raise ValueError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{kind} instead"
            )
        batched = input.dim() == 3
        if state is not None:
            self._check_state_dims(state, batched)
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
            state = None if state is None else tuple(s.unsqueeze(1) for s in state)
        self.check_input(input, None)
        expected = self.get_expected_hidden_size(input, None)
        if state is None:
            state = self._zero_state(expected, input.dtype)
        self._check_state(state, expected)
        block = input.transpose(0, 1) if self.batch_first else input
        steps, batch = block.shape[:2]
        if steps == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        rows, state = self._run_layers(
            block.reshape(steps * batch, self.input_size), state, [batch] * steps, **options
        )
        output = rows.reshape(steps, batch, rows.shape[1])
        if not batched:
            return output.squeeze(1), tuple(s.squeeze(1) for s in state)
        return output.transpose(0, 1) if self.batch_first else output, state

    def _run_layers(
        self, rows: Tensor, state: tuple, sizes: list[int], **options: Any
    ) -> tuple[Tensor, tuple]:
        """All layers and directions over ``(rows, features)``; `sizes` are the rows per step."""
        schedules = [Schedule(sizes, reverse=bool(d)) for d in range(self._directions)]
        finals = []
        for layer in range(self.num_layers):
            outputs = []
            for direction, schedule in enumerate(schedules):
                number = layer * self._directions + direction
                initial = tuple(s[number] for s in state)
                out, *last = self._run_one(number, rows, initial, schedule, **options)
                outputs.append(out)
                finals.append(last)
            rows = outputs[0] if len(outputs) == 1 else minitorch.cat(outputs, 1)
            rows = self._between(layer, rows, **options)
        if len(finals) == 1:
            return rows, tuple(s.unsqueeze(0) for s in finals[0])
        return rows, tuple(minitorch.stack(parts, 0) for parts in zip(*finals, strict=True))

    def _weights_of(self, number: int) -> tuple:
        """``(w_ih, w_hh, b_ih, b_hh)`` of a layer and direction, for the LSTM also ``w_hr``."""
        w_ih, w_hh, *rest = self.all_weights[number]
        biases = (rest.pop(0), rest.pop(0)) if self.bias else (None, None)
        if self.mode != "LSTM":
            return w_ih, w_hh, *biases
        return w_ih, w_hh, *biases, rest[0] if rest else None

    def _between(self, layer: int, rows: Tensor, order: Any = None) -> Tensor:
        """What happens to a layer's outputs on the way to the next layer."""
        if self.dropout > 0 and layer < self.num_layers - 1:
            return F.dropout(rows, self.dropout, self.training)
        return rows

    def _run_one(
        self, number: int, rows: Tensor, initial: tuple, schedule: Schedule, order: Any = None
    ) -> tuple[Tensor, ...]:
        """One layer in one direction; `order` is how the batch was sorted, if it was."""
        return sequence(self.mode, rows, initial, self._weights_of(number), schedule)

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Tensor:
        """Reorder the batch of a state."""
        return hx if permutation is None else hx.index_select(1, permutation)
