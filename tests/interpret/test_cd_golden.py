"""Contextual decomposition against recorded values of the published code (see acd_models.py)."""

from __future__ import annotations

import numpy as np
import pytest
from interpret import acd_models
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret, nn
from minitorch.interpret.rules.recurrent_steps import _squashed, _squashed_with

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def test_all_masks_of_a_small_network():
    data = acd_models.arrays("acd_mlp")
    model, x = acd_models.mlp(data), minitorch.tensor(data["x"])
    for bias in ("golden", "exact"):  # no unit is without input here, so both agree
        relevant, irrelevant = interpret.cd(model, x, data["masks"][:, None], bias=bias)
        assert_allclose(relevant[:, 0], data["rel"], **EXACT)
        assert_allclose(irrelevant[:, 0], data["irrel"], **EXACT)


def _layers(model, x, mask):
    """The parts after every recorded op."""
    found = interpret.Decomposer(model, x, bias="golden")
    masks, _ = found._masks(mask)
    count = len(found.trace.calls)
    return [found.propagate(masks, until=number) for number in range(1, count + 1)]


def test_a_small_network_layer_by_layer():
    data = acd_models.arrays("acd_mlp")
    layers = _layers(acd_models.mlp(data), minitorch.tensor(data["x"]), data["inter_mask"])
    assert len(layers) == 5
    for number, parts in enumerate(layers):
        assert_allclose(parts.rel.numpy()[0], data[f"inter{number}_rel"], **EXACT)
        assert_allclose(parts.irr.numpy()[0], data[f"inter{number}_irrel"], **EXACT)


@pytest.mark.parametrize("name", ["x", "xz"])
def test_a_convolutional_network(name):
    data = acd_models.arrays("acd_cnn")
    model, x = acd_models.cnn(data), minitorch.tensor(data[name])
    assert_allclose(model(x).detach().numpy()[0], data[f"{name}_logits"], **EXACT)
    relevant, irrelevant = interpret.cd(model, x, data["masks"][:, None, None], bias="golden")
    assert_allclose(relevant[:, 0], data[f"{name}_rel"], **EXACT)
    assert_allclose(irrelevant[:, 0], data[f"{name}_irrel"], **EXACT)


def test_a_convolutional_network_layer_by_layer():
    data = acd_models.arrays("acd_cnn")
    model, x = acd_models.cnn(data), minitorch.tensor(data["x"])
    # Batch norm is a product and a sum here; dropout in evaluation leaves no op.
    ends = {0: 1, 1: 2, 2: 3, 3: 4, 4: 6, 5: 7, 6: 7, 7: 8, 9: 10}
    matching = []
    for mask in data["masks"]:
        layers = _layers(model, x, mask)
        matching.append(
            all(
                np.allclose(layers[end - 1].rel.numpy()[0], data[f"inter{at}_rel"], **EXACT)
                and np.allclose(layers[end - 1].irr.numpy()[0], data[f"inter{at}_irrel"], **EXACT)
                for at, end in ends.items()
            )
        )
    assert sum(matching) == 1  # the layers were recorded for one of the masks


def test_all_spans_of_a_text():
    data = acd_models.arrays("acd_lstm")
    model, ids = acd_models.text_model(data), minitorch.tensor(data["ids"])[:, None]
    masks = acd_models.spans(data["pairs"], len(data["ids"]))
    relevant, irrelevant = interpret.cd(model, ids, masks, bias="golden")
    assert_allclose(relevant[:, 0], data["scores"], **EXACT)
    assert_allclose(irrelevant[:, 0], data["irrel"], **EXACT)
    bias = data["p_hidden_to_label_bias"]
    assert_allclose(relevant[:, 0] + irrelevant[:, 0], data["logits"] - bias + 0 * relevant[:, 0])
    full = int(np.flatnonzero((data["pairs"] == [0, 6]).all(axis=1))[0])
    assert (irrelevant[full] == 0).all()
    assert_allclose(relevant[full, 0], data["logits"] - bias, **EXACT)


