"""How far back a gradient reaches, with each method: ‖∂L/∂h_t‖ and ‖∂L/∂c_t‖ at every step t.

As in the paper's figure: an LSTM that classifies permuted images is trained for one epoch, and the
norms of the loss's gradient at every step's states are added up. The loss looks at the last state
only. The network is the trainer's; it is stepped one pixel at a time, so that every state is a
tensor whose gradient can be asked for.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "trainers"))

import common
import numpy as np
import sequential_images

import minitorch as torch
from minitorch import nn
from minitorch.utils.data import DataLoader, TensorDataset
from minitorch.utils.data.distributed import DistributedSampler


def states_and_loss(model: Any, sequences: Any, labels: Any) -> tuple[list[Any], list[Any], Any]:
    """Hidden states and cells h_1, h_2, ... and c_1, c_2, ... of a batch (B, T, 1), and its loss."""
    hiddens, cells, state = [], [], None
    for pixels in sequences.transpose(0, 1):
        _, state = model.lstm(pixels.unsqueeze(0), state)
        hiddens.append(state[0])
        cells.append(state[1])
    return hiddens, cells, nn.functional.cross_entropy(model.scores(hiddens[-1][0]), labels)


def gradient_norms(states: list[Any], loss: Any) -> np.ndarray:
    """The gradient's norm at every state (1, B, H): the mean over samples, (T,) float64.

    The weights' gradients are accumulated on the way, for the step that follows.
    """
    for state in states:
        state.retain_grad()
    loss.backward()
    # The last cell has none: the loss looks at the last hidden state only.
    grads = [np.zeros(1) if s.grad is None else s.grad.numpy()[0] for s in states]
    return np.array([np.linalg.norm(grad, axis=-1).mean() for grad in grads])


def main(rank: int, args: argparse.Namespace) -> common.Summary:
    """Train for one epoch and add up."""
    parts = sequential_images.load_sequences("mnist-subset", args.rows, args.order, args.limit)
    torch.manual_seed(args.seed)
    model = sequential_images.SequenceClassifier(
        args.hidden, parts.classes, **common.recurrent_options(args)
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001, alpha=0.5)
    norms, count = epoch_of_norms(model, optimizer, parts.train, args.seed)
    content = {
        "settings": common.recurrent_settings(args, "data limit rows order"),
        "batches": count,
        "hidden": norms[0].tolist(),
        "cell": norms[1].tolist(),
    }
    common.write_json(args.history, content)
    return common.Summary(values=content)


def epoch_of_norms(
    model: Any, optimizer: Any, data: TensorDataset, seed: int
) -> tuple[np.ndarray, int]:
    """Sums over an epoch's batches, (2, T): of hidden states and of cells."""
    loader = DataLoader(data, batch_size=50, sampler=DistributedSampler(data, seed=seed))
    sums = np.zeros((2, data.tensors[0].shape[1]))
    for sequences, labels in loader:
        optimizer.zero_grad()
        hiddens, cells, loss = states_and_loss(model, sequences, labels)
        both = gradient_norms(hiddens + cells, loss)
        sums += both.reshape(2, -1)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return sums, len(loader)


def arguments() -> argparse.ArgumentParser:
    """The trainer's command line: its options mean the same here."""
    return sequential_images.arguments()


if __name__ == "__main__":
    command = arguments()
    common.launch(main, command.parse_args(), command)
