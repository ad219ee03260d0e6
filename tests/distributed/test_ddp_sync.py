"""``sync()``: accumulated gradients averaged without another forward. ``check_consistency()``: are
the replicas still the same?
"""

from __future__ import annotations

import copy

import pytest
from distributed.ddp_cases import DDP, Branches, Scale, a, b, grad, mlp, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook

views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
options = pytest.mark.parametrize(
    "option",
    [{}, {"find_unused_parameters": True}, {"static_graph": True}],
    ids=["plain", "find_unused", "static"],
)
UNFINISHED = "Expected to have finished reduction in the prior iteration before starting a new one."


class TestSync:
    @views
    @options
    @pytest.mark.parametrize("world", [1, 2, 3])
    def test_averages_what_no_sync_has_accumulated(self, view, option, world):
        def rank(r):
            ddp = DDP(Branches(with_z=True), gradient_as_bucket_view=view, **option)
            with ddp.no_sync():
                ddp(a(r), use_q=r == 0).sum().backward()
                ddp(b(r), use_q=False).sum().backward()
            ddp.sync()
            return [grad(p) for p in ddp.parameters()]

        expected = [11 * (world + 1) / 2, pytest.approx(1 / world), None]
        assert same_on_all(rank, world) == expected

    @views
    def test_twice_changes_nothing(self, view):
        def rank(r):
            ddp = DDP(Scale(), gradient_as_bucket_view=view)
            with ddp.no_sync():
                ddp(a(r)).sum().backward()
            seen = []
            for _ in range(2):
                ddp.sync()
                seen.append(grad(ddp.module.p))
            return seen

        assert same_on_all(rank) == [1.5, 1.5]

    @views
    @options
    @pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
    def test_between_steps_training_goes_on(self, view, option):
        """An epoch of 5 micro-batches, synchronized every 2: the last one is flushed."""

        def rank(r, flush):
            ddp = DDP(
                mlp(torch.float64), gradient_as_bucket_view=view, bucket_cap_mb=0.0002, **option
            )
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
            for epoch in range(3):
                for i in range(5):
                    torch.manual_seed(100 * epoch + 10 * i + r)
                    x = torch.randn(2, 5, dtype=torch.float64)
                    if i % 2 == 1 or (i == 4 and not flush):
                        ddp(x).sum().backward()
                    else:
                        with ddp.no_sync():
                            ddp(x).sum().backward()
                        if i == 4:
                            ddp.sync()
                    if i % 2 == 1 or i == 4:
                        optimizer.step()
                        optimizer.zero_grad()
            ddp.check_consistency()
            return [p.detach().numpy().tobytes() for p in ddp.parameters()]

        assert same_on_all(rank, 2, True) == same_on_all(rank, 2, False)

    def test_a_forward_before_it_stays_armed(self):
        def rank(r):
            ddp = DDP(Scale())
            with ddp.no_sync():
                ddp(b(r)).sum().backward()
            out = ddp(a(r))
            ddp.sync()
            before = grad(ddp.module.p)
            out.sum().backward()
            return before, grad(ddp.module.p)

        assert same_on_all(rank) == (15.0, 16.5)

    def test_flushed_uses_do_not_count_again(self):
        """q was used under no_sync only, and that was flushed: afterwards it is unused."""

        def rank(r):
            ddp = DDP(Branches(), find_unused_parameters=True)
            with ddp.no_sync():
                ddp(a(r), use_q=True).sum().backward()
            ddp.sync()
            ddp(a(r), use_q=False).sum().backward()
            return grad(ddp.module.q), ddp.reducer._core.used_map()

        assert same_on_all(rank) == (1.5, [2, 0])

    def test_goes_through_the_communication_hook(self):
        def rank(r):
            ddp = DDP(Scale())
            ddp.register_comm_hook(None, noop_hook)
            with ddp.no_sync():
                ddp(a(r)).sum().backward()
            ddp.sync()
            return grad(ddp.module.p)

        assert run(rank) == [1.0, 2.0]

    def test_does_not_disturb_the_rebuild(self):
        def rank(r, flush):
            ddp = DDP(mlp(), bucket_cap_mb=0.0001)
            x = torch.ones(2, 5)
            if flush:
                with ddp.no_sync():
                    ddp(x).sum().backward()
                ddp.sync()
                assert ddp._get_ddp_logging_data()["iteration"] == 0
            for _ in range(2):
                ddp(x).sum().backward()
            return ddp._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"]

        assert same_on_all(rank, 2, True) == same_on_all(rank, 2, False)

    def test_costs_one_all_reduce_of_the_gradients_and_one_of_the_map(self):
        def rank(r):
            ddp = DDP(nn.Linear(50000, 1, bias=False))
            with ddp.no_sync():
                ddp(torch.ones(1, 50000)).sum().backward()
            dist.reset_meter()
            ddp.sync()
            dist.barrier()
            return dist.meter()["all_reduce"]

        for row in run(rank):
            assert row["calls"] == 2
            assert row["bytes_sent"] == 4 * 50000 + 4  # a ring of two sends what it has once

    def test_is_refused_inside_backward_and_after_an_unfinished_one(self):
        def rank(r):
            ddp = DDP(Branches())
            handle = ddp.module.p.register_post_accumulate_grad_hook(lambda _: ddp.sync())
            with pytest.raises(RuntimeError, match=r"sync\(\) was called inside backward"):
                ddp(a(r)).sum().backward()
            handle.remove()
            ddp(a(r), use_q=False).sum().backward()
            with pytest.raises(RuntimeError, match=UNFINISHED):
                ddp.sync()

        run(rank)


