"""Masks of zoneout and its rivals: their statistics, their addresses, and what they do."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import minitorch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn.modules.rnn.masks import draw_mask
from minitorch.nn.parallel import DistributedDataParallel
from minitorch.nn.utils.rnn import pack_sequence
from minitorch.random.callers import CallCounter, recorded_calls, replayed_calls
from minitorch.utils.checkpoint import checkpoint


def _kept(net: Any, x: Any) -> np.ndarray:
    """Where units keep their value: (T, B, H). Every step's candidate differs from the state."""
    out, _ = net(x)
    values = np.concatenate([np.zeros_like(out.detach().numpy()[:1]), out.detach().numpy()])
    return values[1:] == values[:-1]


def _net(**options: Any) -> Any:
    minitorch.manual_seed(0)
    return nn.ZoneoutRNN(3, 50, **options)


INPUT = np.random.default_rng(0).standard_normal((40, 20, 3)).astype(np.float32)


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_masks_have_their_mean_and_are_fresh_everywhere(rate: float) -> None:
    mask = draw_mask(1, 2, (3, 4, 5), (100, 40, 50), rate)
    n = mask.size
    assert abs(mask.mean() - rate) <= 4 * np.sqrt(rate * (1 - rate) / n)
    # No two steps, samples or units agree more often than independent draws do.
    expected, spread = rate**2 + (1 - rate) ** 2, 5 / np.sqrt(n)
    for axis in range(3):
        other = np.roll(mask, 1, axis)
        assert abs((mask == other).mean() - expected) < spread
    kept = _kept(_net(zoneout=rate), minitorch.from_numpy(INPUT))
    assert abs(kept.mean() - rate) <= 4 * np.sqrt(rate * (1 - rate) / kept.size)


def test_an_address_is_all_there_is() -> None:
    mask = draw_mask(1, 2, (3, 4, 5), (6, 7), 0.5)
    np.testing.assert_array_equal(draw_mask(1, 2, (3, 4, 5), (42,), 0.5), mask.ravel())
    for seed, call, stream in ((2, 2, (3, 4, 5)), (1, 3, (3, 4, 5)), (1, 2, (3, 4, 6))):
        assert (draw_mask(seed, call, stream, (6, 7), 0.5) != mask).any()
    assert draw_mask(0, 0, (0,), (3,), 1.0).all()
    assert draw_mask(0, 0, (0,), (0, 3), 0.5).shape == (0, 3)


def test_layers_calls_and_states_have_masks_of_their_own() -> None:
    minitorch.manual_seed(0)
    net = nn.ZoneoutLSTM(3, 50, 2, bidirectional=True, zoneout_cell=0.5, zoneout_hidden=0.5)
    drawn = []
    net._draw = lambda *address: drawn.append(type(net)._draw(net, *address)) or drawn[-1]
    x = minitorch.from_numpy(INPUT)
    net(x)
    net(x)
    assert len(drawn) == 2 * 4 * 2
    assert len({mask.tobytes() for mask in drawn}) == len(drawn)
    assert net.mask_calls == 2
    net.eval()(x)
    assert net.mask_calls == 2


def test_the_default_generator_is_not_touched() -> None:
    net = nn.ZoneoutGRU(3, 4, zoneout=0.5, recurrent_dropout=0.5, output_dropout=0.5)
    cell = nn.ZoneoutLSTMCell(3, 4, zoneout_cell=0.5, zoneout_hidden=0.5)
    before = minitorch.get_rng_state().tolist()
    net(minitorch.ones(2, 1, 3))
    cell(minitorch.ones(1, 3))
    assert minitorch.get_rng_state().tolist() == before


def test_seeds_follow_from_the_weights_or_are_given() -> None:
    first, again = _net(zoneout=0.5), _net(zoneout=0.5)
    other = nn.ZoneoutRNN(3, 50, zoneout=0.5)
    assert first.mask_seed == again.mask_seed != other.mask_seed
    assert nn.ZoneoutRNNCell(3, 4, zoneout=0.5, mask_seed=7).mask_seed == 7


