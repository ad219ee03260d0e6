"""Backwards in which parameters get no gradient although the graph reaches them, or are not reached
at all on one rank: the ranks' collectives still find each other.

The values without a flag are PyTorch's; so are those of a rank whose rules give no gradient. A rank
whose backward comes by no parameter makes the others wait for ever in PyTorch.
"""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, Branches, a, grad, run, same_on_all
from distributed.suite_cases import nothing_unused, views, worlds

import minitorch as torch
from minitorch import nn, optim

FLAGS = {
    "none": {},
    "find_unused": {"find_unused_parameters": True},
    "static": {"static_graph": True},
}
flags = pytest.mark.parametrize("flag", FLAGS)


class Withhold(torch.autograd.Function):
    """``x + y``; no gradient for y."""

    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Withholding(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.tensor([1.0]))
        self.q = nn.Parameter(torch.tensor([1.0]))

    def forward(self, x, here=True):
        return Withhold.apply(self.p * x, self.q * x) if here else self.p * x + self.q * x


def steps(ddp, loss, count=4):
    """Gradients of p and q after each of some steps."""
    optimizer, seen = optim.SGD(ddp.parameters(), lr=0.1), []
    for step in range(count):
        optimizer.zero_grad()
        loss(step).backward()
        optimizer.step()
        seen.append((grad(ddp.module.p), grad(ddp.module.q)))
    ddp.check_consistency()
    return seen


@flags
@views
@nothing_unused
def test_a_rule_that_gives_no_gradient(flag, view):
    """It contributes zeros. Nobody having used q, a flag leaves its ``.grad`` alone."""

    def rank(r):
        ddp = DDP(Withholding(), gradient_as_bucket_view=view, **FLAGS[flag])
        return steps(ddp, lambda step: ddp(a(r)).sum())

    assert same_on_all(rank) == [(1.5, 0.0 if flag == "none" else None)] * 4


@worlds
@flags
@nothing_unused
def test_a_rule_that_gives_no_gradient_on_one_rank(world, flag):
    def rank(r):
        ddp = DDP(Withholding(), bucket_cap_mb=0, **FLAGS[flag])
        return steps(ddp, lambda step: ddp(a(r), here=r == 0).sum())

    ranks = range(world)
    p, q = (sum(r + 1.0 for r in ranks if r >= first) / world for first in (0, 1))
    for seen in same_on_all(rank, world):
        assert seen == pytest.approx((p, q))


class Nothing(torch.autograd.Function):
    """The identity; no gradient at all on the ranks that are not 0."""

    @staticmethod
    def forward(ctx, x, rank):
        ctx.rank = rank
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return (gradient if ctx.rank == 0 else None), None


@flags
@nothing_unused
def test_a_loss_that_gives_no_gradient_on_one_rank(flag):
    def rank(r):
        ddp = DDP(Branches(), **FLAGS[flag])
        return steps(ddp, lambda step: Nothing.apply(ddp(a(r)), r).sum())

    assert same_on_all(rank) == [(0.5, 0.5)] * 4


class Bypass(Branches):
    """``p * x``, or the input alone."""

    def forward(self, x, use=True):
        return self.p * x if use else x * 2.0


@worlds
@views
@pytest.mark.parametrize("flag", ["find_unused", "static"])
def test_a_rank_whose_backward_reaches_no_parameter(world, view, flag):
    def rank(r):
        ddp = DDP(Bypass(), bucket_cap_mb=0, gradient_as_bucket_view=view, **FLAGS[flag])
        return steps(ddp, lambda step: ddp(a(r).requires_grad_(), r == 1).sum())

    assert same_on_all(rank, world) == [(pytest.approx(2 / world), None)] * 4


def test_ranks_that_take_turns_in_reaching_no_parameter():
    def rank(r):
        ddp = DDP(Bypass(), find_unused_parameters=True)
        return steps(ddp, lambda step: ddp(a(r).requires_grad_(), (r + step) % 3 == 0).sum())

    # In step s, rank -s mod 3 takes part.
    expected = [1 / 3, 3 / 3, 2 / 3, 1 / 3]
    assert [p for p, _ in same_on_all(rank, 3)] == pytest.approx(expected)


def test_a_backward_for_the_inputs_only_sends_nothing():
    def rank(r):
        ddp = DDP(Bypass(), find_unused_parameters=True)
        x = a(r).requires_grad_()
        ddp(x).sum().backward(inputs=[x])
        before = grad(ddp.module.p), ddp._get_ddp_logging_data()["iteration"]
        ddp(a(r)).sum().backward()
        return before, grad(ddp.module.p)

    assert same_on_all(rank) == ((None, 0), 1.5)


def test_a_frozen_wrapper_sends_nothing():
    """A generator is trained through a discriminator whose parameters are frozen meanwhile."""

    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True)
        for p in ddp.parameters():
            p.requires_grad_(False)
        ddp(a(r).requires_grad_()).sum().backward()
        return ddp._get_ddp_logging_data()["iteration"]

    assert run(rank) == [0, 0]
