"""Zoneout's right values: the recorded references, the limits 0 and 1, the mean over masks.

``zoneout_rnn.npz`` and ``zoneout_lstm.npz`` were computed from the paper's equations by two
independent implementations that agree to 1e-15; `train` has the given masks, `eval` their means,
`none` no zoneout, `shared` one mask for cell and hidden state, `perseq` one mask for all steps.
The loss is ``sum(wy * h)``, for the LSTM plus half the sum of the last cell.
"""

from __future__ import annotations

import copy
import io
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch
from minitorch import nn

GOLDEN = Path(__file__).parents[1] / "golden"
RNN, LSTM = (dict(np.load(GOLDEN / f"zoneout_{kind}.npz")) for kind in ("rnn", "lstm"))
LEAVES = {"x": "x", "h0": "h0", "c0": "c0"}
CASES = ("train", "eval", "none", "shared", "perseq")


def _tensor(array: np.ndarray) -> Any:
    return minitorch.from_numpy(array.copy())


def _loaded(module: Any, golden: dict[str, np.ndarray], suffix: str) -> Any:
    names = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    module.load_state_dict(
        {long + suffix: _tensor(golden[f"p_{short}"]) for short, long in names.items()}
    )
    return module


def _masks(golden: dict[str, np.ndarray], case: str) -> tuple[np.ndarray, np.ndarray]:
    """(d_cell, d_hidden) of a case; the RNN has the latter only."""
    hidden = golden["dh"]
    cell = golden.get("dc", hidden)
    if case == "shared":
        return hidden, hidden
    if case == "perseq":
        return np.broadcast_to(cell[:1], cell.shape), np.broadcast_to(hidden[:1], hidden.shape)
    return cell, hidden