def _masks_of_training(net: Any, steps: int) -> list:
    x = minitorch.from_numpy(INPUT)
    return [_kept(net, x).tolist() for _ in range(steps)]


def test_a_resumed_run_draws_the_masks_of_an_unbroken_one() -> None:
    whole = _masks_of_training(_net(zoneout=0.5), 4)
    net = _net(zoneout=0.5)
    first = _masks_of_training(net, 2)
    file = io.BytesIO()
    minitorch.save(net.state_dict(), file)
    file.seek(0)
    resumed = _net(zoneout=0.5, mask_seed=99)
    resumed.load_state_dict(minitorch.load(file))
    assert first + _masks_of_training(resumed, 2) == whole


def _gradients(net: Any, run: Any) -> list:
    net.zero_grad()
    net.mask_calls = 0
    x = minitorch.from_numpy(INPUT).requires_grad_()
    (run(x)[0] ** 2).sum().backward()
    return [p.grad.tolist() for p in net.parameters()] + [net.mask_calls]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_layer_draws_its_masks_again(reentrant: bool) -> None:
    net = _net(zoneout=0.5)
    plain = _gradients(net, net)
    assert plain[-1] == 1
    assert plain == _gradients(net, lambda x: checkpoint(net, x, use_reentrant=reentrant))


def test_numbers_of_calls_are_replayed_in_order() -> None:
    counter, inner = CallCounter(5), CallCounter()
    with recorded_calls() as outer:
        assert counter.take() == 5
        with recorded_calls() as nested:
            assert inner.take() == 0
    assert (outer, nested) == ([5, 0], [0])
    with pytest.raises(KeyError), replayed_calls(outer):
        assert (counter.take(), inner.take()) == (5, 0)
        assert counter.take() == 6  # beyond what was recorded
        raise KeyError
    assert counter.take() == 7


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_data_parallel_ranks_draw_differently_and_stay_equal(world_size: int) -> None:
    def train(rank: int) -> tuple:
        net = _net(zoneout=0.5)
        x = minitorch.from_numpy(INPUT)
        kept = _kept(net, x)
        ddp = DistributedDataParallel(net)
        optimizer = minitorch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            (ddp(x)[0] ** 2).mean().backward()
            optimizer.step()
        return kept.tobytes(), [p.tolist() for p in net.parameters()], net.mask_calls

    results = dist.run_local(train, world_size)
    assert len({kept for kept, _, _ in results}) == world_size
    assert all(result[1:] == results[0][1:] for result in results)
    assert results[0][2] == 3


# -- named kinds of masks --------------------------------------------------------------------------


def test_a_shared_mask_is_one_for_cell_and_hidden_state() -> None:
    minitorch.manual_seed(0)
    for shared in (True, False):
        net = nn.ZoneoutLSTM(3, 50, zoneout_cell=0.5, zoneout_hidden=0.5, shared_mask=shared)
        cell = nn.ZoneoutLSTMCell(3, 50, True, 0.5, 0.5, shared_mask=shared)
        x = minitorch.from_numpy(INPUT)
        for h, c in (net(x[:1])[1], cell(x[0])):
            agree = (h == 0) == (c == 0)
            assert bool(agree.all()) is shared


def test_static_masks_stay_for_the_run_in_evaluation_and_on_all_ranks() -> None:
    x = minitorch.from_numpy(INPUT)

    def kept(rank: int = 0) -> np.ndarray:
        net = _net(zoneout=0.5, static_mask=True)
        masks = [_kept(net, x), _kept(net, x), _kept(net.eval(), x)]
        assert net.mask_calls == 0
        assert all((mask == masks[0]).all() for mask in masks)
        return masks[0]

    mask = kept()
    assert (mask == mask[:, :1]).all()  # one for all samples
    assert 0.4 < mask[:, 0].mean() < 0.6
    assert (mask[0] != mask[1]).any()  # but one per step
    for other in dist.run_local(kept, 2):
        assert (other == mask).all()
    shorter = _net(zoneout=0.5, static_mask=True)
    assert (_kept(shorter, x[:7]) == mask[:7]).all()


