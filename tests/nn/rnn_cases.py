"""Recurrent networks in all combinations of their options, run here and under PyTorch.

``record_rnn.py`` runs them under PyTorch. Weights, inputs and states come from a NumPy generator
seeded by the case's name, so that only results have to be kept: outputs of every case in float32,
and for some cases outputs and all gradients in float64.
"""

from __future__ import annotations

import itertools
import zlib
from typing import Any, NamedTuple

import numpy as np

INPUT, HIDDEN, STEPS = 3, 4, 4
LENGTHS = [2, 4, 1]  # of the packed batch
LAYOUTS = ("padded", "batch_first", "packed", "unbatched")
KINDS = ("RNN", "RNN relu", "LSTM", "GRU", "LSTM proj")


class Case(NamedTuple):
    kind: str
    layers: int
    bidirectional: bool
    bias: bool
    layout: str
    state: bool

    @property
    def name(self) -> str:
        return "/".join(map(str, self))


CASES = [
    Case(*options)
    for options in itertools.product(
        KINDS, (1, 2), (False, True), (True, False), LAYOUTS, (False, True)
    )
]
# With gradients in float64: every kind and layout, one and two layers, both directions.
FULL = [
    case
    for case in CASES
    if case.bias and case.state and case.layers + case.bidirectional in (1, 3)
]


def build(case: Case, torch: Any, dtype: Any) -> Any:
    """The network of a case, under PyTorch or minitorch."""
    kind, _, word = case.kind.partition(" ")
    options: dict[str, Any] = {"nonlinearity": "relu"} if word == "relu" else {}
    if word == "proj":
        options["proj_size"] = 2
    return getattr(torch.nn, kind)(
        INPUT,
        HIDDEN,
        case.layers,
        bias=case.bias,
        batch_first=case.layout == "batch_first",
        bidirectional=case.bidirectional,
        dtype=dtype,
        **options,
    )