def _compare(golden: dict, case: str, module: Any, leaves: dict, out: Any, last: Any) -> None:
    loss = (out * _tensor(golden["wy"])).sum()
    if f"{case}_c" in golden:
        cell = last[1].reshape(golden["c0"].shape)
        np.testing.assert_allclose(cell.detach().numpy(), golden[f"{case}_c"][-1], atol=1e-12)
        loss = loss + 0.5 * cell.sum()
    loss.backward()
    assert loss.item() == pytest.approx(float(golden[f"{case}_loss"]), abs=1e-12)
    np.testing.assert_allclose(out.detach().numpy(), golden[f"{case}_h"], rtol=0, atol=1e-12)
    short = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias_ih": "b_ih", "bias_hh": "b_hh"}
    found = {short[name.removesuffix("_l0")]: p.grad for name, p in module.named_parameters()}
    for name, grad in (found | {n: leaf.grad for n, leaf in leaves.items()}).items():
        np.testing.assert_allclose(
            grad.numpy(), golden[f"{case}_g_{name}"], rtol=1e-12, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_layers_have_the_recorded_values(kind: str, case: str) -> None:
    golden = LSTM if kind == "LSTM" else RNN
    used = {n: _tensor(golden[n]).requires_grad_() for n in LEAVES if n in golden}
    hidden, cell = (0.0, 0.0) if case == "none" else (golden["zh"].item(), None)
    rates = {"zoneout": hidden}
    if kind == "LSTM":
        cell = golden["zc"].item() if cell is None else cell
        rates = {"zoneout_cell": cell, "zoneout_hidden": hidden}
    size = golden["h0"].shape[1]
    net = getattr(nn, "Zoneout" + kind)(4, size, dtype=minitorch.float64, **rates)
    net = _loaded(net, golden, "_l0").train(case != "eval")
    masks = None
    if case not in ("none", "eval"):
        pair = _masks(golden, case)
        masks = [pair if kind == "LSTM" else pair[1]]
    state = tuple(used[n].unsqueeze(0) for n in ("h0", "c0") if n in used)
    out, last = net(used["x"], state if kind == "LSTM" else state[0], masks)
    _compare(golden, case, net, used, out, last)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_cells_have_the_recorded_values(kind: str, case: str) -> None:
    golden = LSTM if kind == "LSTM" else RNN
    used = {n: _tensor(golden[n]).requires_grad_() for n in LEAVES if n in golden}
    zero = case == "none"
    rates = {"zoneout": 0.0 if zero else golden["zh"].item()}
    if kind == "LSTM":
        rates = {"zoneout_hidden": rates["zoneout"]}
        rates["zoneout_cell"] = 0.0 if zero else golden["zc"].item()
    size = golden["h0"].shape[1]
    cell = getattr(nn, f"Zoneout{kind}Cell")(4, size, dtype=minitorch.float64, **rates)
    cell = _loaded(cell, golden, "").train(case != "eval")
    d_cell, d_hidden = _masks(golden, case)
    state: Any = (used["h0"], used["c0"]) if kind == "LSTM" else used["h0"]
    outputs = []
    for t, x in enumerate(used["x"]):
        given = () if case in ("none", "eval") else (d_hidden[t],)
        if given and kind == "LSTM":
            given = ((d_cell[t], d_hidden[t]),)
        state = cell(x, state, *given)
        outputs.append(state[0] if kind == "LSTM" else state)
    _compare(golden, case, cell, used, minitorch.stack(outputs), state)


def _network(kind: str, **options: Any) -> Any:
    minitorch.manual_seed(0)
    return getattr(nn, kind)(3, 4, 2, bidirectional=True, **options)


def _rates(kind: str, rate: float) -> dict[str, float]:
    if kind == "LSTM":
        return {"zoneout_cell": rate, "zoneout_hidden": rate}
    return {"zoneout": rate}


def _both(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_rate_zero_is_the_plain_network_bit_for_bit(kind: str, training: bool) -> None:
    plain, zoned = _network(kind), _network("Zoneout" + kind)
    zoned.train(training)
    x = minitorch.randn(5, 2, 3)
    for mine, other in zip(
        (zoned(x)[0], *_both(zoned(x)[1])), (plain(x)[0], *_both(plain(x)[1])), strict=True
    ):
        assert mine.tolist() == other.tolist()
    assert zoned.mask_calls == 0
    cell, zoned_cell = (
        getattr(nn, f"{prefix}{kind}Cell")(3, 4, dtype=minitorch.float64)
        for prefix in ("", "Zoneout")
    )
    zoned_cell.load_state_dict(cell.state_dict())
    zoned_cell.train(training)
    step = minitorch.randn(2, 3, dtype=minitorch.float64)
    for mine, other in zip(_both(zoned_cell(step)), _both(cell(step)), strict=True):
        assert mine.tolist() == other.tolist()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_rate_one_keeps_the_state_and_its_gradient(kind: str, training: bool) -> None:
    net = getattr(nn, "Zoneout" + kind)(3, 4, **_rates(kind, 1.0)).train(training)
    cell = getattr(nn, f"Zoneout{kind}Cell")(3, 4, **_rates(kind, 1.0)).train(training)
    x = minitorch.randn(6, 2, 3, requires_grad=True)
    start = [minitorch.randn(2, 4, requires_grad=True) for _ in range(2 if kind == "LSTM" else 1)]

    def layer() -> tuple:
        state = tuple(s.unsqueeze(0) for s in start)
        last = _both(net(x, state if kind == "LSTM" else state[0])[1])
        return tuple(s[0] for s in last)

    def loop() -> tuple:
        state: Any = tuple(start) if kind == "LSTM" else start[0]
        for step in x:
            state = cell(step, state)
        return _both(state)

    for run in (layer, loop):
        for number, last in enumerate(run()):
            assert last.tolist() == start[number].tolist()
            weights = minitorch.randn(2, 4)
            to_start, to_x = minitorch.autograd.grad(
                (last * weights).sum(), [start[number], x], retain_graph=True
            )
            assert to_start.tolist() == weights.tolist()  # the identity
            assert not to_x.any()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_kept_units_keep_infinity_and_sign(kind: str) -> None:
    """Selecting, not multiplying: 0 * inf would be nan, and -0.0 + 0.0 is 0.0."""
    values = [np.inf, -0.0, np.nan, 3.0]
    state: Any = minitorch.tensor([values])
    cell = getattr(nn, f"Zoneout{kind}Cell")(3, 4)
    net = getattr(nn, f"Zoneout{kind}")(3, 4)
    x, ones = minitorch.zeros(1, 3), np.ones((1, 4))
    if kind == "LSTM":
        found = [*cell(x, (state, state), (ones, ones))]
        found += [*net(x[None], (state[None], state[None]), [(ones[None], ones[None])])[1]]
    else:
        found = [cell(x, state, ones), net(x[None], state[None], [ones[None]])[1]]
    for value in found:
        bits = value.detach().numpy().reshape(-1).view(np.int32)
        np.testing.assert_array_equal(bits, np.array(values, np.float32).view(np.int32))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_evaluation_is_the_mean_over_all_masks_of_a_step(kind: str) -> None:
    minitorch.manual_seed(1)
    size, rates = 3, (0.3, 0.6)
    options = {"zoneout": 0.3} if kind != "LSTM" else {"zoneout_hidden": 0.3, "zoneout_cell": 0.6}
    cell = getattr(nn, f"Zoneout{kind}Cell")(2, size, dtype=minitorch.float64, **options)
    x = minitorch.randn(1, 2, dtype=minitorch.float64)
    states = [minitorch.randn(1, size, dtype=minitorch.float64) for _ in range(2)]
    state: Any = tuple(states) if kind == "LSTM" else states[0]
    masks = [np.array(bits, float) for bits in itertools.product((0, 1), repeat=size)]

    def chance(mask: np.ndarray, rate: float) -> float:
        return float(np.prod(np.where(mask == 1, rate, 1 - rate)))

    mean = [0.0, 0.0]
    for hidden, other in itertools.product(masks, masks):
        weight = chance(hidden, rates[0]) * chance(other, rates[1])
        found = cell(x, state, (other, hidden) if kind == "LSTM" else hidden)
        for number, value in enumerate(_both(found)):
            mean[number] = mean[number] + weight * value.detach().numpy()
    for value, expected in zip(_both(cell.eval()(x, state)), mean, strict=False):
        np.testing.assert_allclose(value.detach().numpy(), expected, rtol=0, atol=1e-14)


def test_the_output_is_the_new_hidden_state() -> None:
    net = nn.ZoneoutLSTM(3, 4, zoneout_cell=0.5, zoneout_hidden=0.5)
    for mode in (True, False):
        out, (h, _) = net.train(mode)(minitorch.randn(5, 2, 3))
        assert out[-1].tolist() == h[0].tolist()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_finite_differences_through_given_masks(kind: str) -> None:
    minitorch.manual_seed(2)
    net = getattr(nn, "Zoneout" + kind)(2, 2, dtype=minitorch.float64, **_rates(kind, 0.4))
    mask = np.random.default_rng(0).random((3, 2, 2)) < 0.5
    names = list(dict(net.named_parameters()))
    state = [minitorch.randn(1, 2, 2, dtype=minitorch.float64, requires_grad=True)]
    state = state * 2 if kind == "LSTM" else state
    x = minitorch.randn(3, 2, 2, dtype=minitorch.float64, requires_grad=True)

    def call(x: Any, h: Any, *values: Any) -> Any:
        net._parameters.update(zip(names, values, strict=True))
        return net(x, (h, h) if kind == "LSTM" else h, [mask])[0]

    leaves = (x, state[0], *net.parameters())
    assert minitorch.autograd.gradcheck(call, leaves)
    assert minitorch.autograd.gradgradcheck(lambda x, h: call(x, h, *leaves[2:]), leaves[:2])
    net.eval()
    assert minitorch.autograd.gradcheck(lambda *values: net(values[0], masks=None)[0], (x,))


def test_masks_of_one_sequence_may_be_lists() -> None:
    net, x = nn.ZoneoutLSTM(3, 2), minitorch.ones(3, 3)
    mask = [[1, 0], [0, 1], [1, 1]]
    batched, _ = net(x[:, None], masks=[np.array(mask)[:, None]])
    assert net(x, masks=[(mask, mask)])[0].tolist() == batched[:, 0].tolist()


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), True])
def test_rates_that_are_no_probabilities_raise(rate: float) -> None:
    with pytest.raises(ValueError, match="zoneout_cell has to be a probability between 0 and 1"):
        nn.ZoneoutLSTMCell(3, 4, zoneout_cell=rate)
    for name in ("zoneout_hidden", "recurrent_dropout", "variational_dropout", "output_dropout"):
        with pytest.raises(ValueError, match=f"{name} has to be a probability"):
            nn.ZoneoutLSTM(3, 4, **{name: rate})
    for kind in ("ZoneoutGRU", "ZoneoutRNN", "ZoneoutGRUCell", "ZoneoutRNNCell"):
        with pytest.raises(ValueError, match="zoneout has to be a probability"):
            getattr(nn, kind)(3, 4, zoneout=rate)