def test_stochastic_depth_keeps_all_units_of_a_step_together() -> None:
    minitorch.manual_seed(0)
    mask = _kept(_net(zoneout=0.4, stochastic_depth=True), minitorch.from_numpy(INPUT))
    assert (mask == mask[:, :, :1]).all()
    assert abs(mask[:, :, 0].mean() - 0.4) <= 4 * np.sqrt(0.24 / mask[:, :, 0].size)
    net = nn.ZoneoutLSTM(3, 5, zoneout_cell=0.5, zoneout_hidden=0.5, stochastic_depth=True)
    h, c = net(minitorch.from_numpy(INPUT)[:1])[1]
    assert ((h == 0) == (c == 0)).all()
    assert ((h == 0) == (h[:, :, :1] == 0)).all()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_dropout_scales_the_update(kind: str) -> None:
    """With rate 1 the update is gone; the mean over calls is the plain step's (a linear place)."""
    minitorch.manual_seed(0)
    net = getattr(nn, "Zoneout" + kind)(3, 50, recurrent_dropout=1.0)
    x = minitorch.from_numpy(INPUT)
    assert not net(x)[0].any()
    net.recurrent_dropout = 0.5
    state = net(x[:1])[1]
    dropped = (state[1] if kind == "LSTM" else state) == 0
    assert abs(float(dropped.float().mean()) - 0.5) <= 4 * np.sqrt(0.25 / dropped.numel())
    plain = getattr(nn, kind)(3, 50)
    plain.load_state_dict({k: v for k, v in net.state_dict().items() if "extra" not in k})
    assert net.eval()(x)[0].tolist() == plain(x)[0].tolist()
    first = plain(x[:1])[1]
    first = first[1] if kind == "LSTM" else first
    value = state[1] if kind == "LSTM" else state
    np.testing.assert_allclose(
        value.numpy(force=True)[~dropped.numpy()],
        2 * first.numpy(force=True)[~dropped.numpy()],
        rtol=1e-5,
    )


def test_variational_dropout_is_the_same_at_every_step() -> None:
    """Against a loop of plain cells that read the state through one mask."""
    minitorch.manual_seed(0)
    net = nn.ZoneoutGRU(3, 5, variational_dropout=0.4, dtype=minitorch.float64)
    x = minitorch.randn(6, 4, 3, dtype=minitorch.float64)
    drawn = []
    net._draw = lambda *address: drawn.append(type(net)._draw(net, *address)) or drawn[-1]
    out, _ = net(x)
    assert [mask.shape for mask in drawn] == [(4, 5)]
    factors = minitorch.from_numpy(~drawn[0] / 0.6)
    weights, h, rows = net.all_weights[0], minitorch.zeros(4, 5, dtype=minitorch.float64), []
    for step in x:
        from_x = step @ weights[0].T + weights[2]
        from_h = (h * factors) @ weights[1].T + weights[3]
        (x_r, x_z, x_n), (h_r, h_z, h_n) = from_x.chunk(3, 1), from_h.chunk(3, 1)
        n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
        h = n + (x_z + h_z).sigmoid() * (h - n)
        rows.append(h)
    np.testing.assert_allclose(
        out.numpy(force=True), minitorch.stack(rows).numpy(force=True), atol=1e-14
    )


