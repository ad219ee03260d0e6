"""static_graph: the first backward learns which parameters take part and how often, and is reduced
at its end; later ones rely on that.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import (
    DDP,
    Branches,
    Scale,
    TwoOutputs,
    a,
    b,
    batch,
    grad,
    mlp,
    run,
    same_on_all,
)

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.utils.checkpoint import checkpoint

KIB = 1024
UNFINISHED = "Expected to have finished reduction in the prior iteration before starting a new one."
CHANGED = (
    "Your training graph has changed in this iteration, e.g., one parameter is unused in first"
)


class SixLayers(nn.Module):
    """Six weights of 1 MiB; only their gradients' sizes matter."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.zeros(512, 512)) for _ in range(6)])

    def forward(self, x):
        for weight in self.weights:
            x = (weight * x).sum()
        return x


class Sent:
    """A hook that averages, and notes which parameters left together, with how many KiB."""

    def __init__(self, ddp):
        self.passes = []
        numbers = {id(p): i for i, p in enumerate(ddp.module.parameters())}

        def hook(state, bucket):
            if bucket.index() == 0:
                self.passes.append([])
            self.passes[-1].append(
                (
                    bucket.buffer().nbytes // KIB,
                    [numbers[id(p)] for p in bucket.parameters()],
                )
            )
            buffer = bucket.buffer()
            buffer /= dist.get_world_size()
            return dist.all_reduce(buffer, async_op=True).get_future().then(lambda f: f.value()[0])

        ddp.register_comm_hook(None, hook)


def test_is_rebuilt_one_iteration_later():
    """The first backward has no order of readiness, so the second one's is used: in PyTorch with
    a cap of 2 MiB the launches are [6144], [6144], [2048] * 3 KiB.
    """

    def rank(r):
        ddp = DDP(SixLayers(), bucket_cap_mb=2, static_graph=True)
        sent = Sent(ddp)
        for _ in range(4):
            ddp(torch.ones(())).backward()
        data = ddp._get_ddp_logging_data()
        return (
            [[kib for kib, _ in each] for each in sent.passes],
            sent.passes[-1][0][1],
            data["has_rebuilt_buckets"],
            data["rebuilt_bucket_sizes"],
            data["static_graph"],
        )

    assert same_on_all(rank) == (
        [[6144], [6144], [2048] * 3, [2048] * 3],
        [5, 4],
        1,
        "2097152, 2097152, 2097152",
        1,
    )


