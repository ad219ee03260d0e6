"""Batches of different lengths: packing is undone exactly, and equals running one by one."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch
from minitorch import nn
from minitorch.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)


def _sequences(*lengths: int, width: int = 3) -> list:
    rng = np.random.default_rng(sum(lengths))
    return [minitorch.from_numpy(rng.standard_normal((n, width))) for n in lengths]


def test_layout_of_a_packed_batch() -> None:
    a, b, c = (minitorch.tensor(v) for v in ([1, 2, 3], [4, 5], [6]))
    packed = pack_sequence([a, b, c])
    assert packed.data.tolist() == [1, 4, 6, 2, 5, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices is packed.unsorted_indices is None
    shuffled = pack_sequence([c, a, b], enforce_sorted=False)
    assert shuffled.data.tolist() == [1, 4, 6, 2, 5, 3]
    assert shuffled.sorted_indices.tolist() == [1, 2, 0]
    assert shuffled.unsorted_indices.tolist() == [2, 0, 1]
    assert [part.tolist() for part in unpack_sequence(shuffled)] == [[6], [1, 2, 3], [4, 5]]


@pytest.mark.parametrize("lengths", [(1,), (3, 3), (5, 2, 2, 1), (2, 7, 1, 7, 3)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_is_undone_exactly(lengths: tuple[int, ...], batch_first: bool) -> None:
    parts = _sequences(*lengths)
    padded = pad_sequence(parts, batch_first, padding_value=-7.0)
    assert (padded == -7.0).sum() == 3 * (len(lengths) * max(lengths) - sum(lengths))
    packed = pack_padded_sequence(padded, list(lengths), batch_first, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 3)
    back, found = pad_packed_sequence(packed, batch_first, padding_value=-7.0)
    assert back.tolist() == padded.tolist()
    assert found.tolist() == list(lengths)
    for part, other in zip(parts, unpad_sequence(back, found, batch_first), strict=True):
        assert part.tolist() == other.tolist()
    longer, _ = pad_packed_sequence(packed, batch_first, total_length=9)
    assert longer.shape[1 if batch_first else 0] == 9


def test_padding_on_the_left() -> None:
    a, b = minitorch.tensor([1, 2]), minitorch.tensor([3])
    assert pad_sequence([a, b], True, padding_side="left").tolist() == [[1, 2], [0, 3]]


def test_gradients_pass_through_packing() -> None:
    block = minitorch.ones(3, 2, requires_grad=True)
    packed = pack_padded_sequence(block, [1, 3], enforce_sorted=False)
    (pad_packed_sequence(packed)[0] * minitorch.tensor([[2.0, 3.0]])).sum().backward()
    assert block.grad.tolist() == [[2, 3], [0, 3], [0, 3]]


def test_conversions_and_the_old_spelling() -> None:
    packed = pack_sequence(_sequences(2, 1))
    assert packed.float().data.dtype == minitorch.float32
    assert packed.double() is packed.to(minitorch.float64) is packed.cpu() is packed
    assert packed.half().batch_sizes is packed.batch_sizes
    assert packed.long().data.dtype == minitorch.int64
    assert not packed.is_cuda
    assert not packed.is_pinned()
    old = PackedSequence((packed.data, packed.batch_sizes))
    assert old.batch_sizes is packed.batch_sizes
    with pytest.raises(AssertionError, match="list or tuple of length 2"):
        PackedSequence(packed.data)
    order = minitorch.tensor([2, 0, 1])
    assert order[invert_permutation(order)].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU", "ZoneoutLSTM"])
def test_a_packed_batch_equals_its_sequences_one_by_one(kind: str) -> None:
    minitorch.manual_seed(3)
    net = getattr(nn, kind)(3, 4, 2, bidirectional=True, dtype=minitorch.float64)
    if kind == "ZoneoutLSTM":
        net.zoneout_cell, net.zoneout_hidden = 0.4, 0.2
        net.eval()
    parts = [part.requires_grad_() for part in _sequences(2, 5, 1, 5)]
    state = minitorch.randn(4, 4, 4, dtype=minitorch.float64, requires_grad=True)
    pair = "LSTM" in kind
    out, last = net(pack_sequence(parts, enforce_sorted=False), (state, state) if pair else state)
    loss = sum((part * part).sum() for part in unpack_sequence(out))
    loss = loss + (last[0] if pair else last).sum()
    leaves = [*parts, state, *net.parameters()]
    packed_grads = minitorch.autograd.grad(loss, leaves)
    loss = 0.0
    for number, part in enumerate(parts):
        one = state[:, number]
        alone, after = net(part, (one, one) if pair else one)
        np.testing.assert_allclose(
            alone.detach().numpy(), unpack_sequence(out)[number].detach().numpy(), atol=1e-14
        )
        loss = loss + (alone * alone).sum() + (after[0] if pair else after).sum()
    for mine, other in zip(packed_grads, minitorch.autograd.grad(loss, leaves), strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-11, atol=1e-12)


def test_lengths_beyond_the_block_are_refused() -> None:
    with pytest.raises(RuntimeError, match="at most the padded length 3, but got 4"):
        pack_padded_sequence(minitorch.ones(3, 1), [4])