def test_output_dropout_leaves_the_recurrence_alone() -> None:
    plain, net = _net(), _net(output_dropout=0.5)
    x = minitorch.from_numpy(INPUT)
    out, last = net(x)
    expected, state = plain(x)
    assert last.tolist() == state.tolist()
    zero = out == 0
    assert abs(float(zero.float().mean()) - 0.5) <= 4 * np.sqrt(0.25 / zero.numel())
    kept = ~zero.numpy()
    np.testing.assert_array_equal(out.numpy(force=True)[kept], 2 * expected.numpy(force=True)[kept])


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layer_norm_normalises_both_products(kind: str) -> None:
    """Gates do not depend on the scale of the weights; gains and biases are learnt."""
    minitorch.manual_seed(0)
    net = getattr(nn, "Zoneout" + kind)(3, 5, layer_norm=True, dtype=minitorch.float64)
    x = minitorch.randn(4, 2, 3, dtype=minitorch.float64)
    for weight in (net.weight_ih_l0, net.weight_hh_l0):
        weight.data.mul_(1e4)  # beside it, the norm's epsilon is nothing
    out, _ = net(x)
    for weight in (net.weight_ih_l0, net.weight_hh_l0):
        weight.data.mul_(1000.0)
    np.testing.assert_allclose(net(x)[0].numpy(force=True), out.numpy(force=True), rtol=1e-6)
    out.sum().backward()
    names = {name for name, p in net.named_parameters() if p.grad is not None and p.grad.any()}
    norms = {"norm_ih_l0", "norm_hh_l0"}
    assert names >= (norms | {"norm_c_l0", "norm_c_bias_l0"} if kind == "LSTM" else norms)
    net.reset_parameters()
    assert net.norm_ih_l0.tolist() == [1.0] * len(net.norm_ih_l0)
    assert net.weight_ih_l0.abs().max() <= 5**-0.5


def test_all_together_and_packed() -> None:
    minitorch.manual_seed(0)
    options = {
        "zoneout_cell": 0.3,
        "zoneout_hidden": 0.1,
        "recurrent_dropout": 0.2,
        "variational_dropout": 0.2,
        "output_dropout": 0.2,
    }
    for layer_norm in (False, True):
        net = nn.ZoneoutLSTM(
            3, 8, 2, bidirectional=True, proj_size=5, layer_norm=layer_norm, **options
        )
        parts = [minitorch.randn(n, 3) for n in (1, 7, 3)]
        out, (h, c) = net(pack_sequence(parts, enforce_sorted=False))
        assert (out.data.shape, h.shape, c.shape) == ((11, 10), (4, 3, 5), (4, 3, 8))
        out.data.sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def test_given_masks_follow_the_order_of_the_sequences() -> None:
    minitorch.manual_seed(0)
    net = nn.ZoneoutGRU(3, 4, dtype=minitorch.float64)
    lengths = (1, 5, 3)
    parts = [minitorch.randn(n, 3, dtype=minitorch.float64) for n in lengths]
    mask = np.random.default_rng(0).random((5, 3, 4)) < 0.5
    out, last = net(pack_sequence(parts, enforce_sorted=False), masks=[mask])
    for number, part in enumerate(parts):
        _, alone = net(part, masks=[mask[: len(part), number]])
        np.testing.assert_allclose(
            last[:, number].numpy(force=True), alone.numpy(force=True), atol=1e-14
        )


def test_masks_that_are_not_given_are_drawn() -> None:
    net, x = _net(zoneout=0.5), minitorch.from_numpy(INPUT)
    expected = _kept(net, x)
    net.mask_calls = 0
    out, _ = net(x, masks=[None])
    out = out.numpy(force=True)
    np.testing.assert_array_equal(out[1:] == out[:-1], expected[1:])
    lstm = nn.ZoneoutLSTM(3, 50, zoneout_cell=0.5, zoneout_hidden=0.5)
    h, c = lstm(x[:1], masks=[(np.ones((1, 20, 50)), None)])[1]
    assert not c.any()
    assert 0.4 < float((h == 0).float().mean()) < 0.6


@pytest.mark.parametrize("name", nn.REGULARIZERS)
def test_options_of_a_regularizer(name: str) -> None:
    net = nn.ZoneoutLSTM(3, 4, **nn.regularizer_options(name, 0.5, 0.05))
    rates = (net.output_dropout, net.recurrent_dropout, net.zoneout_cell, net.zoneout_hidden)
    expected = {
        "none": (0, 0, 0, 0),
        "dropout": (0.5, 0, 0, 0),
        "recurrent-dropout": (0, 0.5, 0, 0),
        "zoneout": (0, 0, 0.5, 0.05),
    }
    assert rates == expected[name]
    with pytest.raises(ValueError, match="unknown regularizer 'x'; there are: none, dropout"):
        nn.regularizer_options("x")
