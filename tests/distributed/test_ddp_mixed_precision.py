"""mixed_precision: closed forms, since PyTorch refuses it on a CPU; skip_all_reduce_unused_params.

1 + 2**-9 is exact in float32 and rounds to 1 in bfloat16, whose neighbours of 1 are 2**-7 apart.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Branches, Scale, a, grad, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn.parallel.distributed import _MixedPrecision

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
FINE = 1 + 2**-9


class Noting(Scale):
    """Remembers the dtypes that it computed with."""

    def __init__(self, value=1.0):
        super().__init__(value)
        self.register_buffer("offset", torch.zeros(1))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.seen = []

    def forward(self, x, extra=None):
        self.seen = [self.p.dtype, x.dtype, self.offset.dtype, self.count.dtype]
        return super().forward(x)


def test_computes_in_param_dtype_and_keeps_full_precision_outside():
    def rank(r):
        module = Noting(FINE)
        ddp = DDP(module, mixed_precision=_MixedPrecision(param_dtype=BF16))
        leaf = module.p
        out = ddp(torch.tensor([FINE]), extra={"index": torch.arange(2)})
        inside, outside = module.seen, module.p.dtype
        assert module.p is leaf
        out.backward()
        return inside, out.item(), outside, module.p.item(), grad(module.p), module.p.grad.dtype

    # The gradient of p is x in bfloat16, 1; the product of two ones is 1.
    assert same_on_all(rank) == ([BF16, BF16, F32, torch.int64], 1.0, F32, FINE, 1.0, F32)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize(("dtype", "expected"), [(BF16, 1.0), (F16, FINE), (None, FINE)])
def test_reduces_in_reduce_dtype(world, dtype, expected):
    """x = (1 + 2**-9) W on each rank, so that dividing is exact for W = 2; every rank's share
    rounds to 1 in bfloat16, is exact in float16 (2**-10), and in float32.
    """

    def rank(r):
        ddp = DDP(Scale(), mixed_precision=_MixedPrecision(reduce_dtype=dtype))
        ddp(torch.tensor([FINE])).backward()
        return grad(ddp.module.p), ddp.module.p.grad.dtype

    value, kept = same_on_all(rank, world)
    assert kept is F32
    tolerance = 2**-24 if dtype is None else 2**-7 if dtype is BF16 else 2**-10
    assert value == pytest.approx(expected, abs=0 if world == 2 else tolerance * world)


def test_reduce_dtype_is_param_dtype_unless_told():
    def rank(r, **dtypes):
        ddp = DDP(nn.Linear(100000, 1, bias=False), mixed_precision=_MixedPrecision(**dtypes))
        dist.reset_meter()
        ddp(torch.ones(1, 100000)).sum().backward()
        dist.barrier()
        return dist.meter()["all_reduce"]["bytes_sent"]

    assert same_on_all(lambda r: rank(r, param_dtype=BF16)) == 2 * 100000
    assert same_on_all(lambda r: rank(r, param_dtype=BF16, reduce_dtype=F32)) == 4 * 100000
    assert same_on_all(lambda r: rank(r, buffer_dtype=BF16)) == 4 * 100000


def test_buffers_are_cast_once_and_ignored_ones_are_not():
    def rank(r):
        module = nn.BatchNorm1d(1)
        module._ddp_params_and_buffers_to_ignore = ["running_var"]
        ddp = DDP(module, mixed_precision=_MixedPrecision(buffer_dtype=BF16))
        return [b.dtype for b in ddp.module.buffers()]

    assert same_on_all(rank) == [BF16, F32, torch.int64]


def test_shared_and_ignored_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = self.two = nn.Parameter(torch.tensor([FINE]))
            self.apart = nn.Parameter(torch.tensor([FINE]))
            self._ddp_params_and_buffers_to_ignore = ["apart"]

        def forward(self, x):
            assert self.one is self.two
            self.dtypes = self.one.dtype, self.apart.dtype
            return (self.one * x + self.two * x).sum() + (self.apart * 0).sum()

    def rank(r):
        ddp = DDP(Tied(), mixed_precision=_MixedPrecision(param_dtype=BF16))
        ddp(a(r)).backward()
        return ddp.module.dtypes, grad(ddp.module.one)

    assert same_on_all(rank) == ((BF16, F32), 3.0)


def test_parameters_come_back_when_forward_raises():
    class Failing(Scale):
        def forward(self, x):
            raise ValueError("no")

    def rank(r):
        ddp = DDP(Failing(), mixed_precision=_MixedPrecision(param_dtype=BF16))
        leaf = ddp.module.p
        with pytest.raises(ValueError, match="no"):
            ddp(a(r))
        return ddp.module.p is leaf

    assert same_on_all(rank, 1) is True


def test_trains_as_bfloat16_by_hand():
    """Against a loop that casts by hand: same values, to the bit, with two ranks (halving is
    exact).
    """
    rng = np.random.default_rng(0)
    data = torch.from_numpy(rng.standard_normal((4, 2, 8, 5)).astype(np.float32))

    def make():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))

    def rank(r):
        ddp = DDP(make(), mixed_precision=_MixedPrecision(param_dtype=BF16))
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for x in data:
            optimizer.zero_grad()
            ddp(x[r]).float().mean().backward()
            optimizer.step()
        return [p.detach().numpy().tobytes() for p in ddp.parameters()]

    plain = make()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for x in data:
        sums = None
        for part in x:
            low = [p.detach().to(BF16).requires_grad_() for p in plain.parameters()]
            w1, b1, w2, b2 = low
            hidden = torch.tanh(nn.functional.linear(part.to(BF16), w1, b1))
            nn.functional.linear(hidden, w2, b2).float().mean().backward()
            halves = [(p.grad / 2) for p in low]
            sums = halves if sums is None else [s + h for s, h in zip(sums, halves, strict=True)]
        for p, total in zip(plain.parameters(), sums, strict=True):
            p.grad = total.float()
        optimizer.step()
    assert same_on_all(rank) == [p.detach().numpy().tobytes() for p in plain.parameters()]


def test_a_second_communication_hook_is_refused():
    def rank(r):
        ddp = DDP(Scale(), mixed_precision=_MixedPrecision(param_dtype=BF16))
        with pytest.raises(RuntimeError, match="can only be called once"):
            ddp.register_comm_hook(None, lambda state, bucket: None)

    run(rank, 1)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (object(), TypeError, "must be a nn.parallel.distributed._MixedPrecision"),
        (_MixedPrecision(param_dtype=torch.int32), ValueError, "param_dtype must be a floating"),
        (
            _MixedPrecision(reduce_dtype="float16"),
            TypeError,
            "reduce_dtype must be a dtype, got 'f",
        ),
    ],
)
def test_arguments_are_checked(value, error, text):
    with pytest.raises(error, match=text):
        run(lambda r: DDP(Scale(), mixed_precision=value), 1)


@pytest.mark.parametrize("option", ["find_unused_parameters", "static_graph"])
def test_skip_all_reduce_unused_params(option):
    """q and z, unused everywhere, are not sent: two all-reduces (p's bucket, map) in place of
    four; under static_graph the map is sent once.
    """

    def rank(r, skip):
        ddp = DDP(
            Branches(with_z=True),
            bucket_cap_mb=0,
            skip_all_reduce_unused_params=skip,
            **{option: True},
        )
        for _ in range(3):
            ddp.zero_grad()
            dist.reset_meter()
            ddp(a(r), use_q=False).sum().backward()
        calls = dist.meter()["all_reduce"]["calls"]
        return calls, [grad(p) for p in ddp.parameters()]

    sent = {"find_unused_parameters": (4, 2), "static_graph": (3, 1)}[option]
    gradients = [1.5, None, None]
    assert same_on_all(rank, 2, False) == (sent[0], gradients)
    assert same_on_all(rank, 2, True) == (sent[1], gradients)


@pytest.mark.filterwarnings("ignore:find_unused_parameters")
@pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
def test_skipping_on_some_ranks_only_is_a_mismatch_not_a_wrong_value():
    def rank(r):
        ddp = DDP(
            Branches(),
            bucket_cap_mb=0,
            find_unused_parameters=True,
            skip_all_reduce_unused_params=True,
        )
        with pytest.raises(RuntimeError, match="mismatch between collectives"):
            ddp(a(r), use_q=r == 0).sum().backward()
            dist.barrier()

    run(rank)
