"""``_update_process_group``: the same wrapper over another group."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, Branches, Scale, a, grad, run
from distributed.suite_cases import nothing_unused

import minitorch as torch
import minitorch.distributed as dist
from minitorch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

OPTIONS = [
    {},
    {"static_graph": True},
    {"find_unused_parameters": True},
    {"gradient_as_bucket_view": True},
]


def average(ddp, r):
    ddp.zero_grad()
    ddp(a(r)).sum().backward()
    return grad(ddp.module.p)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "".join(options) or "plain")
@nothing_unused
def test_goes_on_over_the_ranks_that_are_left(options):
    """Of ranks 0, 1, 2 the middle one leaves; the averages of r + 1 are 2 and 2."""

    def rank(r):
        ddp = DDP(Branches(), bucket_cap_mb=0, **options)
        before = [average(ddp, r) for _ in range(3)]
        rest = dist.new_group([0, 2])
        ddp._update_process_group(rest)
        if r == 1:  # no member: keeps the old group
            return before, ddp.process_group.size()
        after = [average(ddp, 10 * r) for _ in range(3)]
        ddp.check_consistency()
        return before, after, ddp.process_group.size()

    stays = ([2.0] * 3, [11.0] * 3, 2)
    assert run(rank, 3) == [stays, ([2.0] * 3, 3), stays]


@pytest.mark.parametrize("builtin", [False, True])
def test_a_hook_stays_and_gets_the_new_group(builtin):
    def rank(r):
        ddp = DDP(Scale())
        if builtin:
            ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
        else:
            ddp.register_comm_hook(ddp.process_group, allreduce_hook)
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        ddp._update_process_group(pairs[r // 2])
        with pytest.raises(RuntimeError, match="can only be called once"):
            ddp.register_comm_hook(None, allreduce_hook)
        return average(ddp, r), ddp._get_ddp_logging_data()["comm_hook"]

    name = "builtin_hook: FP16_COMPRESS" if builtin else "allreduce_hook"
    assert run(rank, 4) == [(1.5, name), (1.5, name), (3.5, name), (3.5, name)]


def test_a_broken_backward_is_forgotten():
    """All ranks raise in the middle of their communication, and go on."""

    def rank(r):
        ddp = DDP(Branches(), bucket_cap_mb=0)
        for _ in range(2):
            average(ddp, r)

        def fail(gradient):
            raise ArithmeticError("not this time")

        handle = ddp.module.p.register_hook(fail)
        with pytest.raises(ArithmeticError):
            average(ddp, r)
        handle.remove()
        with pytest.raises(RuntimeError, match="in the middle of its communication"):
            ddp(a(r))
        ddp._update_process_group(ddp.process_group)
        return average(ddp, r)

    assert run(rank) == [1.5, 1.5]


def test_delayed_parameters_move_too():
    def rank(r):
        module = Branches()
        ddp = DDP(
            module,
            delay_all_reduce_named_params=[("q", module.q)],
            param_to_hook_all_reduce=module.p,
        )
        average(ddp, r)
        alone = [dist.new_group([0]), dist.new_group([1])]
        ddp._update_process_group(alone[r])
        average(ddp, r)
        return grad(module.p), grad(module.q)

    assert run(rank) == [(1.0, 1.0), (2.0, 2.0)]


def test_what_is_no_group_is_refused():
    def rank(r):
        ddp = DDP(Scale())
        with pytest.raises(TypeError, match="must be what new_group returns"):
            ddp._update_process_group("gloo")
        return average(ddp, r)

    assert run(rank) == [1.5, 1.5]


def test_pytorchs_long_paths_are_there_at_once():
    assert torch.nn.parallel.distributed.DistributedDataParallel is DDP
    assert callable(torch.nn.modules.utils.consume_prefix_in_state_dict_if_present)
