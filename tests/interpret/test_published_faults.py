"""What is broken in the published code (PyPI `acd` 0.0.2), row by row, and right here.

Each test states the fault; the gaps in brackets are what the published code shows.
"""

from __future__ import annotations

import numpy as np
import pytest
from interpret import acd_models
from interpret.acd_models import TextModel
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret, nn
from minitorch.nn import functional as F


def _sum_is_right(model, x, mask):
    model = model.double().eval()
    relevant, irrelevant = interpret.cd(model, x, mask)
    logits = model(x).detach().numpy()
    assert_allclose(relevant + irrelevant, logits, rtol=1e-12, atol=1e-12)
    return relevant, irrelevant


def _x(*shape, seed=0):
    return minitorch.tensor(np.random.default_rng(seed).normal(size=shape))


def test_removed_numpy_names():
    """`np.int` was removed in NumPy 1.24: both agglomerations raise AttributeError."""
    assert not hasattr(np, "int")
    model = TextModel().double()
    tree = interpret.agglomerate(model, minitorch.tensor([3, 1, 4, 1])[:, None], mode="reference")
    assert tree.root.size == 4


@pytest.mark.parametrize(
    "layer",
    [nn.Tanh(), nn.Sigmoid(), nn.GELU(), nn.ELU(), nn.BatchNorm1d(5), nn.LayerNorm(5)],
    ids=["tanh", "sigmoid", "gelu", "elu", "batchnorm1d", "layernorm"],
)
def test_modules_that_were_skipped(layer):
    """[0.168, 0.699, 0.459, 0.067, 0.064, 0.036]"""
    model = nn.Sequential(nn.Linear(6, 5), layer, nn.Linear(5, 3))
    _sum_is_right(model, _x(1, 6), np.array([1, 0, 0, 1, 1, 0]))


def test_functional_calls_that_were_skipped():
    """[0.058] The published code walks over modules, so `F.relu` is not there for it."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 5), nn.Linear(5, 3)

        def forward(self, x):
            return self.b(F.relu(self.a(x)))

    _sum_is_right(Model(), _x(1, 6), np.array([1, 0, 0, 1, 1, 0]))


def test_a_model_called_like_a_layer():
    """Types are told by a substring of their name: a LinearNet is taken for a Linear."""

    class LinearReLUNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 5), nn.Linear(5, 3)

        def forward(self, x):
            return self.b(self.a(x).tanh())

    _sum_is_right(LinearReLUNet(), _x(1, 6), np.array([1, 0, 0, 1, 1, 0]))


def test_layers_run_in_another_order_than_they_were_made():
    """The order of registration is taken for the order of the forward pass."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.middle, self.first = nn.Linear(4, 3), nn.ReLU(), nn.Linear(6, 4)

        def forward(self, x):
            return self.last(self.middle(self.first(x)))

    _sum_is_right(Model(), _x(1, 6), np.array([1, 0, 0, 1, 1, 0]))


@pytest.mark.parametrize("options", [{"num_layers": 2}, {"bidirectional": True}])
def test_deep_and_bidirectional_lstms(options):
    """[0.148] Only layer 0 is used; two directions crash."""
    ids = minitorch.tensor([3, 7, 1, 9])[:, None]
    _sum_is_right(TextModel(**options), ids, np.array([0, 1, 1, 0])[:, None])


def test_black_patches():
    """A full mask leaves up to half the logits irrelevant where the image is black. [0.036]"""
    data = acd_models.arrays("acd_agg2d_model")
    model = acd_models.small_cnn(data)
    image = data["im"].copy()
    image[:, 6:] = 0
    x, full = minitorch.tensor(image)[None, None], np.ones((12, 12))
    halved = interpret.cd(model, x, full, bias="golden")[1]
    assert np.abs(halved).max() > 0.01
    # A unit that sees only black gets nothing from either side: its bias is irrelevant for every
    # mask, so what differs between masks is due to the masks.
    relevant, irrelevant = interpret.cd(model, x, full)
    nothing, whole = interpret.cd(model, x, np.zeros((12, 12)))
    assert (nothing == 0).all()
    assert_allclose(relevant + irrelevant, model(x).detach().numpy(), rtol=1e-12)
    assert_allclose(whole, model(x).detach().numpy(), rtol=1e-12)


def test_batches_of_texts():
    """Only column 0 of a batch is read."""
    model = TextModel().double()
    ids = minitorch.tensor(np.random.default_rng(0).integers(0, 12, (5, 3)))
    mask = np.array([0, 1, 1, 0, 1])[:, None]
    relevant, _ = _sum_is_right(model, ids, mask)
    for column in range(3):
        alone, _ = interpret.cd(model, ids[:, column : column + 1], mask)
        assert_allclose(relevant[column], alone[0], rtol=1e-12)


def test_token_zero():
    """Token id 0 means "absent": IndexError."""
    ids = minitorch.tensor([0, 5, 0, 0])[:, None]
    tree = interpret.agglomerate(TextModel().double(), ids, 0, mode="reference")
    assert tree.root.members == (0, 1, 2, 3)


def test_blocks_of_words():
    """`sweep_dim` other than 1 raises ValueError for texts."""
    ids = minitorch.tensor([3, 7, 1, 9, 4])[:, None]
    tree = interpret.agglomerate(TextModel().double(), ids, 0, block=2)
    assert tree.num_units == 3
    assert tree.mask(2)[:, 0].tolist() == [False] * 4 + [True]


def test_occlusion_of_texts_and_of_several_blobs():
    """Texts crash; images crash when two or more blobs are to be merged."""
    ids = minitorch.tensor([3, 7, 1, 9, 4])[:, None]
    tree = interpret.agglomerate(TextModel().double(), ids, 0, method="occlusion", mode="reference")
    assert tree.root.size == 5
    data = acd_models.arrays("acd_agg2d_model")
    tree = interpret.agglomerate(
        acd_models.small_cnn(data),
        minitorch.tensor(data["im"])[None, None],
        0,
        method="occlusion",
        percentile=90,
        num_iters=1,
        mode="reference",
    )
    assert len(tree.steps[1].scores) > 1
    assert len(tree.steps[-1].scores) == 1


def test_no_device_to_name():
    """Scores of images default to device "cuda", and fail on a machine that has none."""
    data = acd_models.arrays("acd_agg2d_model")
    image = minitorch.tensor(data["im"])[None, None]
    for mode in ("paper", "reference"):
        tree = interpret.agglomerate(acd_models.small_cnn(data), image, 0, block=4, mode=mode)
        assert_allclose(tree.logits, data["logits"], rtol=1e-12)


def test_integrated_gradients_of_images():
    """The points on the way are never written: gradients are taken at uninitialised memory."""
    data = acd_models.arrays("acd_agg2d_model")
    model, x = acd_models.small_cnn(data), minitorch.tensor(data["im"])[None, None]
    found = interpret.attribute(model, x, 0, method="integrated_gradients", steps=300)
    black = model(x * 0).detach().numpy()[0, 0]
    assert_allclose(found.scores.sum(), data["logits"][0] - black, rtol=2e-3)
    assert abs(found.convergence_delta) < 2e-2


def test_double_precision():
    """The rule for maximum pooling casts to float32."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2))
    relevant, irrelevant = _sum_is_right(model, _x(1, 1, 6, 6), np.eye(6))
    assert relevant.dtype == irrelevant.dtype == np.float64
