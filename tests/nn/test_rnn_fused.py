"""The fused sequence against elementary ops: values, both derivatives, memory."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest

import minitorch
from minitorch import nn
from minitorch.ops import recurrent_memory, recurrent_plain
from minitorch.ops.recurrent_common import NO_EXTRAS, Expect, Extras, Keep
from minitorch.ops.recurrent_schedule import Chain, Schedule
from minitorch.ops.recurrent_sequence import sequence

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
INPUT, SIZE = 3, 4
SIZES = ([2, 2, 2], [3, 3, 2, 1, 1], [1], [4])


def _leaves(kind: str, schedule: Schedule, projection: int = 0, bias: bool = True) -> tuple:
    rng = np.random.default_rng(schedule.rows)

    def normal(*shape: int) -> Any:
        return minitorch.from_numpy(rng.standard_normal(shape)).requires_grad_()

    rows, lstm = GATES[kind] * SIZE, kind == "LSTM"
    width = projection or SIZE
    state = [normal(schedule.batch, width)] + ([normal(schedule.batch, SIZE)] if lstm else [])
    biases = [normal(rows), normal(rows)] if bias else [None, None]
    weights = [normal(rows, INPUT), normal(rows, width), *biases]
    if lstm:
        weights.append(normal(projection, SIZE) if projection else None)
    return normal(schedule.rows, INPUT), state, weights


def _extras(name: str, schedule: Schedule, width: int) -> Extras:
    rng = np.random.default_rng(1)

    def keep(units: int) -> Keep:
        return Keep(rng.random((schedule.rows, units)) < 0.5, np.dtype(np.float64))

    def factors(count: int, units: int) -> np.ndarray:
        return (rng.random((count, units)) < 0.5) / 0.5

    return {
        "none": lambda: NO_EXTRAS,
        "masks": lambda: Extras(keep(width), keep(SIZE)),
        "means": lambda: Extras(Expect(0.3), Expect(0.5)),
        "recurrent": lambda: Extras(drop_candidate=factors(schedule.rows, SIZE)),
        "variational": lambda: Extras(drop_hidden=factors(schedule.batch, width)),
        "all": lambda: Extras(
            keep(width), Expect(0.2), factors(schedule.rows, SIZE), factors(schedule.batch, width)
        ),
    }[name]()


def _values_and_gradients(run: Any, kind: str, leaves: tuple, *rest: Any) -> list[np.ndarray]:
    x, state, weights = leaves
    outputs = run(kind, x, state, weights, *rest)
    total = 0.0
    for out in outputs:
        total = total + (out * _cosines(out)).sum()
    variables = [t for t in (x, *state, *weights) if t is not None]
    grads = minitorch.autograd.grad(total, variables)
    return [t.detach().numpy() for t in (*outputs, *grads)]


def _cosines(like: Any) -> Any:
    return minitorch.from_numpy(np.cos(np.arange(like.numel())).reshape(tuple(like.shape)))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("extra", ["none", "masks", "means", "recurrent", "variational", "all"])
def test_fused_equals_plain(kind: str, extra: str) -> None:
    for sizes, reverse in itertools.product(SIZES, (False, True)):
        for projection, bias in ((0, True), (0, False), *([(2, True)] if kind == "LSTM" else [])):
            schedule = Schedule(sizes, reverse)
            leaves = _leaves(kind, schedule, projection, bias)
            extras = _extras(extra, schedule, projection or SIZE)
            fused = _values_and_gradients(sequence, kind, leaves, schedule, extras)
            plain = _values_and_gradients(recurrent_plain.sequence, kind, leaves, schedule, extras)
            for mine, truth in zip(fused, plain, strict=True):
                np.testing.assert_allclose(mine, truth, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", GATES)
def test_only_what_is_needed(kind: str) -> None:
    """Each leaf alone gets the same gradient; the output alone, or a final state alone, works."""
    schedule = Schedule([2, 2, 1])
    x, state, weights = _leaves(kind, schedule)
    every = [x, *state, *[w for w in weights if w is not None]]
    outputs = sequence(kind, x, state, weights, schedule)
    for out in outputs:
        wanted = minitorch.autograd.grad(out.sum(), every, retain_graph=True, allow_unused=True)
        for position, leaf in enumerate(every):
            for other in every:
                other.requires_grad_(other is leaf)
            again = sequence(kind, x, state, weights, schedule)[
                next(i for i, o in enumerate(outputs) if o is out)
            ]
            (grad,) = minitorch.autograd.grad(again.sum(), [leaf])
            np.testing.assert_allclose(
                grad.numpy(), wanted[position].numpy(), rtol=1e-12, atol=1e-12
            )
        for other in every:
            other.requires_grad_(True)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_finite_differences_of_both_orders(kind: str) -> None:
    minitorch.manual_seed(4)
    net = getattr(nn, kind)(2, 2, dtype=minitorch.float64)
    weights = dict(net.named_parameters())
    names = list(weights)
    x = minitorch.randn(3, 2, 2, dtype=minitorch.float64, requires_grad=True)

    def call(x: Any, *values: Any) -> Any:
        net._parameters.update(zip(names, values, strict=True))
        return net(x)[0]

    leaves = (x, *weights.values())
    assert minitorch.autograd.gradcheck(call, leaves)
    # Second order: two steps, one input, and one bias of each kind see every product of two leaves.
    net = getattr(nn, kind)(1, 2, dtype=minitorch.float64)
    weights = dict(net.named_parameters())
    names = list(weights)
    short = minitorch.randn(2, 1, 1, dtype=minitorch.float64, requires_grad=True)
    if kind != "GRU":  # its two biases are not interchangeable
        net.bias_ih_l0.requires_grad_(False)
    assert minitorch.autograd.gradgradcheck(call, (short, *weights.values()))


def test_outputs_may_be_overwritten() -> None:
    """What backward needs is not shared with what the user holds."""
    minitorch.manual_seed(5)
    net, x = nn.LSTM(2, 3), minitorch.randn(4, 2, 2)
    out, _ = net(x)
    (out * 2).sum().backward()
    expected = net.weight_hh_l0.grad.numpy().copy()
    net.zero_grad()
    out, (h, _) = net(x)
    h.detach().mul_(7.0)
    out.mul_(2.0).sum().backward()
    np.testing.assert_array_equal(net.weight_hh_l0.grad.numpy(), expected)


def test_an_input_that_is_overwritten_is_noticed() -> None:
    net, x = nn.GRU(2, 3), minitorch.ones(4, 2, 2)
    out, _ = net(x)
    x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_truncated_backpropagation_carries_the_state() -> None:
    """Parts with a carried state give the outputs of the whole, and gradients of their own part."""
    minitorch.manual_seed(6)
    net, x = nn.LSTM(2, 3, dtype=minitorch.float64), minitorch.randn(9, 2, 2).double()
    whole, _ = net(x)
    state, parts = None, []
    for start in (0, 3, 6):
        net.zero_grad()
        out, state = net(x[start : start + 3], state)
        out.sum().backward()
        parts.append(out.detach().numpy())
        state = tuple(s.detach() for s in state)
    np.testing.assert_allclose(np.concatenate(parts), whole.detach().numpy(), atol=1e-14)
    last = net.weight_hh_l0.grad.numpy().copy()
    # By hand: the history before step 6 is a constant.
    net.zero_grad()
    _, before = net(x[:6])
    net(x[6:], tuple(s.detach() for s in before))[0].sum().backward()
    np.testing.assert_allclose(last, net.weight_hh_l0.grad.numpy(), atol=1e-13)


def _peak_bytes(steps: int) -> int:
    """Peak of traced memory in one training step over `steps`."""
    net, x = nn.LSTM(16, 32), minitorch.zeros(steps, 8, 16)
    with recurrent_memory._lock:
        recurrent_memory._unused.clear()
        recurrent_memory._unused_bytes = 0
    tracemalloc.start()
    try:
        net(x)[0].sum().backward()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_linearly_with_time() -> None:
    _peak_bytes(8)
    short, long, longer = (_peak_bytes(steps) for steps in (128, 256, 512))
    assert (longer - long) / (long - short) == pytest.approx(2.0, rel=0.05)
    # Per row: gates 4, states 2, tanh of the cell, output; in backward 4 for the gates' gradients
    # and 1 for the cell's. A few more for gradients of the output, none per step and weight.
    per_row = (longer - long) / (256 * 8 * 32 * 4)
    assert 8 <= per_row <= 18


def test_memory_is_reused_once_its_last_view_is_gone() -> None:
    first = recurrent_memory.reused((300, 1000), np.float32)
    address, view = first.ctypes.data, first[5:, 3:]
    del first
    second = recurrent_memory.reused((300, 1000), np.float32)
    assert second.ctypes.data != address
    before = recurrent_memory.unused_bytes()
    del view
    assert recurrent_memory.unused_bytes() == before + 1_200_000
    third = recurrent_memory.reused((1000, 300), np.float32)
    assert third.ctypes.data == address
    assert third.flags.writeable


def test_the_pool_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent_memory, "POOL_BYTES", 3_000_000)
    blocks = [recurrent_memory.reused((n, 1000), np.float32) for n in (300, 301, 302, 303)]
    blocks.clear()
    assert 0 < recurrent_memory.unused_bytes() <= 3_000_000


def test_a_chain_of_equal_batches_is_one_buffer() -> None:
    for reverse in (False, True):
        schedule = Schedule([2, 2, 2], reverse)
        chain = Chain(schedule, np.full((2, 3), 5.0))
        for number, (rows, n) in enumerate(schedule.steps):
            np.testing.assert_array_equal(chain.start(rows, n), 5.0 + number)
            chain.after[rows] = 6.0 + number
            chain.finish(rows, n)
        np.testing.assert_array_equal(chain.final(schedule), 8.0)
        assert np.shares_memory(chain.before, chain.after)
