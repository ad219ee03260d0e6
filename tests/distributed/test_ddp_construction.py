"""Construction: every rank raises on any disagreement; refusals by name; copies and pickles."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from distributed.ddp_cases import DDP, F64, Branches, Scale, a, grad, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn


def holder(*parameters, buffers=()):
    """Build a module of named parameters given as (name, tensor[, requires_grad])."""
    module = nn.Module()
    for name, tensor, *requires_grad in parameters:
        setattr(module, name, nn.Parameter(tensor, *requires_grad))
    for name, tensor in buffers:
        module.register_buffer(name, tensor)
    return module


def errors(build, world_size=2):
    """Construct DDP of ``build(rank)`` on every rank; return each rank's error text."""

    def rank(r):
        with pytest.raises(RuntimeError) as caught:
            DDP(build(r))
        return str(caught.value)

    return run(rank, world_size)


def strided(*shape):
    return torch.from_numpy(np.asfortranarray(np.ones(shape, dtype=np.float32)))


@pytest.mark.parametrize(
    ("reference", "odd", "stem"),
    [
        (
            lambda: holder(("w", torch.ones(2, 3))),
            lambda: holder(("w", torch.ones(3, 2))),
            r"params\[0\] in .* with sizes \[3, 2\] appears not to match sizes",
        ),
        (
            lambda: holder(("w", torch.ones(2, 3))),
            lambda: holder(("w", strided(2, 3))),
            r"params\[0\] in .* with strides \[1, 2\] appears not to match strides",
        ),
        (
            lambda: holder(("w", torch.ones(2))),
            lambda: holder(("w", torch.ones(2, dtype=F64))),
            r"params\[0\] in .* with dtype .*float64 appears not to match dtype",
        ),
        (
            lambda: holder(("a", torch.ones(2)), ("b", torch.ones(2))),
            lambda: holder(("a", torch.ones(2)), ("b", torch.ones(2), False)),
            r"params\[1\] in .* with requires_grad False appears not to match requires_grad",
        ),
        (
            lambda: holder(("a", torch.ones(2)), ("b", torch.ones(2))),
            lambda: holder(("b", torch.ones(2)), ("a", torch.ones(2))),
            r"same model across all ranks, but params\[0\] is 'b' on rank \d and 'a' on rank 0",
        ),
        (
            lambda: holder(("w", torch.ones(2))),
            lambda: holder(("w", torch.ones(2)), buffers=[("seen", torch.ones(1))]),
            r"same model across all ranks, but the buffers of rank 0 and rank \d differ",
        ),
        (
            lambda: holder(("w", torch.ones(2))),
            lambda: holder(("w", torch.ones(2)), ("extra", torch.ones(2))),
            r"Rank 0 has 1 params, while rank \d has inconsistent 2 params.*Only on rank \d: extra",
        ),
        (
            lambda: holder(("w", torch.ones(2))),
            lambda: nn.Module(),
            r"Rank 0 has 1 params, while rank \d has inconsistent 0 params",
        ),
    ],
    ids=["sizes", "strides", "dtype", "requires_grad", "order", "buffers", "count", "none"],
)
@pytest.mark.parametrize("odd_rank", [1, 2])
def test_all_ranks_raise_on_a_difference(reference, odd, stem, odd_rank):
    texts = errors(lambda r: odd() if r == odd_rank else reference(), 3)
    for r, text in enumerate(texts):
        assert re.search(stem, text), text
        if "params[" in text and "in this process" in text:
            assert r == odd_rank
    assert len(texts) == 3


def test_a_difference_leaves_the_parameters_untouched():
    def rank(r):
        module = holder(("a", torch.full((1,), float(r))), ("b", torch.ones(2 + r)))
        with pytest.raises(RuntimeError, match="appears not to match"):
            DDP(module)
        return module.a.item()

    assert run(rank) == [0.0, 1.0]


def test_the_group_can_be_used_after_a_difference():
    def rank(r):
        with pytest.raises(RuntimeError, match="appears not to match"):
            DDP(holder(("b", torch.ones(2 + r))))
        ddp = DDP(Scale())
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank) == 1.5