class TestCheckConsistency:
    @pytest.mark.parametrize("world", [1, 2, 3, 4])
    def test_equal_replicas(self, world):
        def rank(r):
            ddp = DDP(mlp())
            ddp(torch.ones(2, 5) * r).sum().backward()
            torch.optim.SGD(ddp.parameters(), lr=0.1).step()
            return ddp.check_consistency()

        assert same_on_all(rank, world) is None

    def test_every_rank_names_the_first_difference_and_who_agrees(self):
        def rank(r):
            ddp = DDP(mlp())
            if r == 2:
                with torch.no_grad():
                    ddp.module.second.bias[3] += 1e-7
                    ddp.module.last.weight[0, 0] = -0.0
            with pytest.raises(RuntimeError) as caught:
                ddp.check_consistency()
            return str(caught.value)

        text = same_on_all(rank, 3)
        assert "second.bias is not the same on all ranks: it has 2 values, " in text
        assert "ranks 0, 1 against rank 2." in text
        assert "So are 1 more of 6 tensors." in text

    def test_sees_what_drifts_apart_silently(self):
        """The usual way: training through ``.module``."""

        def rank(r):
            ddp = DDP(Scale())
            ddp.module(a(r)).sum().backward()
            torch.optim.SGD(ddp.parameters(), lr=0.1).step()
            with pytest.raises(RuntimeError, match=r"^check_consistency: p is not the same"):
                ddp.check_consistency()

        with pytest.warns(UserWarning, match="DistributedDataParallel does not average"):
            run(rank)

    def test_buffers_may_be_left_out(self):
        def rank(r):
            ddp = DDP(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))
            ddp(torch.arange(4.0).reshape(4, 1) * (r + 1)).sum().backward()
            ddp.check_consistency(buffers=False)
            with pytest.raises(
                RuntimeError, match=r"1.running_mean is not the same.*buffers=False"
            ):
                ddp.check_consistency()

        run(rank)

    def test_ignored_parameters_do_not_count(self):
        def rank(r):
            module = Branches()
            module._ddp_params_and_buffers_to_ignore = ["q"]
            with torch.no_grad():
                module.q += r
            DDP(module).check_consistency()

        run(rank)

    def test_another_number_of_tensors_and_another_trainability(self):
        def rank(r):
            ddp = DDP(Branches())
            if r:
                ddp.module.extra = nn.Parameter(torch.ones(1))
            with pytest.raises(RuntimeError, match=r"different numbers of tensors, \[2, 3\]"):
                ddp.check_consistency()
            twin = DDP(Scale())
            twin.module.p.requires_grad_(r == 0)
            with pytest.raises(RuntimeError, match="p is not the same"):
                twin.check_consistency()

        run(rank)

    def test_a_copy_is_consistent_too(self):
        def rank(r):
            copy.deepcopy(DDP(Scale())).check_consistency()

        run(rank)
