"""DDP.join: uneven inputs. Expected numbers are PyTorch 2.13's, as recorded, or a closed form.

Rank r's inputs are counted so that rank 0 has the fewest. SGD with learning rate 1 on ``Scale``,
whose gradient is its input: the weight then shows the sum of all averaged gradients.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from distributed.ddp_cases import (
    DDP,
    Scale,
    arrays,
    batch,
    grad,
    mlp,
    run,
    same_on_all,
    train,
)

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, optim
from minitorch.distributed.algorithms.join import Join

ONE = torch.ones(1)

views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


@views
@pytest.mark.parametrize("find_unused", [False, True])
@pytest.mark.parametrize(
    ("initial", "late", "final"), [(True, 0.5, -4.0), (False, 1.0, -5.0)], ids=["initial", "active"]
)
@pytest.mark.filterwarnings("ignore:find_unused_parameters")
def test_3_and_5_inputs(view, find_unused, initial, late, final):
    def rank(r):
        ddp = DDP(Scale(0.0), gradient_as_bucket_view=view, find_unused_parameters=find_unused)
        with ddp.join(divide_by_initial_world_size=initial):
            seen = train(ddp, [ONE] * (3 + 2 * r))
        return [g for (g,) in seen], ddp.module.p.item(), ddp.module.p.grad.item()

    assert run(rank) == [([1.0] * 3, final, 1.0), ([1.0] * 3 + [late] * 2, final, late)]


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("initial", [True, False])
def test_gradient_is_divided_by_all_or_by_the_active_ranks(world, initial):
    def rank(r):
        ddp = DDP(Scale(0.0), bucket_cap_mb=0)
        with ddp.join(divide_by_initial_world_size=initial):
            return [g for (g,) in train(ddp, [torch.full((1,), 50.0)] * (2 + r))]

    for r, seen in enumerate(run(rank, world)):
        active = [min(world, world + 2 - step) for step in range(1, 3 + r)]
        expected = [50.0 * n / world if initial else 50.0 for n in active]
        np.testing.assert_allclose(seen, expected, rtol=1e-6)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("initial", [True, False])
def test_even_inputs_are_as_without_join(world, initial):
    def rank(r):
        results = []
        for joined in (False, True):
            ddp = DDP(mlp(), bucket_cap_mb=0.0001)
            x, _ = batch(4, seed=r)
            if joined:
                with ddp.join(divide_by_initial_world_size=initial):
                    train_on(ddp, x, 4)
            else:
                train_on(ddp, x, 4)
            results.append([w.tobytes() for w in arrays(ddp)])
        return results[0] == results[1]

    assert all(run(rank, world))


def seeded_linear():
    torch.manual_seed(0)
    return nn.Linear(3, 2, dtype=torch.float64)


def train_on(ddp, x, steps, lr=0.1):
    sgd = optim.SGD(ddp.parameters(), lr=lr, momentum=0.9)
    for _ in range(steps):
        sgd.zero_grad()
        ddp(x).pow(2).mean().backward()
        sgd.step()


@pytest.mark.parametrize("world", [2, 4])
def test_2_r_plus_2_batches_equal_one_process_on_all_of_them(world):
    """A linear loss: the gradients of all batches add up, whoever has seen them."""

    def rank(r):
        ddp = DDP(seeded_linear(), bucket_cap_mb=0)
        inputs = [torch.full((2, 3), float(10 * r + i)).double() for i in range(2 * (r + 1))]
        with ddp.join():
            sgd = optim.SGD(ddp.parameters(), lr=0.1 * world)
            for x in inputs:
                sgd.zero_grad()
                ddp(x).sum().backward()
                sgd.step()
        return [w.tolist() for w in arrays(ddp)], [x.tolist() for x in inputs]

    results = run(rank, world)
    local = seeded_linear()
    sgd = optim.SGD(local.parameters(), lr=0.1)
    for _, inputs in results:
        for x in inputs:
            sgd.zero_grad()
            local(torch.tensor(x).double()).sum().backward()
            sgd.step()
    for weights, _ in results:
        for got, expected in zip(weights, arrays(local), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_no_sync_every_other_step():
    """Rank 0 has 2 inputs, rank 1 has 4; every second step is local (PyTorch: same numbers)."""

    def rank(r):
        ddp = DDP(Scale(0.0))
        sgd = optim.SGD(ddp.parameters(), lr=1.0)
        seen = []
        with ddp.join():
            for i in range(2 + 2 * r):
                sgd.zero_grad()
                if i % 2:
                    with ddp.no_sync():
                        ddp(ONE).sum().backward()
                else:
                    ddp(ONE).sum().backward()
                seen.append(grad(ddp.module.p))
                sgd.step()
        return seen, ddp.module.p.item()

    assert run(rank) == [([1.0, 1.0], -3.5), ([1.0, 1.0, 0.5, 1.0], -3.5)]


def test_evaluation_inside_a_context_is_shadowed():
    """Under no_grad no backward follows, and a joined rank waits for none."""

    def rank(r):
        ddp = DDP(nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 1)))
        x = torch.arange(4.0).view(4, 1) + r
        with ddp.join():
            for _ in range(1 + r):
                ddp(x).sum().backward()
                with torch.no_grad():
                    ddp(x)
        return ddp.module[0].running_mean.item()

    same_on_all(rank, 3)


def test_ranks_that_plan_different_steps_are_told():
    def rank(r):
        ddp = DDP(Scale())
        with ddp.join():
            if r == 0:
                with ddp.no_sync():
                    ddp(ONE)
            elif r == 1:
                ddp(ONE)

    with pytest.raises(RuntimeError, match="of the 2 ranks that still have inputs") as caught:
        run(rank, 3)
    assert "2 run forward with gradients enabled, 1 are going to reduce" in str(caught.value)


@pytest.mark.parametrize("world", [2, 3])
def test_throw_on_early_termination(world):
    def rank(r):
        ddp = DDP(Scale())
        done = 0
        with pytest.raises(RuntimeError) as caught, ddp.join(throw_on_early_termination=True):
            for _ in range(3 + 2 * r):
                ddp(ONE).sum().backward()
                done += 1
        ddp.zero_grad()
        ddp(torch.full((1,), float(r))).sum().backward()  # all is as it was
        return done, str(caught.value), grad(ddp.module.p)

    results = run(rank, world)
    assert results[0][:2] == (3, "Rank 0 exhausted all inputs.")
    message = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
    assert all(result[:2] == (3, message) for result in results[1:])
    assert all(result[2] == pytest.approx((world - 1) / 2) for result in results)


def test_throw_with_a_collective_of_the_models_own():
    class Talks(Scale):
        def forward(self, x):
            dist.all_reduce(torch.ones(1))
            return super().forward(x)

    def rank(r):
        ddp = DDP(Talks())
        done = 0
        with (
            pytest.raises(RuntimeError) as caught,
            ddp.join(throw_on_early_termination=True),
        ):
            for _ in range(4 - r):
                ddp(ONE).sum().backward()
                done += 1
        return done, str(caught.value)

    others = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
    assert run(rank, 3) == [(2, others), (2, others), (2, "Rank 2 exhausted all inputs.")]


def test_disabled_context_divides_by_all_ranks_and_shadows_nothing():
    def rank(r):
        ddp = DDP(Scale(0.0))
        dist.reset_meter()
        with ddp.join(divide_by_initial_world_size=False, enable=False):
            seen = train(ddp, [torch.full((1,), float(r))] * 2)
        return seen, dist.meter()["all_reduce"]["calls"]

    assert run(rank) == [([[0.5], [0.5]], 2)] * 2


def test_an_exception_in_the_body_is_passed_on():
    class Fails(Scale):
        def forward(self, x):
            raise KeyError("the model's own")

    def rank(r):
        ddp = DDP(Fails())
        with ddp.join():
            ddp(ONE)

    with pytest.raises(KeyError, match="the model's own"):
        run(rank, 2)


def test_group_other_than_the_default_one():
    def rank(r):
        group = dist.new_group([1, 2])
        if r == 0:
            return None
        ddp = DDP(Scale(0.0), process_group=group)
        with ddp.join():
            train(ddp, [ONE] * (2 * r))
        return ddp.module.p.item()

    assert run(rank, 3) == [None, -3.0, -3.0]


def test_two_wrappers_in_one_context():
    def rank(r):
        first, second = DDP(Scale(0.0)), DDP(Scale(0.0))
        with Join([first, second], divide_by_initial_world_size=False):
            for _ in range(1 + r):
                train(first, [ONE])
                train(second, [ONE * 3])
        return first.module.p.item(), second.module.p.item()

    assert same_on_all(rank, 3) == (-3.0, -9.0)


def test_skew_warns_once(monkeypatch):
    monkeypatch.setattr(Join, "WARN_THRESHOLD", 2)

    def rank(r):
        ddp = DDP(Scale())
        with ddp.join():
            train(ddp, [ONE] * (1 + 5 * r), lr=0.0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(rank)
    texts = [str(each.message) for each in caught]
    assert len(texts) == 1
    assert texts[0].startswith("Detected uneven input skew of greater than 2. This means that")
    assert "rank 0 has at least 2 fewer inputs" in texts[0]