def test_options_that_decide_on_collectives_must_agree():
    def rank(r):
        with pytest.raises(
            RuntimeError, match=r"find_unused_parameters=False on rank 0 and .*=True on rank 1"
        ):
            DDP(Scale(), find_unused_parameters=r == 1)

    run(rank)


@pytest.mark.parametrize(
    "module",
    [lambda: nn.ReLU(), lambda: holder(("w", torch.ones(1), False))],
    ids=["no parameter", "all frozen"],
)
def test_a_module_that_needs_no_gradient_is_refused(module):
    for text in errors(lambda r: module()):
        assert text.startswith(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that "
            "requires a gradient."
        )


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_layer_without_outputs():
    assert run(lambda r: len(DDP(nn.Linear(10, 0)).reducer.parameters)) == [2, 2]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("device_mesh", object()),
        ("batched_grad_copy", True),
    ],
)
def test_unsupported_arguments_are_refused_by_name(argument, value):
    with pytest.raises(NotImplementedError, match=argument):
        DDP(Scale(), **{argument: value})


@pytest.mark.parametrize("arguments", [{"device_ids": [0]}, {"output_device": 0}])
def test_devices_are_refused_in_pytorchs_words(arguments):
    with pytest.raises(
        ValueError, match="only work with single-device/multiple-device GPU modules or CPU modules"
    ):
        DDP(Scale(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "stem"),
    [
        ({"bucket_cap_mb": "25"}, TypeError, "bucket_cap_mb: a cap must be a number .* got '25'"),
        ({"bucket_cap_mb": float("nan")}, ValueError, "bucket_cap_mb: a cap must not be"),
        ({"bucket_cap_mb_list": 3}, TypeError, "bucket_cap_mb_list must be a list"),
        ({"bucket_cap_mb_list": iter([3])}, TypeError, "bucket_cap_mb_list must be a list"),
        ({"bucket_cap_mb_list": np.array([1, -1])}, ValueError, "a cap must not be negative"),
        ({"bucket_cap_mb_list": [1, -1]}, ValueError, "bucket_cap_mb_list: a cap must not be"),
        ({"process_group": "WORLD"}, TypeError, "process_group must be what new_group returns"),
        ({"module": Scale}, TypeError, "module must be an nn.Module, got <class"),
        ({"module": None}, TypeError, "module must be an nn.Module, got NoneType"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(arguments, error, stem):
    def rank(r):
        with pytest.raises(error, match=stem):
            DDP(**{"module": Scale(), **arguments})

    run(rank, 1)


@pytest.mark.parametrize("cap", [0, 1e30, float("inf")])
def test_any_cap_that_is_not_negative_is_fine(cap):
    def rank(r):
        ddp = DDP(Branches(), bucket_cap_mb=cap)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(ddp.module.p), len(
            ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"].split(",")
        )

    assert run(rank) == [(1.5, 1 if cap else 2)] * 2


def test_after_destroying_its_group_a_wrapper_says_to_wrap_again():
    def rank(r):
        ddp = DDP(Scale())
        loss = ddp(a(r)).sum()
        dist.destroy_process_group()
        with pytest.raises(RuntimeError, match=r"shut down.*again after init_process_group"):
            loss.backward()
        dist.init_process_group()
        ddp._remove_autograd_hooks()
        module = ddp.module
        module.zero_grad()
        again = DDP(module)
        again(a(r)).sum().backward()
        return grad(module.p)

    assert run(rank) == [1.5] * 2


def test_negative_cap_and_deprecated_flag():
    def rank(r):
        with pytest.raises(ValueError, match="must not be negative"):
            DDP(Scale(), bucket_cap_mb=-1)
        DDP(Scale(), check_reduction=True)

    with pytest.warns(FutureWarning, match="check_reduction"):
        run(rank)


def test_frozen_parameters_are_broadcast_but_not_reduced():
    def rank(r):
        module = holder(("a", torch.full((1,), float(r))), ("b", torch.full((1,), float(r)), False))
        module.forward = lambda x: module.a * x + module.b
        ddp = DDP(module)
        ddp(a(r)).sum().backward()
        return ddp.reducer.names, module.b.item(), grad(module.a), grad(module.b)

    assert same_on_all(rank) == (["a"], 0.0, 1.5, None)


def test_ignored_parameters_stay_local():
    def rank(r):
        module = holder(("a", torch.full((1,), float(r))), ("b", torch.full((1,), float(r))))
        module.forward = lambda x: module.a * x + module.b * x
        module._ddp_params_and_buffers_to_ignore = ["b"]
        ddp = DDP(module)
        ddp(a(r)).sum().backward()
        return module.a.item(), module.b.item(), grad(module.a), grad(module.b)

    assert run(rank) == [(0.0, 0.0, 1.5, 1.0), (0.0, 1.0, 1.5, 2.0)]


def test_state_dict_has_the_prefix_and_loads():
    def rank(r):
        ddp = DDP(nn.BatchNorm1d(2))
        state = ddp.state_dict()
        ddp.load_state_dict(state)
        return list(state)

    assert same_on_all(rank) == [
        "module.weight",
        "module.bias",
        "module.running_mean",
        "module.running_var",
        "module.num_batches_tracked",
    ]


def test_attributes_of_the_module_can_be_read():
    def rank(r):
        module = nn.Sequential(nn.Linear(2, 3))
        module.num_classes = 3
        ddp = DDP(module)
        assert not hasattr(ddp, "missing")
        with pytest.raises(
            AttributeError, match="neither 'DistributedDataParallel' nor the 'Sequential'"
        ):
            _ = ddp.missing
        return ddp.num_classes, ddp.module is module, [n for n, _ in ddp.named_parameters()]

    assert same_on_all(rank) == (3, True, ["module.0.weight", "module.0.bias"])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda ddp: pickle.loads(pickle.dumps(ddp))])
def test_a_copy_has_its_own_reducer(copier):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=True)
        for _ in range(2):
            ddp(a(r)).sum().backward()
        twin = copier(ddp)
        twin.zero_grad()
        before = grad(ddp.module.p)
        twin(a(r)).sum().backward()
        return twin.reducer is not ddp.reducer, grad(twin.module.p), grad(ddp.module.p) == before

    assert same_on_all(rank) == (True, 1.5, True)


