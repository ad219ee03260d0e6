"""What is measured, written once and run under both frameworks: `torch` is an argument.

Each function builds its model and data and returns a step to be timed. That the same lines run
under PyTorch and under minitorch is the drop-in rule at work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]

AUTOGRAD_OPS = 24  # per step of `autograd`


def autograd(torch: Any) -> Step:
    """Small ops, where the engine's own work is all there is: 8 x 8 tensors, forward and backward
    of 24 ops.
    """
    torch.manual_seed(0)
    x = torch.randn(8, 8, requires_grad=True)
    w = torch.randn(8, 8, requires_grad=True)

    def step() -> None:
        x.grad = w.grad = None
        y = x
        for _ in range(5):
            y = y * w
            y = y + x
            y = y.tanh()
            y = y - w
        y = y @ w
        y = y.exp()
        y = y.relu()
        y.sum().backward()

    return step


def train_step(torch: Any, model: Any, inputs: Any, targets: Any) -> Step:
    """One step of SGD with momentum on one batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()

    return step


def mlp(torch: Any) -> Step:
    """One training step of 784-512-512-10, batch 64."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    return train_step(torch, model, torch.randn(64, 784), torch.randint(0, 10, (64,)))


def lstm(torch: Any) -> Step:
    """Forward and backward through an LSTM cell unrolled over 100 steps, batch 32, 64 -> 128."""
    torch.manual_seed(0)
    cell = torch.nn.LSTMCell(64, 128)
    inputs = torch.randn(100, 32, 64)

    def step() -> None:
        cell.zero_grad()
        h, c = torch.zeros(32, 128), torch.zeros(32, 128)
        for t in range(100):
            h, c = cell(inputs[t], (h, c))
        h.sum().backward()

    return step


def lstm_sequence(torch: Any) -> Step:
    """The same over ``nn.LSTM``: one call for all steps."""
    torch.manual_seed(0)
    return _sequence_step(torch, torch.nn.LSTM(64, 128))


def zoneout_lstm(torch: Any) -> Step:
    """The same with zoneout at the rates of the paper's character model; minitorch only."""
    torch.manual_seed(0)
    net = torch.nn.ZoneoutLSTM(64, 128, zoneout_cell=0.5, zoneout_hidden=0.05)
    return _sequence_step(torch, net)


def _sequence_step(torch: Any, net: Any) -> Step:
    inputs = torch.randn(100, 32, 64)

    def step() -> None:
        net.zero_grad()
        _, (h, _) = net(inputs)
        h.sum().backward()

    return step


def small_cnn(torch: Any) -> Any:
    """Build the network of tutorials/trainers/images.py."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def cnn_data(torch: Any) -> tuple[Any, Any]:
    """Return a batch of 64 pictures' worth of noise and labels."""
    return torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))


def cnn(torch: Any) -> Step:
    """One training step of the images trainer's CNN, batch 64."""
    torch.manual_seed(0)
    return train_step(torch, small_cnn(torch), *cnn_data(torch))


WORKLOADS: dict[str, Callable[[Any], Step]] = {
    "autograd": autograd,
    "mlp": mlp,
    "lstm": lstm,
    "lstm_sequence": lstm_sequence,
    "zoneout_lstm": zoneout_lstm,
    "cnn": cnn,
}