def test_nothing_is_sent_before_the_first_backward_is_over():
    def rank(r):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).double()
        ddp = DDP(model, bucket_cap_mb=0, static_graph=True, find_unused_parameters=True)
        launched = []
        model[0].weight.register_post_accumulate_grad_hook(
            lambda _: launched.append(ddp.reducer._core.launched)
        )
        for _ in range(3):
            ddp(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
        return launched

    # One bucket in the first two backwards, since the order of readiness is known after the second.
    first, _, third = same_on_all(rank)
    assert first == 0
    assert third == 3  # all but the bucket of the last gradient


@pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
def test_unused_from_the_start(view):
    """PyTorch: p's gradient is 1.5 in each iteration, q's and z's are None."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), static_graph=True, gradient_as_bucket_view=view)
        m, seen = ddp.module, []
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            ddp(a(r), use_q=False).sum().backward()
            optimizer.step()
            seen.append((grad(m.p), grad(m.q), grad(m.z)))
        return seen, m.q.item()

    assert same_on_all(rank) == ([(1.5, None, None)] * 4, 1.0)


@pytest.mark.parametrize("world", [2, 3, 4])
def test_graphs_may_differ_between_ranks(world):
    """Only rank 0 uses q; the others contribute zeros and get the average."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), static_graph=True, bucket_cap_mb=0)
        m, seen = ddp.module, []
        for _ in range(4):
            ddp.zero_grad()
            ddp(a(r), use_q=r == 0).sum().backward()
            seen.append((grad(m.p), grad(m.q), grad(m.z)))
        return seen, ddp._get_ddp_logging_data()["has_rebuilt_buckets"]

    expected = ((world + 1) / 2, pytest.approx(1 / world), None)
    seen, rebuilt = same_on_all(rank, world)
    assert seen == [expected] * 4
    assert rebuilt == 1


def test_a_parameter_that_gets_used_raises_in_backward():
    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        for _ in range(2):
            ddp(a(r), use_q=False).sum().backward()
        with pytest.raises(RuntimeError, match=CHANGED) as caught:
            ddp(a(r), use_q=True).sum().backward()
        return str(caught.value)

    for r, text in enumerate(run(rank)):
        assert "this is not compatible with static_graph set to True" in text
        assert f"Rank {r}: the gradient of parameter 1, q," in text


def test_a_parameter_that_vanishes_raises_at_the_optimizer_step():
    """PyTorch takes the step, and raises at the next forward."""

    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for _ in range(2):
            ddp(a(r)).sum().backward()
        ddp(a(r), use_q=False).sum().backward()
        for trigger in (optimizer.step, lambda: ddp(a(r))):
            with pytest.raises(RuntimeError, match=UNFINISHED) as caught:
                trigger()
            assert "one parameter is used in first iteration, but then got unused" in str(
                caught.value
            )
            assert str(caught.value).endswith(f"for rank {r}: q")

    run(rank)


def test_an_output_left_out_of_the_loss_stays_unused():
    """PyTorch 2.13 counts its gradient as used in the first iteration and raises in the third
    (pytorch#79171); what backward does not reach is unused here, from the first iteration on.
    """

    def rank(r):
        ddp = DDP(TwoOutputs(), static_graph=True)
        seen = []
        for _ in range(4):
            ddp.zero_grad()
            out_p, _ = ddp(a(r))
            out_p.sum().backward()
            seen.append((grad(ddp.module.p), grad(ddp.module.q)))
        return seen

    assert same_on_all(rank) == [(1.5, None)] * 4


@pytest.mark.parametrize("static", [False, True])
def test_two_forwards_then_one_backward(static):
    def rank(r):
        ddp = DDP(Scale(), static_graph=static)
        seen = []
        for _ in range(3):
            ddp.zero_grad()
            (ddp(a(r)) + ddp(b(r))).sum().backward()
            seen.append(grad(ddp.module.p))
        return seen

    assert same_on_all(rank) == [16.5] * 3


class Checkpointed(nn.Module):
    """One layer, run `times` times, each time inside a re-entrant checkpoint."""

    def __init__(self, times, *, with_idle=False):
        super().__init__()
        self.times = times
        self.layer = nn.Linear(3, 3).double()
        self.head = nn.Linear(3, 1).double()
        if with_idle:
            self.idle = nn.Linear(3, 3).double()

    def forward(self, x):
        for _ in range(self.times):
            x = checkpoint(lambda t: self.layer(t).tanh(), x, use_reentrant=True)
        return self.head(x)


def _inputs(r):
    rng = np.random.default_rng(r)
    return torch.from_numpy(rng.standard_normal((4, 3))).requires_grad_()


def _local_gradients(make, world):
    """The mean over ranks of the gradients that one process gets for each rank's inputs."""
    total = None
    for r in range(world):
        torch.manual_seed(3)
        model = make()
        model(_inputs(r)).sum().backward()
        each = [np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in model.parameters()]
        total = each if total is None else [t + g for t, g in zip(total, each, strict=True)]
    return [t / world for t in total]


@pytest.mark.parametrize(("times", "idle"), [(1, False), (2, False), (3, False), (2, True)])
def test_reentrant_checkpoints(times, idle):
    """The layer's hook fires once per checkpoint; only static_graph knows when that is all."""

    def make():
        return Checkpointed(times, with_idle=idle)

    def rank(r):
        torch.manual_seed(3)
        ddp = DDP(make(), static_graph=True, bucket_cap_mb=0)
        for _ in range(3):
            ddp.zero_grad()
            ddp(_inputs(r)).sum().backward()
        return [None if p.grad is None else p.grad.numpy().copy() for p in ddp.parameters()]

    expected = _local_gradients(make, 2)
    for averages in run(rank):
        for average, wanted in zip(averages, expected, strict=True):
            if average is None:
                assert not wanted.any()
            else:
                np.testing.assert_allclose(average, wanted, rtol=1e-12)


def test_reentrant_checkpoints_twice_without_static_graph_are_refused():
    def rank(r):
        torch.manual_seed(3)
        ddp = DDP(Checkpointed(2))
        with pytest.raises(RuntimeError, match="Expected to mark a variable ready only once"):
            ddp(_inputs(r)).sum().backward()

    run(rank)


def test_equals_training_without_it():
    def rank(r, static):
        ddp = DDP(mlp(torch.float64), static_graph=static, bucket_cap_mb=0.0001)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
        for step in range(5):
            x, y = batch(4, torch.float64, seed=10 * step + r)
            optimizer.zero_grad()
            ((ddp(x) - y) ** 2).mean().backward()
            optimizer.step()
        return [p.detach().numpy().tobytes() for p in ddp.parameters()]

    assert same_on_all(rank, 2, True) == same_on_all(rank, 2, False)


def test_no_sync_before_the_first_synced_backward():
    """What is learned is what the first backward that synchronizes does."""

    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        m, seen = ddp.module, []
        for _ in range(3):
            ddp.zero_grad()
            with ddp.no_sync():
                ddp(b(r), use_q=True).sum().backward()
            ddp(a(r), use_q=False).sum().backward()
            seen.append((grad(m.p), grad(m.q)))
        return seen

    assert same_on_all(rank) == [(16.5, 15.0)] * 3


class TestSetStaticGraph:
    def test_before_training(self):
        def rank(r):
            ddp = DDP(Branches())
            ddp._set_static_graph()
            for _ in range(2):
                ddp(a(r), use_q=False).sum().backward()
            return ddp.static_graph, grad(ddp.module.q)

        assert same_on_all(rank) == (True, None)

    def test_after_a_step_is_refused(self):
        def rank(r):
            ddp = DDP(Scale())
            ddp(a(r)).sum().backward()
            with pytest.raises(
                RuntimeError, match=r"set_static_graph\(\) should be called before training loop"
            ):
                ddp._set_static_graph()
            return ddp.static_graph

        assert same_on_all(rank) is False

    def test_twice_and_with_find_unused_parameters_warns(self):
        with pytest.warns(UserWarning, match="no need to set it again"):
            run(lambda r: DDP(Scale(), static_graph=True)._set_static_graph())
        with pytest.warns(UserWarning, match="detects unused parameters by itself"):
            run(lambda r: DDP(Scale(), find_unused_parameters=True)._set_static_graph())

    @pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
    def test_the_log_says_whether_it_could_be_set(self):
        def rank(r, patterns):
            ddp = DDP(Branches(), find_unused_parameters=True)
            for use_q in patterns:
                ddp(a(r), use_q=use_q).sum().backward()
            return ddp._get_ddp_logging_data()["can_set_static_graph"]

        assert same_on_all(rank, 2, [False, False, False]) == 1
        assert same_on_all(rank, 2, [False, True, False]) == 0


def test_must_be_the_same_on_all_ranks():
    def rank(r):
        with pytest.raises(
            RuntimeError, match="static_graph=False on rank 0 and static_graph=True"
        ):
            DDP(Scale(), static_graph=r == 1)

    run(rank)


@pytest.mark.parametrize("container", ["tuple", "list", "dict"])
def test_nested_outputs(container):
    class Nested(TwoOutputs):
        def forward(self, x):
            first, second = super().forward(x)
            made = {
                "tuple": (first, second),
                "list": [first, second],
                "dict": {"a": first, "b": second},
            }
            return made[container]

    def rank(r):
        ddp = DDP(Nested(), static_graph=True)
        seen = []
        for _ in range(3):
            ddp.zero_grad()
            out = ddp(a(r))
            sum(t.sum() for t in (out.values() if container == "dict" else out)).backward()
            seen.append((grad(ddp.module.p), grad(ddp.module.q)))
        return seen

    assert same_on_all(rank) == [(1.5, 1.5)] * 3
