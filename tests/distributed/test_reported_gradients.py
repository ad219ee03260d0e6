"""What users of DDP reported about gradients, each as the smallest program that shows it.

The threads are named as project and number (p: pytorch/pytorch). Where PyTorch is silent, the
error or warning is ours; docs/differences.md says why. The table of all threads is in README.md.
"""

from __future__ import annotations

import warnings

import pytest
from distributed.ddp_cases import DDP, Branches, Scale, TwoOutputs, a, b, grad, run, same_on_all
from distributed.suite_cases import UNFINISHED, mean_rank, views, worlds

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn


def sgd(model, lr=1.0):
    return torch.optim.SGD(model.parameters(), lr=lr)


def warnings_of(rank, world):
    """Run with all warnings recorded; return the ranks' results and the texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = run(rank, world)
    return results, [str(each.message) for each in caught]


@worlds
def test_p22049_p57473_a_branch_skips_a_layer(world):
    """The error names the layer's parameters, and the flag that helps."""

    def rank(r):
        ddp = DDP(Branches())
        ddp(a(r), use_q=False).sum().backward()
        with pytest.raises(RuntimeError, match=UNFINISHED) as caught:
            ddp(a(r), use_q=False)
        text = str(caught.value)
        assert text.endswith("q")
        assert "find_unused_parameters=True" in text

        helped = DDP(Branches(), find_unused_parameters=True)
        for _ in range(2):
            helped.zero_grad()
            helped(a(r), use_q=False).sum().backward()
        return grad(helped.module.p)

    assert same_on_all(rank, world) == mean_rank(world)


@worlds
def test_p22436_an_extra_output_is_not_in_the_loss(world):
    def rank(r):
        ddp = DDP(TwoOutputs(), find_unused_parameters=True)
        for _ in range(3):
            ddp.zero_grad()
            first, _ = ddp(a(r))
            first.sum().backward()
        return grad(ddp.module.p), grad(ddp.module.q)

    with pytest.warns(UserWarning, match="find_unused_parameters=True was specified"):
        assert same_on_all(rank, world) == (mean_rank(world), None)


@worlds
def test_p112152_gradients_differ_across_ranks_after_one_step(world):
    """An unused layer and a single step: PyTorch ends without a word. Here the step raises."""

    def rank(r):
        ddp = DDP(Branches())
        optimizer = sgd(ddp)
        ddp(a(r), use_q=False).sum().backward()
        assert grad(ddp.module.p) == r + 1  # not averaged: what the thread saw
        with pytest.raises(RuntimeError, match=f"{UNFINISHED}.*q"):
            optimizer.step()
        return ddp.module.p.item()

    assert same_on_all(rank, world) == 1.0


@worlds
def test_accelerate_1726_no_sync_around_backward_only(world):
    """What counts is where forward runs."""

    def rank(r):
        gradients = []
        for forward_inside, backward_inside in [(True, True), (True, False), (False, True)]:
            ddp = DDP(Scale())
            if forward_inside:
                with ddp.no_sync():
                    out = ddp(a(r)).sum()
                    if backward_inside:
                        out.backward()
                if not backward_inside:
                    out.backward()
            else:
                out = ddp(a(r)).sum()
                with ddp.no_sync():
                    out.backward()
            gradients.append(grad(ddp.module.p))
        return gradients

    assert run(rank, world) == [[r + 1, r + 1, mean_rank(world)] for r in range(world)]


