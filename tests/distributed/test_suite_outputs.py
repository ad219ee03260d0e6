"""Behaviours that PyTorch's own suite checks: kinds of outputs, several backwards, static graphs.

Each test starts with the name of the upstream test it restates. The table is in README.md.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Branches, Scale, TwoOutputs, a, b, grad, run, same_on_all
from distributed.suite_cases import UNFINISHED, mean_rank, nothing_unused, rows, seeded, worlds

import minitorch as torch
from minitorch import nn

Pair = namedtuple("Pair", ["first", "second"])
CHANGED = "Your training graph has changed in this iteration"


@dataclass
class Record:
    first: Any
    second: Any


class Shaped(nn.Module):
    """Two layers whose results come back in the container that ``wrap`` makes."""

    def __init__(self, wrap):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(2, 3), nn.Linear(3, 3)
        self.wrap = wrap

    def forward(self, x):
        hidden = torch.tanh(self.fc1(x))
        return self.wrap(hidden, self.fc2(hidden))


CONTAINERS = {
    "tuple": (lambda x, y: (x, y), lambda out: out),
    "list": (lambda x, y: [x, y], lambda out: out),
    "namedtuple": (Pair, lambda out: out),
    "dict": (lambda x, y: {"x": x, "y": y}, lambda out: (out["x"], out["y"])),
    "dataclass": (Record, lambda out: (out.first, out.second)),
    "nested": (
        lambda x, y: {"list": [x, {"deep": (y, "text", None)}]},
        lambda out: (out["list"][0], out["list"][1]["deep"][0]),
    ),
}


@worlds
@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize(
    "options",
    [{}, {"find_unused_parameters": True}, {"static_graph": True}],
    ids=["plain", "unused", "static"],
)
@nothing_unused
def test_arbitrary_forward_return_value(world, kind, options):
    """Every container, in three modes (upstream also static_graph_nested_types): as local."""
    wrap, unwrap = CONTAINERS[kind]

    def step(model, share):
        for seed in range(3):
            model.zero_grad()
            first, second = unwrap(model(rows(world, 2, seed)[share]))
            (first.mean() + second.pow(2).mean()).backward()
        return [p.grad.numpy().copy() for p in model.parameters()]

    alone = step(seeded(lambda: Shaped(wrap)), slice(None))

    def rank(r):
        return step(DDP(seeded(lambda: Shaped(wrap)), **options), slice(r, None, world))

    for together in run(rank, world):
        for ours, right in zip(together, alone, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-10, atol=1e-14)


@worlds
def test_multiple_outputs_multiple_backward(world):
    """Two disjoint outputs, two backwards: averages once both have run."""

    def rank(r):
        ddp = DDP(TwoOutputs(), bucket_cap_mb=0)
        for _ in range(3):
            ddp.zero_grad()
            out_p, out_q = ddp(a(r))
            out_q.sum().backward()
            out_p.sum().backward()
        return grad(ddp.module.p), grad(ddp.module.q)

    assert same_on_all(rank, world) == (mean_rank(world), mean_rank(world))


@worlds
@pytest.mark.parametrize("static_graph", [False, True], ids=["dynamic", "static"])
def test_static_graph_multi_forward(world, static_graph):
    """Two forwards, one backward of their sum: the average of the local gradients."""

    def rank(r):
        ddp = DDP(Scale(), static_graph=static_graph)
        seen = []
        for _ in range(3):
            ddp.zero_grad()
            (ddp(a(r)) + ddp(b(r))).sum().backward()
            seen.append(grad(ddp.module.p))
        return seen

    assert same_on_all(rank, world) == [11 * mean_rank(world)] * 3


@worlds
def test_invalid_static_graph_unused_becomes_used(world):
    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        for _ in range(2):
            ddp(a(r), use_q=False).sum().backward()
        with pytest.raises(RuntimeError, match=CHANGED):
            ddp(a(r), use_q=True).sum().backward()

    run(rank, world)


@worlds
def test_invalid_static_graph_used_becomes_unused(world):
    """PyTorch raises at the next forward; here the optimizer's step does, before it moves."""

    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
        for _ in range(2):
            ddp(a(r)).sum().backward()
        ddp(a(r), use_q=False).sum().backward()
        with pytest.raises(RuntimeError, match=UNFINISHED) as caught:
            optimizer.step()
        text = str(caught.value)
        assert "your training graph has changed in this iteration" in text
        assert f"did not receive grad for rank {r}: 1" in text
        with pytest.raises(RuntimeError, match=UNFINISHED):
            ddp(a(r))
        return ddp.module.p.item()

    assert same_on_all(rank, world) == 1.0


@worlds
def test_static_graph_api(world):
    """Set by method before training; refused afterwards."""

    def rank(r):
        ddp = DDP(Branches())
        ddp._set_static_graph()
        for _ in range(3):
            ddp.zero_grad()
            ddp(a(r), use_q=False).sum().backward()
        before = grad(ddp.module.p), grad(ddp.module.q)
        late = DDP(Scale())
        late(a(r)).sum().backward()
        with pytest.raises(RuntimeError, match="should be called before training loop starts"):
            late._set_static_graph()
        return before

    assert same_on_all(rank, world) == (mean_rank(world), None)


@worlds
def test_static_graph_with_parameters_unused_from_the_start(world):
    """E10: gradients stay None, in every iteration; the layout is rebuilt all the same."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), static_graph=True)
        seen = []
        for _ in range(4):
            ddp.zero_grad()
            ddp(a(r), use_q=False).sum().backward()
            seen.append((grad(ddp.module.p), grad(ddp.module.q), grad(ddp.module.z)))
        return seen, ddp._get_ddp_logging_data()["has_rebuilt_buckets"]

    assert same_on_all(rank, world) == ([(mean_rank(world), None, None)] * 4, 1)


@worlds
def test_returns_tensor_with_no_grad(world):
    """A detached output stays detached, also if it is the first; the other is reduced."""

    class Detached(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            out = self.fc(x)
            return out.detach(), out

    def rank(r):
        ddp = DDP(Detached(), find_unused_parameters=True)
        for _ in range(3):
            ddp.zero_grad()
            detached, out = ddp(torch.full((1, 2), r + 1.0))
            plain = detached.requires_grad, detached.grad_fn
            out.sum().backward()
        return plain, ddp.module.fc.weight.grad.tolist()

    with pytest.warns(UserWarning, match="find_unused_parameters=True was specified"):
        results = same_on_all(rank, world)
    assert results == ((False, None), [[mean_rank(world)] * 2] * 2)


@worlds
@pytest.mark.parametrize(
    "options",
    [{}, {"find_unused_parameters": True}, {"static_graph": True}],
    ids=["plain", "unused", "static"],
)
@nothing_unused
def test_new_tensor_in_fwd(world, options):
    """A tensor made in forward keeps what it had: no grad_fn, and its own requires_grad."""

    class Makes(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            asked = torch.ones(2, requires_grad=True)
            return {"new": torch.zeros(2), "asked": asked, "out": self.fc(x)}

    def rank(r):
        ddp = DDP(Makes(), **options)
        for _ in range(3):
            ddp.zero_grad()
            out = ddp(torch.full((1, 2), r + 1.0))
            made = out["new"].grad_fn, out["new"].requires_grad
            asked = out["asked"].grad_fn, out["asked"].requires_grad
            out["out"].sum().backward()
        return made, asked, ddp.module.fc.weight.grad.tolist()

    made, asked, gradient = same_on_all(rank, world)
    assert made == (None, False)
    assert asked == (None, True)
    assert gradient == [[mean_rank(world)] * 2] * 2
