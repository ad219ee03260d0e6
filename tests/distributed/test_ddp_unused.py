"""Parameters without a gradient: the error that names them, and find_unused_parameters."""

from __future__ import annotations

import warnings

import pytest
from distributed.ddp_cases import DDP, Branches, Scale, TwoOutputs, a, grad, run, same_on_all

import minitorch as torch
from minitorch import nn

nothing_unused = pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
STEM = "Expected to have finished reduction in the prior iteration before starting a new one."


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


class TestUnfinishedReduction:
    def test_names_the_parameters_at_the_optimizer_step(self):
        """PyTorch takes the step on local gradients and raises at the next forward."""

        def rank(r):
            ddp = DDP(Branches())
            optimizer = sgd(ddp)
            ddp(a(r), use_q=False).sum().backward()
            local = grad(ddp.module.p), grad(ddp.module.q)
            with pytest.raises(RuntimeError) as caught:
                optimizer.step()
            return local, str(caught.value), ddp.module.p.item()

        results = run(rank)
        for r, (local, text, value) in enumerate(results):
            assert local == (r + 1.0, None)
            assert value == 1.0  # no step was taken
            assert text.startswith(STEM)
            assert f"Parameter indices which did not receive grad for rank {r}: 1." in text
            assert text.endswith(": q")
            assert "find_unused_parameters=True" in text

    def test_raises_at_the_next_forward_too_but_not_without_grad(self):
        def rank(r):
            ddp = DDP(Branches())
            ddp(a(r), use_q=False).sum().backward()
            with torch.no_grad():
                ddp(a(r))
            with pytest.raises(RuntimeError, match=STEM):
                ddp(a(r))
            with pytest.raises(RuntimeError, match=STEM):
                ddp._check_reducer_finalized()

        run(rank)

    def test_lists_every_unused_parameter_and_no_other(self):
        class Nested(nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.idle = nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1), Scale())
                self.ignored = Scale()
                self._ddp_params_and_buffers_to_ignore = ["ignored.p"]

            def forward(self, x):
                return self.used(x)

        def rank(r):
            ddp = DDP(Nested(), bucket_cap_mb=0)
            ddp(a(r)).sum().backward()
            with pytest.raises(RuntimeError) as caught:
                ddp(a(r))
            return str(caught.value)

        for r, text in enumerate(run(rank)):
            assert f"rank {r}: 2 3 4. " in text
            assert text.endswith(": idle.0.weight, idle.0.bias, idle.1.p")

    def test_no_false_alarm_for_dropped_forwards_and_alternating_models(self):
        def rank(r):
            one, two = DDP(Scale()), DDP(Scale())
            optimizers = sgd(one), sgd(two)
            one(a(r))  # dropped
            optimizers[0].step()
            for _ in range(2):
                two(a(r))
                one(a(r)).sum().backward()
                optimizers[1].step()
                optimizers[0].step()
            return one.module.p.item()

        assert same_on_all(rank) == pytest.approx(1.0 - 0.15 - 0.3)

    def test_an_optimizer_looks_at_its_own_parameters_only(self):
        def rank(r):
            broken, other = DDP(Branches()), nn.Linear(1, 1)
            broken(a(r), use_q=False).sum().backward()
            sgd(other).step()
            with pytest.raises(RuntimeError, match=STEM):
                sgd(broken.module).step()

        run(rank)

    def test_step_inside_backward(self):
        def rank(r):
            ddp = DDP(Branches())
            optimizer = sgd(ddp)
            ddp.module.p.register_post_accumulate_grad_hook(lambda _: optimizer.step())
            ddp.module.q.register_post_accumulate_grad_hook(lambda _: optimizer.step())
            with pytest.raises(RuntimeError, match="An optimizer stepped inside backward"):
                ddp(a(r)).sum().backward()
            return ddp.module.p.item()

        assert same_on_all(rank) == 1.0

    def test_step_between_the_two_backwards_of_one_forward(self):
        def rank(r):
            ddp = DDP(TwoOutputs())
            out_p, _ = ddp(a(r))
            out_p.sum().backward()
            with pytest.raises(RuntimeError, match=STEM):
                sgd(ddp).step()

        run(rank)