def evaluate(case: Case, torch: Any, width: str, gradients: bool) -> dict[str, np.ndarray]:
    """Run a case; `width` is float32 or float64. Results by name."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    module = build(case, torch, getattr(torch, width))
    tensors: dict[str, Any] = {}

    def normal(name: str, *shape: int) -> Any:
        values = torch.from_numpy(rng.standard_normal(shape).astype(width))
        tensors[name] = values.requires_grad_()
        return values

    module.load_state_dict(
        {
            key: torch.from_numpy(rng.uniform(-0.8, 0.8, tuple(value.shape)).astype(width))
            for key, value in module.state_dict().items()
        }
    )
    tensors |= dict(module.named_parameters())
    batch = len(LENGTHS)
    x = normal("x", STEPS, batch, INPUT)
    if case.layout == "batch_first":
        x = x.transpose(0, 1)
    elif case.layout == "unbatched":
        x = x[:, 0]
    elif case.layout == "packed":
        x = torch.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    states = None
    if case.state:
        count = case.layers * (2 if case.bidirectional else 1)
        middle = () if case.layout == "unbatched" else (batch,)
        states = normal("h0", count, *middle, 2 if "proj" in case.kind else HIDDEN)
        if "LSTM" in case.kind:
            states = states, normal("c0", count, *middle, HIDDEN)
    output, last = module(x, states)
    if case.layout == "packed":
        output = torch.nn.utils.rnn.pad_packed_sequence(output)[0]
    results = (
        {"output": output, "h": last}
        if "LSTM" not in case.kind
        else {
            "output": output,
            "h": last[0],
            "c": last[1],
        }
    )
    found = {name: np.array(value.detach().numpy()) for name, value in results.items()}
    if gradients:
        total = 0.0
        for value in results.values():
            weights = np.cos(np.arange(value.numel()) + 1.0).reshape(tuple(value.shape))
            total = total + (value * torch.from_numpy(weights.astype(width))).sum()
        total.backward()
        for name, tensor in tensors.items():
            found[f"grad.{name}"] = np.array(tensor.grad.numpy())
    return found


# Printed, and asked for the names of their parameters.
REPRS = (
    "nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)",
    "nn.LSTM(3, 4, 2, bias=False, batch_first=True, dropout=0.5)",
    "nn.RNN(3, 4, 2, 'relu', False, True)",
    "nn.GRU(3, 4, num_layers=2, bidirectional=True)",
)

ERRORS = (
    "nn.LSTM(3, 4, proj_size=4)",
    "nn.LSTM(3, 4, proj_size=-1)",
    "nn.GRU(3, 4, proj_size=2)",
    "nn.RNN(3, 4, proj_size=2)",
    "nn.LSTM(3, 4, num_layers=0)",
    "nn.LSTM(0, 4)",
    "nn.LSTM(3.0, 4)",
    "nn.LSTM(3, '4')",
    "nn.LSTM(3, 4, bias=1)",
    "nn.LSTM(3, 4, batch_first=None)",
    "nn.LSTM(3, 4, 2, dropout=1.5)",
    "nn.LSTM(3, 4, 2, dropout=True)",
    "nn.RNN(3, 4, 1, 'sin')",
    "nn.LSTM(3, 4)(torch.ones(2, 2, 3, dtype=torch.float64))",
    "nn.LSTM(3, 4)(torch.ones(2))",
    "nn.RNN(3, 4)(torch.ones(2))",
    "nn.GRU(3, 4)(torch.ones(2))",
    "nn.LSTM(3, 4)(torch.ones(2, 2, 5))",
    "nn.LSTM(3, 4)(torch.ones(0, 2, 3))",
    "nn.LSTM(3, 4, 2)(torch.ones(2, 2, 3), (torch.ones(1, 2, 4), torch.ones(2, 2, 4)))",
    "nn.LSTM(3, 4, 2)(torch.ones(2, 2, 3), (torch.ones(2, 2, 4), torch.ones(2, 1, 4)))",
    "nn.LSTM(3, 4, proj_size=2)(torch.ones(2, 2, 3), (torch.ones(1, 2, 4), torch.ones(1, 2, 4)))",
    "nn.GRU(3, 4, bidirectional=True)(torch.ones(2, 2, 3), torch.ones(1, 2, 4))",
    "nn.GRU(3, 4)(torch.ones(2, 3), torch.ones(1, 2, 4))",
    "nn.GRU(3, 4)(torch.ones(2, 2, 3), torch.ones(1, 4))",
    "nn.LSTM(3, 4)(torch.ones(2, 3), (torch.ones(1, 2, 4), torch.ones(1, 4)))",
    "nn.GRU(3, 4)(torch.ones(2, 1, 3), torch.ones(1, 1, 4, dtype=torch.float64))",
    "nn.LSTMCell(3, 4)(torch.ones(2, 3, dtype=torch.float64))",
    "nn.RNNCell(3, 4)(torch.ones(2, 3), torch.ones(2, 4, dtype=torch.float64))",
    "rnn.pack_padded_sequence(torch.ones(3, 2), [1, 2])",
    "rnn.pack_padded_sequence(torch.ones(3, 2), [2, 0])",
    "rnn.pack_padded_sequence(torch.ones(3, 2), [2])",
    "rnn.pack_padded_sequence(torch.ones(0, 2), [1, 1])",
    "rnn.pad_packed_sequence(rnn.pack_padded_sequence(torch.ones(3, 2), [3, 1]), total_length=2)",
    "rnn.pad_sequence(3)",
    "rnn.pad_sequence([torch.ones(2)], padding_side='top')",
)


def message(expression: str, torch: Any) -> str:
    """The error that an expression raises: its class and text."""
    names = {"nn": torch.nn, "torch": torch, "rnn": torch.nn.utils.rnn}
    try:
        eval(expression, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
