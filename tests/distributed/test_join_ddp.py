"""DDP.join: uneven inputs. Expected numbers are PyTorch 2.13's, as recorded, or a closed form.

Rank r's inputs are counted so that rank 0 has the fewest. SGD with learning rate 1 on ``Scale``,
whose gradient is its input: the weight then shows the sum of all averaged gradients.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Branches, Scale, arrays, batch, grad, mlp, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, optim
from minitorch.distributed._ddp.logging import logging_data
from minitorch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from minitorch.distributed.algorithms.join import Join

ONE = torch.ones(1)

views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


def train(ddp, inputs, lr=1.0):
    """One SGD step per input; the gradients seen."""
    sgd = optim.SGD(ddp.parameters(), lr=lr)
    seen = []
    for x in inputs:
        sgd.zero_grad()
        ddp(x).sum().backward()
        seen.append([grad(p) for p in ddp.parameters()])
        sgd.step()
    return seen


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


def test_buffers_come_from_the_highest_active_rank():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(1))
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen.add_(x)
            return self.p * x

    def rank(r):
        ddp = DDP(Counting())
        values = []
        with ddp.join():
            # Rank 1 is the last to see data.
            for _ in range({0: 1, 1: 3, 2: 2}[r]):
                ddp(torch.full((1,), 10.0**r)).sum().backward()
                values.append(ddp.module.seen.item())
        return values, ddp.module.seen.item()

    results = run(rank, 3)
    # Iteration 2 starts from rank 2's 100, iteration 3 from rank 1's own.
    assert [values for values, _ in results] == [[1.0], [10.0, 110.0, 120.0], [100.0, 200.0]]
    assert [final for _, final in results] == [120.0] * 3


@pytest.mark.parametrize("first", [0, 2], ids=["rank 0 has none", "rank 0 has two"])
def test_rebuild_with_a_joined_rank(first):
    """The rebuild follows rank 0's order, also when rank 0 has only shadowed the first backward."""

    def rank(r):
        ddp = DDP(mlp(), bucket_cap_mb=0.0001)
        with ddp.join():
            for _ in range(first if r == 0 else 4):
                x, y = batch(3, seed=r)
                (ddp(x) - y).pow(2).sum().backward()
        data = logging_data(ddp)
        assert data["join_uneven_inputs"] == 1
        return data["has_rebuilt_buckets"], data["rebuilt_per_bucket_param_indices"]

    rebuilt, indices = same_on_all(rank, 3)
    assert rebuilt == 1
    assert sorted(int(i) for i in indices.replace(",", "").split()) == list(range(6))


def test_unused_parameters_of_active_ranks():
    """A joined rank uses nothing: what no active rank uses keeps its gradient of None."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), find_unused_parameters=True)
        with ddp.join():
            for i in range(1 + r):
                ddp.zero_grad()
                ddp(ONE, use_q=i == 1).sum().backward()
        m = ddp.module
        return grad(m.p), grad(m.q), grad(m.z), ddp.reducer._core.used_map()

    assert run(rank) == [(1.0, None, None, [1, 1, 0]), (0.5, 0.5, None, [1, 1, 0])]


def test_a_hook_gets_zeros_from_a_joined_rank():
    def rank(r):
        ddp = DDP(Scale(0.0))
        seen = []

        def summed(state, bucket):
            seen.append(bucket.buffer().item())
            return dist.all_reduce(bucket.buffer(), async_op=True).get_future()

        ddp.register_comm_hook(None, summed)
        with ddp.join():
            gradients = train(ddp, [ONE] * (1 + r))
        return seen, gradients, ddp.module.p.item()

    assert run(rank) == [
        ([1.0, 0.0], [[2.0]], -3.0),
        ([1.0, 1.0], [[2.0], [1.0]], -3.0),
    ]


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


def test_static_graph_with_a_joined_rank():
    """A rank that only shadows the first, learning iteration, and one that never has inputs."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), static_graph=True, bucket_cap_mb=0)
        with ddp.join():
            for _ in range(2 * r):
                ddp.zero_grad()
                ddp(torch.full((1,), 6.0)).sum().backward()
        m = ddp.module
        return grad(m.p), grad(m.q), grad(m.z)

    assert run(rank, 3) == [(None, None, None), (4.0, 4.0, None), (2.0, 2.0, None)]


