"""gradient_as_bucket_view: ``.grad`` is a slice of the bucket's memory."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Scale, a, grad, run, same_on_all

import minitorch as torch
from minitorch import nn


def aliases(ddp):
    """Whether every ``.grad`` lies in its bucket."""
    tensors = ddp.reducer.bucket_tensors
    return all(
        any(np.shares_memory(p.grad._array, bucket._array) for bucket in tensors)
        for p in ddp.module.parameters()
    )


def step(ddp, r):
    ddp(torch.full((1, 4), float(r + 1))).sum().backward()


def test_alias_life_cycle():
    def rank(r):
        ddp = DDP(nn.Linear(4, 4), gradient_as_bucket_view=True, bucket_cap_mb=0)
        fresh = [p.grad for p in ddp.parameters()]
        step(ddp, r)
        after_first = aliases(ddp)
        step(ddp, r)  # buckets are rebuilt
        after_rebuild = aliases(ddp)
        torch.optim.SGD(ddp.parameters()).zero_grad(set_to_none=False)
        kept = aliases(ddp)
        step(ddp, r)
        again = aliases(ddp)
        ddp.zero_grad()
        none = [p.grad for p in ddp.parameters()]
        step(ddp, r)
        return fresh, after_first, after_rebuild, kept, again, none, aliases(ddp)

    nothing = [None, None]
    assert same_on_all(rank) == (nothing, True, True, True, True, nothing, True)


def test_without_the_option_nothing_is_shared():
    def rank(r):
        ddp = DDP(nn.Linear(4, 4))
        step(ddp, r)
        return aliases(ddp)

    assert same_on_all(rank) is False


def test_rebuild_keeps_the_value_of_existing_gradients():
    def rank(r):
        ddp = DDP(nn.Linear(4, 4), gradient_as_bucket_view=True, bucket_cap_mb=0)
        step(ddp, r)
        before = [p.grad.tolist() for p in ddp.parameters()]
        ddp(torch.zeros(1, 4))  # rebuilds; its outputs are dropped
        return (
            ddp._has_rebuilt_buckets,
            before == [p.grad.tolist() for p in ddp.parameters()],
            aliases(ddp),
        )

    assert same_on_all(rank) == (True, True, True)


def test_detach_in_place_raises():
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=True)
        ddp(a(r)).sum().backward()
        with pytest.raises(RuntimeError, match="detach views in-place"):
            ddp.module.p.grad.detach_()

    run(rank)


def test_a_view_outlives_reducer_and_wrapper():
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=True)
        ddp(a(r)).sum().backward()
        gradient = ddp.module.p.grad
        del ddp
        torch.zeros(1000)
        return gradient.item()

    assert same_on_all(rank) == 1.5


def test_a_gradient_that_was_kept_is_not_copied():
    """Accumulation happens in the bucket itself: the Tensor and its memory stay the same ones."""

    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(ddp.parameters())
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            ddp(a(r)).sum().backward()
        before = ddp.module.p.grad, ddp.module.p.grad._array.ctypes.data
        optimizer.zero_grad(set_to_none=False)
        ddp(a(r)).sum().backward()
        after = ddp.module.p.grad
        return after is before[0], after._array.ctypes.data == before[1], grad(ddp.module.p)

    assert same_on_all(rank) == (True, True, 1.5)


def test_gradient_set_by_the_user_is_taken_over():
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=True)
        ddp(a(r)).sum().backward()
        ddp.module.p.grad = torch.tensor([10.0 * (r + 1)])
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p), aliases(ddp)

    assert same_on_all(rank) == (16.5, True)


def test_gradient_of_another_dtype_is_refused():
    def rank(r):
        ddp = DDP(Scale())
        ddp.module.p.data = ddp.module.p.data.double()
        with pytest.raises(RuntimeError, match="Expected float32, got float64: the gradient of p"):
            ddp(a(r).double()).sum().backward()

    run(rank)
