"""What the tests named after PyTorch's own suite and after users' reports share."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn

worlds = pytest.mark.parametrize("world", [2, 3, 4])
views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
nothing_unused = pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
UNFINISHED = "Expected to have finished reduction in the prior iteration before starting a new one."
TWICE = "Expected to mark a variable ready only once."


def mean_rank(world):
    """The average of r + 1 over the ranks, which is the averaged gradient in most tests."""
    return (world + 1) / 2


def seeded(make, seed=0):
    """A module with the same weights on every call, in float64."""
    torch.manual_seed(seed)
    return make().to(torch.float64)


def gradients(module):
    """By name: a copy of each gradient, or None."""
    return {
        name: None if p.grad is None else p.grad.detach().numpy().copy()
        for name, p in module.named_parameters()
    }


def weights(module):
    return np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])


def assert_same_bits(per_rank):
    """All ranks hold the same arrays."""
    for other in per_rank[1:]:
        np.testing.assert_array_equal(other, per_rank[0])


def rows(world, features, seed=0, per_rank=2):
    """One batch for all ranks together, float64."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.standard_normal((per_rank * world, features)))


def broadcasts():
    """How many broadcasts this rank has issued since the meter was reset."""
    return dist.meter().get("broadcast", {}).get("calls", 0)


class ThreeLayers(nn.Module):
    """fc1, fc2 and fc3, of which a forward may leave out the last; a softmax on top."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 10, bias=False)
        self.fc2 = nn.Linear(10, 4, bias=False)
        self.fc3 = nn.Linear(4, 4, bias=False)

    def forward(self, x, skip_fc3=False):
        x = torch.relu(self.fc2(torch.relu(self.fc1(x))))
        return torch.softmax(x if skip_fc3 else self.fc3(x), dim=1)