class _Hidden(nn.Module):
    """The last hidden state of a text model, as if it were the logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model.lstm(self.model.embed(ids))[1][0][0]


def test_the_variant_that_leaves_out_the_last_word():
    """`propagate_lstm` of the published package: its loop over biases ends one word early."""
    data = acd_models.arrays("acd_lstm")
    hidden = _Hidden(acd_models.text_model(data))
    ids = minitorch.tensor(data["ids"])[:, None]
    masks = acd_models.spans(data["pairs"], len(data["ids"]))
    relevant, irrelevant = interpret.cd(hidden, ids, masks, lstm_bias="all_but_last")
    assert_allclose(relevant[:, 0], data["propagate_lstm_rel_h"], **EXACT)
    assert_allclose(irrelevant[:, 0], data["propagate_lstm_irrel_h"], **EXACT)
    assert_allclose(relevant[:, 0] + irrelevant[:, 0], data["hT"] + 0 * relevant[:, 0], **EXACT)


# -- each rule alone -----------------------------------------------------------------------------


def _alone(module, rel, irr):
    """The parts that a module makes of given parts of its input."""
    found = interpret.Decomposer(module.eval(), minitorch.tensor(rel + irr), bias="golden")
    # A mask may be any fraction: so any two parts can be had.
    total = rel + irr
    mask = np.divide(rel, total, out=np.zeros_like(rel), where=total != 0)
    return [part[0] for part in map(np.asarray, found(mask[None]))]


RULES = acd_models.arrays("acd_layer_rules")


def _batch_norm():
    module = nn.BatchNorm2d(3, eps=float(RULES["bn_eps"])).double()
    values = [minitorch.tensor(RULES[f"bn_{key}"]) for key in ("weight", "bias", "mean", "var")]
    names = ("weight", "bias", "running_mean", "running_var")
    module.load_state_dict(dict(zip(names, values, strict=True)), strict=False)
    return module


def _with(module, weight, bias):
    module.double()
    module.load_state_dict({"weight": minitorch.tensor(weight), "bias": minitorch.tensor(bias)})
    return module


@pytest.mark.parametrize(
    ("module", "given", "expected"),
    [
        (lambda: _with(nn.Linear(4, 3), RULES["lin_w"], RULES["lin_b"]), "lin", "lin"),
        (nn.ReLU, "relu", "relu"),
        (lambda: nn.MaxPool2d(2), "pool", "maxpool2"),
        (lambda: nn.AvgPool2d(2), "pool", "avgpool2"),
        (_batch_norm, "pool", "bn"),
    ],
    ids=["linear", "relu", "maxpool", "avgpool", "batchnorm"],
)
def test_rules_one_by_one(module, given, expected):
    rel, irr = RULES[f"{given}_rel_in"], RULES[f"{given}_irrel_in"]
    got_rel, got_irr = _alone(module(), rel, irr)
    # The parts of the input pass through a mask, which costs a rounding.
    assert_allclose(got_rel, RULES[f"{expected}_rel_out"], rtol=1e-11, atol=1e-11)
    assert_allclose(got_irr, RULES[f"{expected}_irrel_out"], rtol=1e-11, atol=1e-11)


def test_the_convolution_rule():
    rel, irr = RULES["conv_rel_in"], RULES["conv_irrel_in"]
    for stride in (1, 2):
        for padding in (0, 1):
            module = _with(
                nn.Conv2d(2, 3, 3, stride=stride, padding=padding), RULES["conv_w"], RULES["conv_b"]
            )
            got_rel, got_irr = _alone(module, rel, irr)
            if got_rel.shape == RULES["conv_rel_out"].shape and np.allclose(
                got_rel, RULES["conv_rel_out"], rtol=1e-11, atol=1e-11
            ):
                assert_allclose(got_irr, RULES["conv_irrel_out"], rtol=1e-11, atol=1e-11)
                return
    pytest.fail("no stride and padding give the recorded parts")


class _Block(nn.Module):
    """A residual block: two convolutions with batch norm, and the input added."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.conv2, self.bn2 = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

    def forward(self, x):
        out = minitorch.relu(self.bn1(self.conv1(x)))
        return minitorch.relu(self.bn2(self.conv2(out)) + x)


def test_a_residual_block():
    block = acd_models.loaded(_Block(), RULES, "block_")
    rel, irr = _alone(block, RULES["pool_rel_in"], RULES["pool_irrel_in"])
    assert_allclose(rel, RULES["block_rel_out"], rtol=1e-11, atol=1e-11)
    assert_allclose(irr, RULES["block_irrel_out"], rtol=1e-11, atol=1e-11)


def test_the_splits_inside_a_cell():
    given = np.stack([RULES["three_a"], RULES["three_b"]])
    bias = RULES["three_c"]
    got = _squashed_with(given, bias, np.tanh(bias))
    assert_allclose(got[0], RULES["three_tanh_a"], **EXACT)
    assert_allclose(got[1], RULES["three_tanh_b"], **EXACT)
    # logistic(x) = (1 + tanh(x/2)) / 2
    got = _squashed_with(given / 2, bias / 2, np.tanh(bias / 2)) / 2
    assert_allclose(got[0], RULES["three_sig_a"], **EXACT)
    assert_allclose(got[1], RULES["three_sig_b"], **EXACT)
    assert_allclose((np.tanh(bias / 2) + 1) / 2, RULES["three_sig_c"], **EXACT)
    two = _squashed(given)
    assert_allclose(two[0], RULES["tanh2_a"], **EXACT)
    assert_allclose(two[1], RULES["tanh2_b"], **EXACT)