class TestBackwardThatRaises:
    def test_before_anything_was_launched_the_next_forward_starts_afresh(self):
        class LateFailure(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Scale(), Scale()
                self.fail = True

            def forward(self, x):
                inner = self.first(x)
                if self.fail:
                    inner.register_hook(_divide_by_zero)  # after second.p, before first.p
                return self.second(inner)

        def rank(r):
            ddp = DDP(LateFailure())
            with pytest.raises(ZeroDivisionError):
                ddp(a(r)).sum().backward()
            ddp.module.fail = False
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
            sgd(ddp).step()
            return grad(ddp.module.first.p), grad(ddp.module.second.p)

        assert same_on_all(rank) == (1.5, 1.5)

    def test_after_a_launch_the_next_forward_raises(self):
        class FailsInThird(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Scale(), Scale()
                self.calls = 0

            def forward(self, x):
                inner = self.first(x)
                self.calls += 1
                if self.calls == 3:
                    inner.register_hook(_divide_by_zero)
                return self.second(inner)

        def rank(r):
            ddp = DDP(FailsInThird(), bucket_cap_mb=0)
            for _ in range(2):
                ddp(a(r)).sum().backward()
            with pytest.raises(ZeroDivisionError):
                ddp(a(r)).sum().backward()
            with pytest.raises(
                RuntimeError, match=f"{STEM} Rank {r}, after 1 of 2 buckets were launched"
            ):
                ddp(a(r))
            with pytest.raises(RuntimeError, match="raised in the middle of its communication"):
                sgd(ddp).step()

        run(rank)

    def test_the_unlaunched_backward_that_raised_cannot_be_stepped_on(self):
        class Fails(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Scale(), Scale()

            def forward(self, x):
                inner = self.first(x)
                inner.register_hook(_divide_by_zero)
                return self.second(inner)

        def rank(r):
            ddp = DDP(Fails())
            with pytest.raises(ZeroDivisionError):
                ddp(a(r)).sum().backward()
            with pytest.raises(RuntimeError, match=f"{STEM}.*backward raised.*Leave out this step"):
                sgd(ddp).step()

        run(rank)


def _divide_by_zero(gradient):
    raise ZeroDivisionError("a user's hook")


class TestFindUnusedParameters:
    @pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
    def test_used_on_some_ranks_gets_the_average_used_on_none_stays_untouched(self, view):
        def rank(r):
            ddp = DDP(
                Branches(with_z=True), find_unused_parameters=True, gradient_as_bucket_view=view
            )
            for _ in range(2):
                ddp.zero_grad()
                ddp(a(r), use_q=r == 0).sum().backward()
            m = ddp.module
            return grad(m.p), grad(m.q), grad(m.z), ddp.reducer._core.used_map()

        assert same_on_all(rank) == (1.5, 0.5, None, [2, 1, 0])

    @pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
    @nothing_unused
    def test_stale_gradient_of_a_globally_unused_parameter_is_kept(self, view):
        def rank(r):
            ddp = DDP(Branches(), find_unused_parameters=True, gradient_as_bucket_view=view)
            ddp(a(r)).sum().backward()
            first = grad(ddp.module.q)
            ddp(a(r), use_q=False).sum().backward()
            return first, grad(ddp.module.q), grad(ddp.module.p)

        assert same_on_all(rank, 3) == (2.0, 2.0, 4.0)

    @pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
    @nothing_unused
    def test_use_inside_no_sync_counts_for_the_next_sync(self, view):
        def rank(r):
            ddp = DDP(
                Branches(with_z=True), find_unused_parameters=True, gradient_as_bucket_view=view
            )
            with ddp.no_sync():
                ddp(a(r)).sum().backward()
            ddp(a(r), use_q=False).sum().backward()
            m = ddp.module
            return grad(m.p), grad(m.q), grad(m.z)

        assert same_on_all(rank) == (3.0, 1.5, None)

    @nothing_unused
    def test_control_flow_that_changes_on_all_ranks(self):
        def rank(r):
            ddp = DDP(Branches(), find_unused_parameters=True, bucket_cap_mb=0)
            optimizer = sgd(ddp)
            maps = []
            for step in range(4):
                optimizer.zero_grad()
                ddp(a(r), use_q=step % 2 == 1).sum().backward()
                optimizer.step()
                maps.append(ddp.reducer._core.used_map())
            return maps, ddp.module.p.item(), ddp.module.q.item()

        maps, p, q = same_on_all(rank)
        assert maps == [[2, 0], [2, 2]] * 2
        assert (p, q) == pytest.approx((1 - 0.6, 1 - 0.3))

    @nothing_unused
    def test_output_left_out_of_the_loss(self):
        def rank(r):
            ddp = DDP(TwoOutputs(), find_unused_parameters=True)
            for _ in range(2):
                out_p, _ = ddp(a(r))
                out_p.sum().backward()
            return grad(ddp.module.p), grad(ddp.module.q)

        assert same_on_all(rank) == (3.0, None)

    def test_used_outside_of_forward(self):
        def rank(r):
            ddp = DDP(Branches(), find_unused_parameters=True)
            out = ddp(a(r), use_q=False)
            with pytest.raises(RuntimeError) as caught:
                (out + ddp.module.q * a(r)).sum().backward()
            return str(caught.value)

        for text in run(rank):
            assert text.startswith(
                "Expected to mark a variable ready only once. Parameter at index 1 with name q"
            )

    def test_warns_once_if_nothing_was_unused(self):
        def rank(r):
            ddp = DDP(Scale(), find_unused_parameters=True)
            for _ in range(3):
                ddp(a(r)).sum().backward()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(rank)
        texts = [str(each.message)[:43] for each in caught]
        assert texts == ["find_unused_parameters=True was specified i"] * 2  # one per rank

    def test_output_that_is_a_parameter(self):
        class Returns(nn.Module):
            def __init__(self):
                super().__init__()
                self.p, self.q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))

            def forward(self):
                return self.p

        def rank(r):
            ddp = DDP(Returns(), find_unused_parameters=True)
            (ddp() * a(r)).sum().backward()
            return grad(ddp.module.p), grad(ddp.module.q)

        assert same_on_all(rank) == (1.5, None)