@worlds
@views
def test_p53443_flush_without_another_input(world, view):
    """An epoch ends inside no_sync: sync() averages what is there."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), gradient_as_bucket_view=view)
        optimizer = sgd(ddp)
        with ddp.no_sync():
            for _ in range(3):
                ddp(a(r), use_q=r == 0).sum().backward()
        ddp.sync()
        averaged = grad(ddp.module.p), grad(ddp.module.q), grad(ddp.module.z)
        ddp.sync()  # once more: the same on all ranks already
        assert averaged == (grad(ddp.module.p), grad(ddp.module.q), grad(ddp.module.z))
        optimizer.step()
        ddp.check_consistency()
        return averaged

    p, q, z = same_on_all(rank, world)
    assert p == pytest.approx(3 * mean_rank(world))
    assert q == pytest.approx(3 / world)
    assert z is None


@worlds
def test_p47260_p80832_later_backwards_are_not_synchronized(world):
    """Two forwards, two backwards: as in PyTorch the second stays local, but it is said."""

    def rank(r):
        ddp = DDP(Scale())
        first, second = ddp(a(r)).sum(), ddp(b(r)).sum()
        first.backward()
        after_first = grad(ddp.module.p)
        second.backward()
        return after_first, grad(ddp.module.p)

    results, texts = warnings_of(rank, world)
    mean = mean_rank(world)
    assert results == [(mean, pytest.approx(mean + 10 * (r + 1))) for r in range(world)]
    assert len(texts) == world
    for text in texts:
        assert "the gradient of p arrived in a backward that DistributedDataParallel" in text
        assert "do one backward per forward" in text


@worlds
def test_p47562_autograd_grad_bypasses_the_reduction(world):
    def rank(r):
        ddp = DDP(Scale())
        for _ in range(2):
            (local,) = torch.autograd.grad(ddp(a(r)).sum(), [ddp.module.p])
        ddp(a(r)).sum().backward()
        return local.item(), grad(ddp.module.p)

    results, texts = warnings_of(rank, world)
    assert results == [(r + 1, mean_rank(world)) for r in range(world)]
    assert len(texts) == world  # once per wrapper
    assert all("autograd.grad returned this rank's own gradient of p" in text for text in texts)


@worlds
def test_minimind_853_forward_of_the_inner_module(world):
    """Training through .module: a warning, and a detector of the divergence."""

    def rank(r):
        ddp = DDP(nn.Sequential(Scale(), Scale()))
        ddp.check_consistency()
        optimizer = sgd(ddp, lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            ddp.module(a(r)).sum().backward()
            optimizer.step()
        with pytest.raises(RuntimeError, match=r"0\.p is not the same on all ranks") as caught:
            ddp.check_consistency()
        return str(caught.value)

    results, texts = warnings_of(rank, world)
    assert len(set(results)) == 1
    assert "values, rank 0 against rank 1" in results[0]
    assert len(texts) == world
    assert all("Call the wrapper, ddp(x) and not ddp.module(x)" in text for text in texts)


@worlds
def test_transformers_416_lightning_20340_frozen_after_wrapping(world):
    def rank(r):
        ddp = DDP(Branches())
        ddp.module.q.requires_grad_(False)
        ddp(a(r)).sum().backward()
        with pytest.raises(RuntimeError, match=f"{UNFINISHED}.*q"):
            sgd(ddp).step()

        module = ddp.module
        del ddp
        ddp = DDP(module)  # what the warning says to do
        ddp.zero_grad()
        ddp(a(r)).sum().backward()
        return grad(module.p), grad(module.q)

    results, texts = warnings_of(rank, world)
    assert results == [(mean_rank(world), None)] * world
    assert len(texts) == world
    assert all("wrap the module again after freezing" in text for text in texts)


@worlds
def test_lightning_20340_unfrozen_after_wrapping(world):
    """The gradient of what was unfrozen stays local, silently in PyTorch; here it is said."""

    def rank(r):
        module = Branches()
        module.q.requires_grad_(False)
        ddp = DDP(module)
        module.q.requires_grad_(True)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(module.p), grad(module.q)

    results, texts = warnings_of(rank, world)
    assert results == [(mean_rank(world), r + 1) for r in range(world)]
    assert len(texts) == world
    assert all(text.startswith("q did not require grad when") for text in texts)


@worlds
def test_p37359_sum_loss_and_unequal_batches_are_not_the_mean(world):
    """An average over ranks: a sum is W times too small; 3 and 5 rows do not weigh 3 and 5."""
    x = torch.arange(1.0, 4.0 * world + 1).reshape(-1, 1)

    def local(reduction, share, weight=1.0):
        model = nn.Linear(1, 1, bias=False)
        (getattr(model(x[share]), reduction)() * weight).backward()
        return model.weight.grad.item()

    def rank(r, reduction, bounds, weighted=False):
        ddp = DDP(nn.Linear(1, 1, bias=False))
        mine = x[bounds[r] : bounds[r + 1]]
        loss = getattr(ddp(mine), reduction)()
        if weighted:
            rows = torch.tensor([float(len(mine))])
            dist.all_reduce(rows)
            loss = loss * (len(mine) * world / rows.item())
        loss.backward()
        return ddp.module.weight.grad.item()

    everything = slice(None)
    even = [4 * r for r in range(world + 1)]
    uneven = [0, 3, *even[2:]]  # 3 rows, 5 rows, then 4 each
    assert same_on_all(rank, world, "mean", even) == pytest.approx(local("mean", everything))
    assert same_on_all(rank, world, "sum", even) == pytest.approx(local("sum", everything) / world)
    wrong = same_on_all(rank, world, "mean", uneven)
    by_hand = sum(local("mean", slice(uneven[r], uneven[r + 1])) for r in range(world)) / world
    assert wrong == pytest.approx(by_hand)
    assert wrong != pytest.approx(local("mean", everything))
    # The remedy: weight each rank's mean by its share of the rows.
    right = same_on_all(rank, world, "mean", uneven, True)
    assert right == pytest.approx(local("mean", everything))


@worlds
@views
def test_p104336_parameter_storage_is_replaced(world, view):
    """``.cpu()`` and back, or ``.data = ...``, in mid-training: the ranks stay together."""

    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        optimizer = sgd(ddp, lr=0.1)
        for step in range(4):
            if step == 2:
                ddp.cpu()
                ddp.module.p.data = ddp.module.p.data.clone()
            optimizer.zero_grad()
            ddp(a(r)).sum().backward()
            optimizer.step()
        ddp.check_consistency()
        return ddp.module.p.item()

    assert same_on_all(rank, world) == pytest.approx(1 - 0.4 * mean_rank(world))
