"""Small modules whose gradients are known by hand, for the tests of DistributedDataParallel.

In most tests rank r's local gradient is r + 1 for input A and 10 (r + 1) for input B; with two
ranks their averages are 1.5 and 15, with W ranks (W + 1) / 2 and 5 (W + 1).
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, optim
from minitorch.nn.parallel import DistributedDataParallel as DDP

F32, F64 = torch.float32, torch.float64


def run(fn, world_size=2, *args, **kwargs):
    """Run ``fn(rank, *args)`` on ranks that are threads; return what each returned."""
    return dist.run_local(fn, world_size, args, **kwargs)


def same_on_all(fn, world_size=2, *args):
    """Like :func:`run`, for results that must not depend on the rank."""
    results = run(fn, world_size, *args)
    assert all(result == results[0] for result in results), results
    return results[0]


def a(rank):
    return torch.tensor([float(rank + 1)])


def b(rank):
    return torch.tensor([10.0 * (rank + 1)])


class Scale(nn.Module):
    """``p * x``: the gradient of p is x."""

    def __init__(self, value=1.0):
        super().__init__()
        self.p = nn.Parameter(torch.tensor([value]))

    def forward(self, x):
        return self.p * x


class Branches(nn.Module):
    """``p * x + q * x`` where q may be left out; z is never used if it is there."""

    def __init__(self, *, with_z=False):
        super().__init__()
        self.p = nn.Parameter(torch.tensor([1.0]))
        self.q = nn.Parameter(torch.tensor([1.0]))
        if with_z:
            self.z = nn.Parameter(torch.tensor([1.0]))

    def forward(self, x, use_q=True):
        out = self.p * x
        return out + self.q * x if use_q else out


class TwoOutputs(nn.Module):
    """Disjoint outputs ``p * x`` and ``q * x``."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor([1.0]))
        self.q = nn.Parameter(torch.tensor([1.0]))

    def forward(self, x):
        return self.p * x, self.q * x


def grad(parameter):
    """Return ``.grad`` of a one-element parameter as a float, or None."""
    return None if parameter.grad is None else parameter.grad.item()


def mlp(dtype=F32, seed=0):
    """A small network without batch statistics, the same for the same seed."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        OrderedDict(
            first=nn.Linear(5, 7),
            act=nn.Tanh(),
            second=nn.Linear(7, 7),
            act2=nn.Tanh(),
            last=nn.Linear(7, 3),
        )
    )
    return model.to(dtype)


def batch(rows, dtype=F32, seed=0):
    """Inputs and targets as tensors, the same for the same seed."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((rows, 5))).to(dtype)
    y = torch.from_numpy(rng.standard_normal((rows, 3))).to(dtype)
    return x, y


def arrays(module):
    return [p.detach().numpy().copy() for p in module.parameters()]


__all__ = [
    "DDP",
    "F32",
    "F64",
    "Branches",
    "Scale",
    "TwoOutputs",
    "a",
    "arrays",
    "b",
    "batch",
    "grad",
    "mlp",
    "run",
    "same_on_all",
]


def train(ddp, inputs, lr=1.0):
    """Take one step of SGD per input; return the gradients seen."""
    sgd = optim.SGD(ddp.parameters(), lr=lr)
    seen = []
    for x in inputs:
        sgd.zero_grad()
        ddp(x).sum().backward()
        seen.append([grad(p) for p in ddp.parameters()])
        sgd.step()
    return seen