def test_a_copy_needs_the_default_group():
    def rank(r):
        ddp = DDP(Scale(), process_group=dist.new_group([0, 1]))
        with pytest.raises(
            RuntimeError, match="only supported when using DDP with the default process group"
        ):
            copy.deepcopy(ddp)

    run(rank)


def test_subgroup():
    def rank(r):
        group = dist.new_group([1, 3])
        if r not in (1, 3):
            return None
        ddp = DDP(Scale(), process_group=group)
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert run(rank, 4) == [None, 3.0, None, 3.0]


def test_two_wrappers_of_one_module():
    def rank(r):
        module = Scale()
        first, second = DDP(module), DDP(module)
        second(a(r)).sum().backward()
        after_second = grad(module.p)
        module.zero_grad()
        del second
        first(a(r)).sum().backward()
        return after_second, grad(module.p)

    assert same_on_all(rank) == (1.5, 1.5)


def test_removed_hooks_reduce_no_more_and_the_module_can_be_wrapped_again():
    def rank(r):
        module = Scale()
        first = DDP(module)
        first._remove_autograd_hooks()
        first(a(r)).sum().backward()
        local = grad(module.p)
        module.zero_grad()
        second = DDP(module)
        second(a(r)).sum().backward()
        return local, grad(module.p)

    assert run(rank) == [(1.0, 1.5), (2.0, 1.5)]


def test_a_dropped_wrapper_is_collected_and_lets_go():
    def rank(r):
        import gc
        import weakref

        module = Scale()
        ddp = DDP(module)
        ddp(a(r)).sum().backward()
        gone = weakref.ref(ddp.reducer)
        del ddp
        gc.collect()
        module.zero_grad()
        module(a(r)).sum().backward()
        return gone() is None, grad(module.p)

    assert run(rank) == [(True, 1.0), (True, 2.0)]


def test_a_rank_outside_of_the_group_is_refused():
    def rank(r):
        group = dist.new_group([0])
        if r == 0:
            return DDP(Scale(), process_group=group).process_group is group
        with pytest.raises(ValueError, match="not a member of process_group"):
            DDP(Scale(), process_group=group)
        return None

    assert run(rank) == [True, None]
