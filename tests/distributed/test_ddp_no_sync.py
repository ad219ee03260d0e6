"""``no_sync``: decided where forward runs, restored when its body raises."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Scale, a, arrays, b, batch, grad, mlp, run, same_on_all

from minitorch import nn

views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


@views
@pytest.mark.parametrize("rebuilt", [False, True])
def test_accumulates_locally_and_the_next_sync_averages_the_sum(view, rebuilt):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        for _ in range(2 * rebuilt):
            ddp(a(r)).sum().backward()
        ddp.zero_grad()
        with ddp.no_sync():
            ddp(a(r)).sum().backward()
        inside = grad(ddp.module.p)
        ddp(b(r)).sum().backward()
        return inside, grad(ddp.module.p)

    assert run(rank) == [(1.0, 16.5), (2.0, 16.5)]


def test_forward_inside_backward_outside_does_not_sync():
    def rank(r):
        ddp = DDP(Scale())
        with ddp.no_sync():
            out = ddp(a(r))
        out.sum().backward()
        return grad(ddp.module.p)

    assert run(rank) == [1.0, 2.0]


def test_forward_outside_backward_inside_syncs():
    def rank(r):
        ddp = DDP(Scale())
        out = ddp(a(r))
        with ddp.no_sync():
            out.sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank) == 1.5


def test_restored_when_the_body_raises():
    def rank(r):
        ddp = DDP(Scale())
        with pytest.raises(ZeroDivisionError), ddp.no_sync():
            assert not ddp.require_backward_grad_sync
            raise ZeroDivisionError
        flag = ddp.require_backward_grad_sync
        ddp(a(r)).sum().backward()
        return flag, grad(ddp.module.p)

    assert same_on_all(rank) == (True, 1.5)


def test_nested_contexts_restore_what_they_found():
    def rank(r):
        ddp = DDP(Scale())
        with ddp.no_sync():
            with ddp.no_sync():
                pass
            inner = ddp.require_backward_grad_sync
        return inner, ddp.require_backward_grad_sync

    assert same_on_all(rank) == (False, True)


def test_launches_nothing_inside():
    def rank(r):
        ddp = DDP(Scale())
        with ddp.no_sync():
            for _ in range(3):
                ddp(a(r)).sum().backward()
        return ddp.reducer._core.launched, ddp.reducer._core.iterations

    assert same_on_all(rank) == (0, 0)


@views
def test_gradient_accumulation_equals_one_process(view):
    """Even steps accumulate, odd steps synchronize: gradients differ in between and agree after."""
    xs, ys = zip(*(batch(12, seed=s) for s in range(4)), strict=True)

    def local(module, x, y):
        nn.functional.mse_loss(module(x), y).backward()
        return [p.grad.numpy().copy() for p in module.parameters()]

    alone, expected = mlp(), []
    for s in range(4):
        if s % 2 == 0:
            alone.zero_grad()
        expected.append(local(alone, xs[s], ys[s]))

    def rank(r):
        ddp = DDP(mlp(seed=r), gradient_as_bucket_view=view)
        seen = []
        for s in range(4):
            shard = xs[s][r::2], ys[s][r::2]
            if s % 2 == 0:
                ddp.zero_grad()
                with ddp.no_sync():
                    seen.append(local(ddp, *shard))
            else:
                seen.append(local(ddp, *shard))
        return seen, arrays(ddp)

    (zero, _), (one, _) = run(rank)
    for s in range(4):
        for left, right, whole in zip(zero[s], one[s], expected[s], strict=True):
            if s % 2 == 0:
                assert not np.allclose(left, right)
            else:
                assert left.tobytes() == right.tobytes()
                np.testing.assert_allclose(left, whole, rtol=1e-5, atol=1e-6)
