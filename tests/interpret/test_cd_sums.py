"""Relevant + irrelevant = logits, for every kind of layer; full, empty and complementary masks."""

from __future__ import annotations

import numpy as np
import pytest
from interpret.acd_models import TextModel
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret, nn
from minitorch.nn import functional as F


def _tensor(*shape, seed=0, dtype=np.float64):
    return minitorch.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def _mask(*shape, seed=1):
    return np.random.default_rng(seed).integers(0, 2, shape)


def _check(model, x, mask, dtype=None):
    """The sum, and that a full mask leaves nothing irrelevant and an empty one nothing relevant."""
    minitorch.manual_seed(3)
    model = model() if isinstance(model, type) else model
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    model = (model.double() if dtype is None else model.to(dtype)).eval()
    logits = model(x).detach().numpy()
    relevant, irrelevant = interpret.cd(model, x, mask)
    assert relevant.dtype == irrelevant.dtype == logits.dtype
    tolerance = 1e-12 if logits.dtype == np.float64 else 1e-5
    assert_allclose(relevant + irrelevant, logits, rtol=tolerance, atol=tolerance)
    full, rest = interpret.cd(model, x, np.ones_like(mask))
    assert_allclose(rest, 0, atol=tolerance)
    assert_allclose(full, logits, rtol=tolerance, atol=tolerance)
    nothing, whole = interpret.cd(model, x, np.zeros_like(mask))
    assert_allclose(nothing, 0, atol=tolerance)
    assert_allclose(whole, logits, rtol=tolerance, atol=tolerance)
    return relevant, irrelevant


ACTIVATIONS = [
    "ReLU",
    "LeakyReLU",
    "Tanh",
    "Sigmoid",
    "GELU",
    "Softplus",
    "ELU",
    "SELU",
    "CELU",
    "SiLU",
    "Mish",
    "Hardtanh",
    "ReLU6",
    "Hardswish",
    "Hardsigmoid",
    "LogSigmoid",
    "PReLU",
    "Softsign",
    "Tanhshrink",
    "Identity",
]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    model = nn.Sequential(nn.Linear(6, 5), getattr(nn, name)(), nn.Linear(5, 3))
    _check(model, _tensor(4, 6), _mask(4, 6))


def test_the_tanh_approximation_of_gelu():
    model = nn.Sequential(nn.Linear(6, 5), nn.GELU("tanh"), nn.Linear(5, 3))
    _check(model, _tensor(4, 6), _mask(4, 6))


LAYERS = {
    "conv1d": lambda: nn.Sequential(
        nn.Conv1d(3, 4, 3, padding="same"),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.AvgPool1d(2),
        nn.AdaptiveAvgPool1d(2),
        nn.Flatten(),
        nn.Linear(8, 3),
    ),
    "conv2d": lambda: nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, groups=2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    ),
    "unequal_windows": lambda: nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.AdaptiveAvgPool2d((3, 7)), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    ),
    "transposed": lambda: nn.Sequential(
        nn.ConvTranspose2d(2, 3, 3, stride=2), nn.AvgPool2d(4, padding=1), nn.Flatten()
    ),
    "group_norm": lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten()),
    "instance_norm": lambda: nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.Flatten()
    ),
}


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers_of_signals_and_images(name):
    shape = (2, 3, 12) if name == "conv1d" else (2, 2, 10, 10)
    _check(LAYERS[name](), _tensor(*shape), _mask(shape[0], 1, *shape[2:]))


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.LayerNorm, nn.RMSNorm])
def test_norms_of_features(norm):
    model = nn.Sequential(nn.Linear(6, 5), norm(5), nn.Linear(5, 3))
    _check(model, _tensor(4, 6), _mask(4, 6))


def test_batch_norm_with_the_statistics_of_the_batch():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 5), nn.Linear(5, 3)

        def forward(self, x):
            return self.last(F.batch_norm(self.first(x), None, None, training=True))

    _check(Model(), _tensor(4, 6), _mask(4, 6))


