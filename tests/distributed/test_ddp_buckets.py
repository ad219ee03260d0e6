"""Bucket layout and launch sequence: first iteration and rebuild. Values as in PyTorch 2.13."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, F64, a, grad, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn

pytestmark = pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
KIB = 1024


class Elementwise(nn.Module):
    """Layers of a given size in KiB, each used once, in registration order."""

    def __init__(self, kib):
        super().__init__()
        self.layers = nn.ParameterList([nn.Parameter(torch.ones(size * KIB // 4)) for size in kib])

    def forward(self, x):
        for layer in self.layers:
            x = x * layer.mean()
        return x


def recorded_launches(ddp):
    """Replace the all-reduce by one that keeps a list of (bucket, KiB)."""
    launches = []

    def record(state, bucket):
        launches.append((bucket.index(), bucket.buffer().numel() * 4 // KIB))
        bucket.buffer().div_(dist.get_world_size())
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future()

    ddp.register_comm_hook(None, record)
    return launches


def launch_sequence(kib, options, iterations=3):
    def rank(r):
        ddp = DDP(Elementwise(kib), **options)
        ctor = ddp._get_ddp_logging_data()["bucket_sizes"]
        launches = recorded_launches(ddp)
        seen = []
        for _ in range(iterations):
            launches.clear()
            ddp(torch.ones(1)).sum().backward()
            seen.append(list(launches))
        data = ddp._get_ddp_logging_data()
        rebuilt = (
            data["has_rebuilt_buckets"],
            data.get("rebuilt_bucket_sizes"),
            data.get("rebuilt_per_bucket_param_indices"),
        )
        return ctor, rebuilt, seen

    return same_on_all(rank)


@pytest.mark.parametrize(
    ("options", "ctor", "rebuilt", "launches"),
    [
        (
            {},
            "6291456",
            (1, "1048576, 5242880", "5, 4 3 2 1 0"),
            [[(0, 6144)], [(0, 1024), (1, 5120)], [(0, 1024), (1, 5120)]],
        ),
        (
            {"bucket_cap_mb": 2},
            "6291456",
            (1, "2097152, 2097152, 2097152", "5 4, 3 2, 1 0"),
            [[(0, 6144)]] + [[(0, 2048), (1, 2048), (2, 2048)]] * 2,
        ),
        (
            {"find_unused_parameters": True},
            "5242880, 1048576",
            (0, None, None),
            [[(0, 5120), (1, 1024)]] * 3,
        ),
        (
            {"find_unused_parameters": True, "bucket_cap_mb": 2},
            "2097152, 2097152, 2097152",
            (0, None, None),
            [[(0, 2048), (1, 2048), (2, 2048)]] * 3,
        ),
        (
            {"bucket_cap_mb_list": [1, 3]},
            "2097152, 3145728, 1048576",
            (1, "1048576, 3145728, 2097152", "5, 4 3 2, 1 0"),
            [[(0, 2048), (1, 3072), (2, 1024)]] + [[(0, 1024), (1, 3072), (2, 2048)]] * 2,
        ),
        (
            {"bucket_cap_mb_list": [3, 1, 2], "static_graph": True},
            "2097152, 1048576, 3145728",
            (1, "3145728, 1048576, 2097152", "5 4 3, 2, 1 0"),
            [[(0, 2048), (1, 1024), (2, 3072)]] * 2 + [[(0, 3072), (1, 1024), (2, 2048)]],
        ),
        (
            {"bucket_cap_mb_list": []},
            "6291456",
            (1, "1048576, 5242880", "5, 4 3 2 1 0"),
            [[(0, 6144)], [(0, 1024), (1, 5120)], [(0, 1024), (1, 5120)]],
        ),
    ],
    ids=["default", "cap-2", "unused", "unused-cap-2", "list", "static-list", "no-list"],
)
def test_six_layers_of_one_mebibyte(options, ctor, rebuilt, launches):
    assert launch_sequence([1024] * 6, options) == (ctor, rebuilt, launches)


class OutOfOrder(nn.Module):
    """Registered a, b, c; executed b, c, a: gradients become ready a, c, b."""

    def __init__(self):
        super().__init__()
        for name in "abc":
            setattr(self, name, nn.Parameter(torch.ones(1024 * KIB // 4)))

    def forward(self, x):
        return ((x * self.b.mean()) * self.c.mean()) * self.a.mean()


def test_rebuild_follows_the_order_of_readiness():
    def rank(r, options):
        ddp = DDP(OutOfOrder(), bucket_cap_mb=1, **options)
        orders = []
        for _ in range(3):
            ddp(torch.ones(1)).sum().backward()
            orders.append(ddp.reducer.bucket_indices)
        return orders

    assert same_on_all(rank, 2, {}) == [[[0, 1, 2]], [[0], [2], [1]], [[0], [2], [1]]]
    assert same_on_all(rank, 2, {"find_unused_parameters": True}) == [[[2], [1], [0]]] * 3


def test_rank_0_decides_the_order():
    class Either(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(KIB // 4))
            self.q = nn.Parameter(torch.ones(KIB // 4))

        def forward(self, x, p_first):
            first, second = (self.p, self.q) if p_first else (self.q, self.p)
            return (x * first.mean()) * second.mean()

    def rank(r):
        ddp = DDP(Either(), bucket_cap_mb=0)
        for _ in range(3):
            ddp.zero_grad()
            ddp(a(r), p_first=r == 0).sum().backward()
        gradients = [p.grad.sum().item() for p in ddp.parameters()]
        return ddp.reducer.bucket_indices, gradients

    indices, gradients = same_on_all(rank, 3)
    assert indices == [[1], [0]]  # on rank 0 the gradient of q comes first
    assert gradients == pytest.approx([2.0, 2.0])


def test_rebuild_waits_for_a_reduced_backward():
    def rank(r):
        ddp = DDP(OutOfOrder(), bucket_cap_mb=1)
        rebuilt = []
        with ddp.no_sync():
            ddp(a(r)).sum().backward()
        ddp(a(r))
        rebuilt.append(ddp._has_rebuilt_buckets)
        ddp(a(r)).sum().backward()
        with torch.no_grad():
            ddp(a(r))
        rebuilt.append(ddp._has_rebuilt_buckets)
        with ddp.no_sync():
            ddp(a(r))
        rebuilt.append(ddp._has_rebuilt_buckets)
        return rebuilt

    assert same_on_all(rank) == [False, False, True]


def test_one_bucket_per_dtype():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))
            self.d = nn.Parameter(torch.ones(4, dtype=F64))
            self.v = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return ((x * self.w).double() * self.d).float() * self.v

    def rank(r):
        ddp = DDP(Mixed())
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        data = ddp._get_ddp_logging_data()
        layout = (
            data["bucket_sizes"],
            data["rebuilt_bucket_sizes"],
            data["rebuilt_per_bucket_param_indices"],
        )
        return layout, data["dtypes"], [p.grad.tolist() for p in ddp.parameters()]

    layout, dtypes, gradients = same_on_all(rank)
    assert layout == ("32, 32", "32, 32", "1, 2 0")
    assert dtypes == "double, float"
    assert gradients == [[1.5] * 4] * 3


def test_zero_size_parameter():
    def rank(r):
        class WithEmpty(nn.Module):
            def __init__(self):
                super().__init__()
                self.p = nn.Parameter(torch.ones(1))
                self.empty = nn.Parameter(torch.ones(0))

            def forward(self, x):
                return self.p * x + self.empty.sum()

        ddp = DDP(WithEmpty(), bucket_cap_mb=0)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(ddp.module.p), ddp.module.empty.grad.shape

    assert same_on_all(rank) == (1.5, (0,))


def test_wire_count_of_an_iteration():
    """Linear, BatchNorm, Linear: how many collectives a training step issues."""

    def rank(r):
        counts = []

        def count():
            meter = dist.meter()
            counts.append(
                tuple(
                    meter.get(op, {}).get("calls", 0)
                    for op in ("all_gather", "broadcast", "all_reduce")
                )
            )
            dist.reset_meter()

        dist.reset_meter()
        ddp = DDP(
            nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)), bucket_cap_mb=0.0001
        )
        count()
        for _ in range(3):
            out = ddp(torch.randn(3, 4))
            count()
            out.sum().backward()
            count()
        return counts

    counts = same_on_all(rank)
    # Construction: fingerprints; float and integer state.
    assert counts[0] == (1, 2, 0)
    # Buffers by dtype, and before the second forward the rebuilt buckets' members and sizes.
    assert [broadcasts for _, broadcasts, _ in counts[1::2]] == [2, 4, 2]
    assert [reductions for _, _, reductions in counts[2::2]] == [1, 2, 2]


def test_every_rank_count_has_the_average():
    for world in (2, 3, 4):
        assert run(one_step, world) == [pytest.approx((world + 1) / 2)] * world


def one_step(r):
    ddp = DDP(OutOfOrder(), bucket_cap_mb=1)
    ddp(a(r)).sum().backward()
    return ddp.module.a.grad.sum().item()
