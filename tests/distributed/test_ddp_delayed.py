"""delay_all_reduce_named_params: parameters that are reduced together, apart from the buckets."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, a, b, grad, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn


class Chain(nn.Module):
    """Gradients arrive in the order late, middle, early; all of them are x."""

    def __init__(self, value=1.0, dtype=torch.float32):
        super().__init__()
        for name in ("early", "middle", "late"):
            setattr(self, name, nn.Parameter(torch.tensor([value], dtype=dtype)))

    def forward(self, x):
        for p in (self.early, self.middle, self.late):
            x = x + (p - 1).sin()  # recorded one after the other, newest first in backward
        return x


def wrap(module, *names, hooked="early", **options):
    named = [(n, p) for n, p in module.named_parameters() if n in names]
    return DDP(
        module,
        delay_all_reduce_named_params=named,
        param_to_hook_all_reduce=getattr(module, hooked),
        **options,
    )


def scaled(r):
    """Makes the gradient of every parameter r + 1."""
    return float(r + 1)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("names", [("late",), ("middle", "late"), ("early", "late")])
def test_gradients_are_averages_all_the_same(world, names):
    def rank(r):
        ddp = wrap(Chain(), *names)
        seen = []
        for _ in range(3):
            ddp.zero_grad()
            (ddp(a(r)) * scaled(r)).sum().backward()
            seen.append([grad(p) for p in ddp.parameters()])
        managed = [n for n in ("early", "middle", "late") if n not in names]
        assert ddp.reducer.names == managed
        return seen

    assert same_on_all(rank, world) == [[(world + 1) / 2] * 3] * 3


def test_starts_with_rank_0s_values():
    def rank(r):
        ddp = wrap(Chain(float(r)), "late")
        return [p.item() for p in ddp.parameters()]

    assert same_on_all(rank) == [0.0] * 3


def test_one_all_reduce_for_all_of_them_and_it_starts_in_backward():
    def rank(r):
        ddp = wrap(Chain(), "middle", "late")
        (ddp(a(r)) * scaled(r)).sum().backward()
        dist.reset_meter()
        ddp.zero_grad()
        (ddp(a(r)) * scaled(r)).sum().backward()
        return dist.meter()["all_reduce"]["calls"]

    assert same_on_all(rank) == 2  # the one bucket, and the delayed ones


def test_no_sync_accumulates_and_sync_flushes():
    def rank(r):
        ddp = wrap(Chain(), "middle", "late")
        with ddp.no_sync():
            (ddp(b(r)) * 10 * scaled(r)).sum().backward()
        inside = [grad(p) for p in ddp.parameters()]
        (ddp(a(r)) * scaled(r)).sum().backward()
        after = [grad(p) for p in ddp.parameters()]
        ddp.zero_grad()
        with ddp.no_sync():
            (ddp(b(r)) * 10 * scaled(r)).sum().backward()
        ddp.sync()
        return inside, after, [grad(p) for p in ddp.parameters()]

    for r, (inside, after, flushed) in enumerate(run(rank)):
        assert inside == [10.0 * (r + 1)] * 3
        assert after == [16.5] * 3
        assert flushed == [15.0] * 3


def test_a_gradient_that_comes_too_late_is_an_error():
    def rank(r):
        ddp = wrap(Chain(), "early", hooked="late")
        with pytest.raises(RuntimeError, match="the gradient of early arrived after that of late"):
            (ddp(a(r)) * scaled(r)).sum().backward()

    run(rank)


def test_a_backward_without_the_chosen_parameter_is_an_error():
    class Skipping(Chain):
        def forward(self, x):
            return x + (self.late - 1).sin()

    def rank(r):
        ddp = wrap(Skipping(), "late", find_unused_parameters=True)
        with pytest.raises(RuntimeError, match="ended without a gradient for early"):
            ddp(a(r)).sum().backward()

    run(rank, 1)


def raise_in_backward(ddp, parameter, x):
    """Run a step whose backward ends where it reaches `parameter`."""

    def fail(gradient):
        raise ArithmeticError("not this time")

    handle = parameter.register_hook(fail)
    with pytest.raises(ArithmeticError):
        ddp(x).sum().backward()
    handle.remove()


def test_a_backward_that_raised_after_the_start_is_not_gone_on_from():
    """Its all-reduce is under way, and writes into the gradients of the next step."""

    def rank(r):
        ddp = wrap(Chain(), "late", hooked="middle")
        optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
        raise_in_backward(ddp, ddp.module.early, a(r))
        optimizer.zero_grad()
        for go_on in (optimizer.step, lambda: ddp(a(r)), ddp.sync, ddp._check_reducer_finalized):
            with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
                go_on()
        with pytest.raises(
            RuntimeError, match=r"\(late\) were not averaged: backward raised after"
        ):
            ddp(a(r))

    run(rank)


def test_a_backward_that_raised_before_the_start_is_forgotten():
    def rank(r):
        ddp = wrap(Chain(), "late")
        optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
        raise_in_backward(ddp, ddp.module.middle, a(r))
        with pytest.raises(RuntimeError, match=r"\(late\) were not averaged.* Leave out this step"):
            optimizer.step()
        ddp.zero_grad()
        (ddp(a(r)) * scaled(r)).sum().backward()
        optimizer.step()
        return [grad(p) for p in ddp.parameters()]

    assert same_on_all(rank) == [1.5] * 3


@pytest.mark.parametrize("wrong", [[1], "late", [("late",)]])
def test_pairs_are_needed(wrong):
    module = Chain()
    options = {"delay_all_reduce_named_params": wrong, "param_to_hook_all_reduce": module.early}
    with pytest.raises(TypeError, match=r"must hold pairs \(name, parameter\)"):
        run(lambda r: DDP(module, **options), 1)


def test_copies_have_their_own():
    import copy

    def rank(r):
        twin = copy.deepcopy(wrap(Chain(), "late"))
        (twin(a(r)) * scaled(r)).sum().backward()
        return [grad(p) for p in twin.parameters()]

    assert same_on_all(rank) == [1.5] * 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (lambda m: {"delay_all_reduce_named_params": []}, "need to be set at the same time"),
        (lambda m: {"param_to_hook_all_reduce": m.late}, "need to be set at the same time"),
        (
            lambda m: {
                "delay_all_reduce_named_params": [("late", m.early)],
                "param_to_hook_all_reduce": m.early,
            },
            "'late' with this tensor is not a parameter of the module",
        ),
        (
            lambda m: {
                "delay_all_reduce_named_params": [("late", m.late)],
                "param_to_hook_all_reduce": nn.Parameter(torch.ones(1)),
            },
            "must be a parameter of the module that requires grad",
        ),
        (
            lambda m: {
                "delay_all_reduce_named_params": list(m.named_parameters()),
                "param_to_hook_all_reduce": m.early,
            },
            "nothing is left for the buckets",
        ),
        (
            lambda m: {
                "delay_all_reduce_named_params": [],
                "param_to_hook_all_reduce": m.early,
            },
            "is empty",
        ),
    ],
)
def test_arguments_are_checked(arguments, text):
    module = Chain()
    with pytest.raises(ValueError, match=text):
        run(lambda r: DDP(module, **arguments(module)), 1)


def test_one_dtype_only():
    module = Chain()
    module.late = nn.Parameter(torch.ones(1, dtype=torch.float64))
    with pytest.raises(ValueError, match="same dtype"):
        run(lambda r: wrap(module, "middle", "late"), 1)
