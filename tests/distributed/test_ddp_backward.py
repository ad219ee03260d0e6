"""Several forwards and backwards: when gradients are averaged. Values as in PyTorch 2.13."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, Scale, TwoOutputs, a, b, grad, run, same_on_all

import minitorch as torch
from minitorch import nn

LOCAL = "a backward that DistributedDataParallel does not average"
views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


@views
def test_forward_twice_then_backward_twice_syncs_the_first_backward_only(view):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        out_a, out_b = ddp(a(r)), ddp(b(r))
        out_a.sum().backward()
        after_a = grad(ddp.module.p)
        out_b.sum().backward()
        return after_a, grad(ddp.module.p)

    with pytest.warns(UserWarning, match=LOCAL):
        assert run(rank) == [(1.5, 11.5), (1.5, 21.5)]


@views
def test_second_backward_of_one_forward_is_local(view):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        loss = ddp(a(r)).sum()
        loss.backward(retain_graph=True)
        first = grad(ddp.module.p)
        loss.backward()
        return first, grad(ddp.module.p)

    with pytest.warns(UserWarning, match=LOCAL):
        assert run(rank) == [(1.5, 2.5), (1.5, 3.5)]


def test_two_forwards_one_backward():
    def rank(r):
        ddp = DDP(Scale())
        (ddp(a(r)) + ddp(b(r))).sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank) == 16.5


@views
def test_accumulated_gradient_is_averaged_again(view):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        ddp(a(r)).sum().backward()
        ddp(b(r)).sum().backward()  # no zero_grad in between
        return grad(ddp.module.p)

    assert same_on_all(rank) == 16.5


def test_disjoint_outputs_sync_with_the_backward_that_completes_them():
    def rank(r):
        ddp = DDP(TwoOutputs())
        out_p, out_q = ddp(a(r))
        out_p.sum().backward()
        between = grad(ddp.module.p), grad(ddp.module.q)
        out_q.sum().backward()
        return between, (grad(ddp.module.p), grad(ddp.module.q))

    assert run(rank) == [((1.0, None), (1.5, 1.5)), ((2.0, None), (1.5, 1.5))]


def test_ignored_outputs():
    def rank(r):
        ddp = DDP(Scale())
        for _ in range(4):
            ddp(b(r))
        for _ in range(4):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank) == 1.5


def test_inner_module_is_local_unless_an_ignored_forward_armed_the_reducer():
    def rank(r, armed):
        ddp = DDP(Scale())
        if armed:
            ddp(a(r))
        ddp.module(b(r)).sum().backward()
        return grad(ddp.module.p)

    with pytest.warns(UserWarning, match=LOCAL):
        assert run(rank, 2, False) == [10.0, 20.0]
    assert run(rank, 2, True) == [15.0, 15.0]


def test_autograd_grad_is_local_and_harmless():
    def rank(r):
        ddp = DDP(Scale())
        (local,) = torch.autograd.grad(ddp(a(r)).sum(), [ddp.module.p])
        ddp(a(r)).sum().backward()
        return local.item(), grad(ddp.module.p)

    with pytest.warns(UserWarning, match=r"autograd.grad returned this rank's own gradient of p:"):
        assert run(rank) == [(1.0, 1.5), (2.0, 1.5)]


@views
def test_user_hooks_see_the_local_gradient(view):
    def rank(r):
        model = Scale()
        seen = []
        model.p.register_hook(lambda g: seen.append(g.item()))
        ddp = DDP(model, gradient_as_bucket_view=view)
        ddp(a(r)).sum().backward()
        return seen, grad(model.p)

    assert run(rank) == [([1.0], 1.5), ([2.0], 1.5)]


def test_shared_parameter_counts_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Scale()
            self.second = nn.Module()
            self.second.p = self.first.p

        def forward(self, x):
            return self.first.p * x + self.second.p * x

    def rank(r):
        ddp = DDP(Tied())
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return len(ddp.reducer.parameters), grad(ddp.module.first.p)

    assert same_on_all(rank) == (1, 3.0)


def test_no_grad_forward_leaves_no_gradient_and_no_debt():
    def rank(r):
        ddp = DDP(Scale())
        with torch.no_grad():
            out = ddp(a(r))
        before = out.requires_grad, grad(ddp.module.p)
        ddp(a(r)).sum().backward()
        return before, grad(ddp.module.p)

    assert same_on_all(rank) == ((False, None), 1.5)


def test_outputs_in_containers_and_without_gradient():
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.tensor([1.0]))

        def forward(self, x):
            y = self.p * x
            return {
                "list": [y, (y * 2,)],
                "detached": y.detach(),
                "fresh": torch.ones(1),
                "text": "kept",
            }

    def rank(r):
        ddp = DDP(Nested())
        for _ in range(2):
            ddp.zero_grad()
            out = ddp(a(r))
            (out["list"][0] + out["list"][1][0]).sum().backward()
        plain = (
            out["detached"].grad_fn,
            out["fresh"].grad_fn,
            out["fresh"].requires_grad,
            out["text"],
        )
        return grad(ddp.module.p), plain

    assert same_on_all(rank) == (4.5, (None, None, False, "kept"))


def test_checkpointed_part_runs_its_backward_inside_the_outer_one():
    from minitorch.utils.checkpoint import checkpoint

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Scale(2.0)
            self.outer = Scale(3.0)

        def forward(self, x):
            return self.outer(checkpoint(self.inner, x, use_reentrant=True))

    def rank(r):
        ddp = DDP(Checkpointed(), bucket_cap_mb=0)
        for _ in range(3):
            ddp.zero_grad()
            ddp(a(r).requires_grad_()).sum().backward()
        return grad(ddp.module.inner.p), grad(ddp.module.outer.p)

    assert same_on_all(rank) == (4.5, 3.0)