@pytest.mark.filterwarnings("ignore:find_unused_parameters")
def test_unused_parameters_with_a_joined_rank():
    """q is used by all while all have inputs, and then by nobody."""

    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True)
        seen = []
        with ddp.join():
            for step in range(1 + r):
                ddp.zero_grad()
                ddp(ONE, use_q=step == 0).sum().backward()
                seen.append((grad(ddp.module.p), grad(ddp.module.q)))
        return seen

    assert run(rank) == [[(1.0, 1.0)], [(1.0, 1.0), (0.5, None)]]


@pytest.mark.parametrize("world", [2, 3, 5])
@pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
def test_static_graph_of_a_rank_that_has_inputs_only_later(world, view):
    """Rank 0 shadows the learning pass of the others, and learns in its own first backward."""

    def rank(r):
        ddp = DDP(
            Branches(with_z=True), static_graph=True, bucket_cap_mb=0, gradient_as_bucket_view=view
        )
        with ddp.join():
            train(ddp, [ONE] * r, lr=0.0)
        train(ddp, [ONE * (r + 1)] * 3, lr=0.0)
        m = ddp.module
        return grad(m.p), grad(m.q), grad(m.z), ddp._get_ddp_logging_data()["has_rebuilt_buckets"]

    mean = (world + 1) / 2
    assert same_on_all(rank, world) == (mean, mean, None, 1)


def test_static_graph_of_a_rank_that_has_inputs_only_later_and_another_graph():
    """What no rank used when the ranks agreed on what is used cannot be averaged later."""

    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        with ddp.join():
            for _ in range(r):
                ddp(ONE, use_q=False).sum().backward()
        if r == 0:
            with pytest.raises(RuntimeError, match=r"training graph has changed .*parameter 1, q"):
                ddp(ONE).sum().backward()

    run(rank)


def test_sparse_gradients_with_a_joined_rank():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 2, sparse=True))
        sgd = optim.SGD(ddp.parameters(), lr=1.0)
        with torch.no_grad():
            ddp.module.weight.zero_()
        with ddp.join():
            for i in range(1 + r):
                sgd.zero_grad()
                ddp(torch.tensor([i + 2 * r])).sum().backward()
                sgd.step()
        return ddp.module.weight.tolist()

    # Rows 0 (rank 0) and 2, 3 (rank 1), each divided by 2.
    half = [-0.5, -0.5]
    assert same_on_all(rank) == [half, [0.0, 0.0], half, half]


@pytest.mark.parametrize("where", ["PRE_FORWARD", "POST_FORWARD"])
def test_buffer_hooks_are_shadowed(where):
    def rank(r):
        ddp = DDP(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))
        calls = []

        def average(state, named_buffers):
            calls.append(sorted(named_buffers))
            mean = named_buffers["1.running_mean"]
            mean.div_(2)
            return [dist.all_reduce(mean, async_op=True).get_future()]

        location = type(ddp._register_buffer_comm_hook.__defaults__[0])[where]
        ddp._register_buffer_comm_hook(ddp, average, location)
        with ddp.join():
            for _ in range(1 + 2 * r):
                ddp(torch.rand(4, 1)).sum().backward()
        return len(calls), ddp.module[1].running_mean.item()

    results = run(rank)
    assert [count for count, _ in results] == [3, 3]
    assert results[0][1] == results[1][1]


def test_delayed_parameters_are_refused_by_name():
    def rank(r):
        module = nn.Linear(2, 1)
        ddp = DDP(
            module,
            delay_all_reduce_named_params=[("bias", module.bias)],
            param_to_hook_all_reduce=module.weight,
        )
        with pytest.raises(NotImplementedError, match="delay_all_reduce_named_params"), ddp.join():
            ddp(torch.ones(1, 2))

    run(rank)


@pytest.mark.parametrize("hook", ["FP16_COMPRESS", "BF16_COMPRESS", "ALLREDUCE", "NOOP"])
def test_builtin_hooks_with_a_joined_rank(hook):
    def rank(r):
        ddp = DDP(Scale(0.0))
        register_ddp_comm_hook(DDPCommHookType[hook], ddp)
        with ddp.join():
            return [g for (g,) in train(ddp, [ONE] * (1 + 2 * r))]

    late = 1.0 if hook == "NOOP" else 0.5
    assert run(rank) == [[1.0], [1.0, late, late]]