class Functional(nn.Module):
    """Functional calls, operators, views and writes in place, in no order of registration."""

    def __init__(self):
        super().__init__()
        self.last, self.first, self.middle = nn.Linear(12, 3), nn.Linear(8, 6), nn.Linear(6, 6)

    def forward(self, x):
        h = F.relu(self.first(x))
        h = h + self.middle(h).tanh() * 2 - 1
        h = 1 - (0.5 - h) / 2
        g = minitorch.cat([h, h * h], 1).reshape(x.shape[0], 3, 4)
        g = g.permute(0, 2, 1).transpose(1, 2).flatten(1)
        first, second = g.chunk(2, 1)
        g = minitorch.stack([first, second], 1).flatten(1)
        y = g.clone()
        y += 1
        y[:, 0] = h[:, 1]
        y.relu_()
        y = minitorch.where(g > 0, y, y * 0.5)
        return self.last(y[:, [3, 1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11]])


@pytest.mark.parametrize("dtype", [None, minitorch.float32])
def test_functional_calls(dtype):
    kind = np.float64 if dtype is None else np.float32
    _check(Functional(), _tensor(5, 8, dtype=kind), _mask(5, 8), dtype)


EXTREMES = {
    "amax": lambda h: h.amax(1),
    "amin": lambda h: h.amin((1, 2), keepdim=True).flatten(1).expand(2, 4),
    "max of all": lambda h: h.max() + h.sum(1),
    "min along": lambda h: h.min(1)[0],
    "maximum": lambda h: minitorch.maximum(h[:, 0], h[:, 1]),
    "minimum": lambda h: minitorch.minimum(h[:, 0], h[:1, 1]),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes(name):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.last(EXTREMES[name](self.first(x)))

    _check(Model(), _tensor(2, 5, 6), _mask(2, 5, 6))


def test_what_an_extreme_is_made_of():
    """Both parts are read at the winner; two winners share."""
    x = minitorch.tensor([[3.0, 1.0, 3.0, 2.0]])
    relevant, irrelevant = interpret.cd(lambda x: x.amax(1, keepdim=True), x, [1, 1, 0, 1])
    assert (relevant.item(), irrelevant.item()) == (1.5, 1.5)
    relevant, irrelevant = interpret.cd(
        lambda x: minitorch.maximum(x[:, :1], x[:, 1:2]), x, [0, 1, 1, 1]
    )
    assert (relevant.item(), irrelevant.item()) == (0, 3)
    floor = minitorch.tensor([2.5])
    relevant, irrelevant = interpret.cd(lambda x: minitorch.maximum(floor, x), x, [1, 1, 0, 1])
    assert relevant.tolist() == [[3, 0, 0, 0]]
    assert irrelevant.tolist() == [[0, 2.5, 3, 2.5]], "the constant is irrelevant"


class Attention(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.embed, self.attend = nn.Embedding(9, 8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.last, self.weights = nn.LayerNorm(8), nn.Linear(8, 2), weights

    def forward(self, ids):
        h = self.embed(ids)
        attended, _ = self.attend(h, h, h, need_weights=self.weights)
        return self.last(self.norm(h + attended).mean(1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(9, 8), nn.Linear(8, 2)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)

    def forward(self, ids):
        return self.last(self.layer(self.embed(ids))[:, 0])


@pytest.mark.parametrize(
    "model",
    [lambda: Attention(True), lambda: Attention(False), Encoder],
    ids=["mha", "sdpa", "enc"],
)
def test_attention(model):
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 9, (3, 7)))
    _check(model(), ids, _mask(3, 7))


RATES = {
    "ZoneoutLSTM": {"zoneout_cell": 0.5, "zoneout_hidden": 0.25},
    "ZoneoutGRU": {"zoneout": 0.4},
    "ZoneoutRNN": {"zoneout": 0.4},
}
OPTIONS = [{}, {"num_layers": 2}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True}]
RECURRENT = ["LSTM", "GRU", "RNN", "ZoneoutLSTM", "ZoneoutGRU", "ZoneoutRNN"]


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "deep", "both", "deep_both"])
def test_recurrent_layers(name, options):
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 3)))
    _check(TextModel(getattr(nn, name), **options, **RATES.get(name, {})), ids, _mask(6, 3))


def test_recurrent_layers_in_float32_without_biases_and_with_relu():
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 3)))
    _check(TextModel(nn.LSTM, bias=False), ids, _mask(6, 3), minitorch.float32)
    _check(TextModel(nn.RNN, nonlinearity="relu"), ids, _mask(6, 3))