def test_masks_that_do_not_fit_raise() -> None:
    net, x = nn.ZoneoutLSTM(3, 4, 2), minitorch.zeros(5, 2, 3)
    with pytest.raises(ValueError, match="one entry per layer and direction, 2 here, but it has 1"):
        net(x, masks=[np.ones((5, 2, 4))])
    with pytest.raises(ValueError, match=r"masks\[0\] of shape \(4, 2, 4\) does not broadcast"):
        net(x, masks=[np.ones((4, 2, 4)), None])
    with pytest.raises(ValueError, match="1 where the old value is kept and 0 elsewhere"):
        net(x, masks=[np.full((5, 2, 4), 0.5), None])
    pair = (np.ones((5, 2, 4)),) * 2
    with pytest.raises(ValueError, match=r"masks\[0\] must be a pair .*3 of them"):
        net(x, masks=[(*pair, pair[0]), None])
    with pytest.raises(ValueError, match=r"must be a pair .* one array"):
        nn.ZoneoutLSTMCell(3, 4)(x[0], masks=np.ones((2, 4)))  # rows are no pair
    with pytest.raises(ValueError, match="needs one rate"):
        nn.ZoneoutLSTM(3, 4, zoneout_cell=0.5, shared_mask=True)
    with pytest.raises(ValueError, match="exclude each other"):
        nn.ZoneoutGRU(3, 4, zoneout=0.5, static_mask=True, stochastic_depth=True)
    with pytest.raises(TypeError, match="zoneout_gate"):
        nn.ZoneoutLSTM(3, 4, zoneout_gate=0.5)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_a_state_travels_to_and_from_files_copies_and_pytorch(rate: float) -> None:
    net = _network("ZoneoutLSTM", zoneout_cell=rate, zoneout_hidden=rate)
    x = minitorch.randn(5, 2, 3)
    net(x)
    file = io.BytesIO()
    minitorch.save(net.state_dict(), file)
    file.seek(0)
    twin = _network("ZoneoutLSTM", zoneout_cell=rate, zoneout_hidden=rate, mask_seed=5)
    twin.load_state_dict(minitorch.load(file))
    others = [twin, copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    expected = net(x)[0].tolist()
    for other in others:
        assert other(x)[0].tolist() == expected
    # A network without zoneout, PyTorch's for one, has no masks to tell about.
    plain = _network("LSTM")
    plain.load_state_dict({k: v for k, v in net.state_dict().items() if "extra" not in k})
    net.load_state_dict(plain.state_dict())


def test_text() -> None:
    net = nn.ZoneoutLSTM(3, 4, zoneout_cell=0.5, shared_mask=False, layer_norm=True)
    assert repr(net) == "ZoneoutLSTM(3, 4, zoneout_cell=0.5, layer_norm=True)"
    assert repr(nn.ZoneoutGRUCell(3, 4, zoneout=0.1)) == "ZoneoutGRUCell(3, 4, zoneout=0.1)"