class Steps(nn.Module):
    """A loop over a cell."""

    def __init__(self, cell):
        super().__init__()
        self.embed, self.cell, self.last = nn.Embedding(12, 5), cell, nn.Linear(6, 2)

    def forward(self, ids):
        state = None
        for word in ids:
            state = self.cell(self.embed(word), state)
        return self.last(state[0] if isinstance(state, tuple) else state)


@pytest.mark.parametrize("name", RECURRENT)
def test_cells(name):
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 3)))
    rates = RATES.get(name, {})
    layer = TextModel(getattr(nn, name), **rates)
    cell = Steps(getattr(nn, f"{name}Cell")(5, 6, **rates))
    _check(layer, ids, _mask(6, 3))
    weights = layer.lstm.state_dict()
    weights = {key[:-3]: value for key, value in weights.items() if key.endswith("_l0")}
    cell.double().cell.load_state_dict(weights, strict=False)
    cell.embed, cell.last = layer.embed, layer.hidden_to_label
    assert_allclose(cell.eval()(ids).detach().numpy(), layer(ids).detach().numpy(), rtol=1e-12)
    for ours, theirs in zip(
        interpret.cd(cell, ids, _mask(6, 3)), interpret.cd(layer, ids, _mask(6, 3)), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_sequences_of_different_lengths():
    """Each packed sequence has the parts that it has alone."""
    from minitorch.nn.utils.rnn import pack_sequence

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.last = nn.LSTM(4, 6, 2, bidirectional=True), nn.Linear(12, 2)

        def forward(self, *sequences):
            _, (h, _) = self.lstm(pack_sequence(list(sequences)))
            return self.last(minitorch.cat([h[-2], h[-1]], 1))

    minitorch.manual_seed(0)
    model = Packed().double()
    sequences = tuple(_tensor(n, 4, seed=n) for n in (5, 3, 1))
    masks = tuple(_mask(n, 1, seed=n) for n in (5, 3, 1))
    together = interpret.cd(model, sequences, masks)
    for number, (sequence, mask) in enumerate(zip(sequences, masks, strict=True)):
        for part, alone in zip(together, interpret.cd(model, sequence, mask), strict=True):
            assert_allclose(part[number], alone[0], rtol=1e-12, atol=1e-12)


def test_ids_and_values_in_another_order():
    """Flipped ids, as a hand-made second direction has them; sorted and rolled values."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.text, self.last = TextModel(), nn.Linear(2, 2)

        def forward(self, ids):
            scores = self.text(ids.flip(0).roll(1, 0)) + self.text(ids)
            return self.last(scores.sort(1).values.cumsum(1)) + scores.max(1, keepdim=True).values

    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 3)))
    _check(Model(), ids, _mask(6, 3))


# -- laws ----------------------------------------------------------------------------------------


def test_a_batch_is_its_samples():
    model = LAYERS["conv2d"]().double().eval()
    x, mask = _tensor(3, 2, 10, 10), _mask(3, 1, 10, 10)
    together = interpret.cd(model, x, mask)
    for number in range(3):
        alone = interpret.cd(model, x[number : number + 1], mask[number])
        for part, one in zip(together, alone, strict=True):
            assert_allclose(part[number], one[0], rtol=1e-12, atol=1e-12)


def test_many_masks_are_one_at_a_time():
    model = TextModel(nn.LSTM, bidirectional=True).double()
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 3)))
    masks = _mask(5, 6, 3)
    masks[1], masks[3] = 0, 1
    many = interpret.cd(model, ids, masks)
    for number, mask in enumerate(masks):
        for part, one in zip(many, interpret.cd(model, ids, mask), strict=True):
            assert_allclose(part[number], one, rtol=1e-12, atol=1e-13)


def test_linear_networks_are_additive():
    """Without biases and kinks, the parts of disjoint masks add up."""
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3, bias=False), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(48, 3, bias=False)
    ).double()
    x = _tensor(1, 2, 10, 10)
    first = _mask(10, 10)
    second = _mask(10, 10, seed=5) * (1 - first)
    parts = [interpret.cd(model, x, mask)[0] for mask in (first, second, first + second)]
    assert_allclose(parts[0] + parts[1], parts[2], rtol=1e-12, atol=1e-12)
    assert_allclose(parts[2], model(x * minitorch.tensor(first + second)).detach().numpy())


def test_the_complement_of_a_mask():
    """Symmetric for linear layers and pooling; not for the one-sided ReLU, nor for products of
    gates, whose mixed terms are always irrelevant."""
    x, mask = _tensor(1, 2, 10, 10), _mask(10, 10)
    pooled = nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(48, 3))
    for symmetric in (True, False):
        model = pooled if symmetric else nn.Sequential(*pooled[:1], nn.ReLU(), *pooled[1:])
        model.double()
        relevant, irrelevant = interpret.cd(model, x, mask)
        rest, back = interpret.cd(model, x, 1 - mask)
        assert np.allclose(relevant, back, rtol=1e-12, atol=1e-12) is symmetric
        assert np.allclose(irrelevant, rest, rtol=1e-12, atol=1e-12) is symmetric
    text = TextModel().double()
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 1)))
    words = _mask(6, 1)
    relevant, irrelevant = interpret.cd(text, ids, words)
    rest, back = interpret.cd(text, ids, 1 - words)
    assert not np.allclose(relevant, back)
    assert not np.allclose(irrelevant, rest)


def test_channels_in_another_order():
    model = LAYERS["conv2d"]().double().eval()
    model[0].groups = 1
    model[0] = nn.Conv2d(2, 4, 3, stride=2).double()
    x, mask = _tensor(1, 2, 10, 10), _mask(10, 10)
    before = interpret.cd(model, x, mask)
    model[0].weight.data.copy_(model[0].weight.data[:, [1, 0]].clone())
    for part, swapped in zip(before, interpret.cd(model, x[:, [1, 0]], mask), strict=True):
        assert_allclose(part, swapped, rtol=1e-12, atol=1e-12)


def test_an_input_of_zeros():
    """Nothing is relevant, whatever the mask: all biases are irrelevant; golden halves them."""
    model = LAYERS["conv2d"]().double().eval()
    x = minitorch.zeros(1, 2, 10, 10, dtype=minitorch.float64)
    logits = model(x).detach().numpy()
    relevant, irrelevant = interpret.cd(model, x, np.ones((10, 10)))
    assert (relevant == 0).all()
    assert_allclose(irrelevant, logits, rtol=1e-12)
    linear = nn.Linear(4, 3).double()
    parts = interpret.cd(linear, minitorch.zeros(1, 4).double(), np.ones(4), bias="golden")
    for part in parts:
        assert_allclose(part[0], linear.bias.detach().numpy() / 2, rtol=1e-12)


def test_the_biases_of_a_text():
    """`lstm_bias` moves the products of biases between the parts; their sum stays."""
    model = TextModel().double()
    ids = minitorch.tensor(np.random.default_rng(2).integers(0, 12, (6, 1)))
    mask = np.array([0, 1, 1, 0, 1, 0])[:, None]
    found = {
        kind: interpret.cd(model, ids, mask, lstm_bias=kind)
        for kind in ("words", "irrelevant", "all_but_last")
    }
    logits = model(ids).detach().numpy()
    for relevant, irrelevant in found.values():
        assert_allclose(relevant + irrelevant, logits, rtol=1e-12, atol=1e-12)
    assert not np.allclose(found["words"][0], found["irrelevant"][0])
    assert not np.allclose(found["words"][0], found["all_but_last"][0])


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(
        nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(), nn.Linear(5, 3)
    ).double()
    model[0].weight.requires_grad_(False)
    model[3].eval()
    x = _tensor(4, 6)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    interpret.cd(model, x, _mask(4, 6))
    assert [module.training for module in model] == [True, True, True, False]
    assert not model[0].weight.requires_grad
    assert model[3].weight.requires_grad
    assert model[3].weight.grad is None
    assert not x.requires_grad
    for name, value in model.state_dict().items():
        assert (value == before[name]).all()


def test_fractions_and_several_inputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 3), nn.Linear(2, 3)

        def forward(self, a, b):
            return (self.first(a) + self.second(b)).tanh()

    model, a, b = Two().double(), _tensor(2, 4), _tensor(2, 2, seed=7)
    logits = model(a, b).detach().numpy()
    for masks in ((_mask(2, 4) / 2, _mask(2, 2)), (_mask(2, 4), None)):
        relevant, irrelevant = interpret.cd(model, (a, b), masks)
        assert_allclose(relevant + irrelevant, logits, rtol=1e-12, atol=1e-12)
    half, rest = interpret.cd(nn.Linear(4, 3, bias=False).double(), a, np.full(4, 0.5))
    assert_allclose(half, rest, rtol=1e-12)
