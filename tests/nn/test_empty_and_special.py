"""Empty batches, ties, infinities, and other corners with a known answer."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import minitorch
import minitorch.nn.functional as F
from minitorch import nn as layers

EMPTY = [
    ("F.conv1d(x, torch.ones(2, 3, 2), torch.ones(2))", (0, 3, 5), (0, 2, 4)),
    ("F.conv2d(x, torch.ones(2, 3, 2, 2), torch.ones(2), padding=1)", (0, 3, 4, 4), (0, 2, 5, 5)),
    ("F.conv2d(x, torch.ones(2, 3, 2, 2), stride=2)", (0, 3, 4, 4), (0, 2, 2, 2)),
    ("F.conv_transpose2d(x, torch.ones(3, 2, 2, 2), stride=2)", (0, 3, 2, 2), (0, 2, 4, 4)),
    ("F.max_pool2d(x, 2)", (0, 3, 4, 4), (0, 3, 2, 2)),
    ("F.avg_pool2d(x, 2)", (0, 3, 4, 4), (0, 3, 2, 2)),
    ("F.adaptive_avg_pool2d(x, (3, 2))", (0, 3, 4, 4), (0, 3, 3, 2)),
    ("F.adaptive_max_pool2d(x, 2)", (0, 3, 4, 4), (0, 3, 2, 2)),
    ("F.layer_norm(x, (3,), torch.ones(3), torch.ones(3))", (0, 3), (0, 3)),
    ("F.group_norm(x, 1)", (0, 3, 2), (0, 3, 2)),
    ("F.softmax(x, 1)", (0, 3), (0, 3)),
    ("F.log_softmax(x, 1)", (2, 0), (2, 0)),
    ("F.cross_entropy(x, torch.zeros(0).long(), reduction='sum')", (0, 3), ()),
    ("F.cross_entropy(x, torch.zeros(0).long(), reduction='none')", (0, 3), (0,)),
    ("F.linear(x, torch.ones(2, 3), torch.ones(2))", (0, 3), (0, 2)),
    ("F.silu(x)", (0, 3), (0, 3)),
    ("F.dropout(x, 0.5)", (0, 3), (0, 3)),
    ("F.scaled_dot_product_attention(x, x, x)", (0, 3, 2), (0, 3, 2)),
    ("nn.LSTMCell(3, 2)(x)[0]", (0, 3), (0, 2)),
    ("nn.GRUCell(3, 2)(x)", (0, 3), (0, 2)),
    ("nn.RNNCell(3, 2)(x)", (0, 3), (0, 2)),
]


@pytest.mark.parametrize(("call", "shape", "expected"), EMPTY, ids=[row[0] for row in EMPTY])
def test_empty_batch(call: str, shape: tuple, expected: tuple) -> None:
    x = minitorch.zeros(*shape).requires_grad_()
    out = eval(call, {"torch": minitorch, "F": F, "nn": layers, "x": x})
    assert tuple(out.shape) == expected
    out.sum().backward()
    assert tuple(x.grad.shape) == shape
    assert not np.isnan(x.grad.numpy()).any()


def test_empty_indices() -> None:
    weight = minitorch.ones(3, 2).requires_grad_()
    out = F.embedding(minitorch.zeros(0, 2).long(), weight)
    assert tuple(out.shape) == (0, 2, 2)
    out.sum().backward()
    assert (weight.grad.numpy() == 0).all()


def test_mean_over_nothing_is_nan() -> None:
    assert math.isnan(F.cross_entropy(minitorch.zeros(0, 3), minitorch.zeros(0).long()))
    x = minitorch.zeros(2, 3).requires_grad_()
    loss = F.cross_entropy(x, minitorch.tensor([-100, -100]))
    assert math.isnan(loss)
    loss.backward()
    assert (x.grad.numpy() == 0).all()


def test_first_of_equal_elements_wins() -> None:
    x = minitorch.zeros(1, 1, 4, 4).requires_grad_()
    _, indices = F.max_pool2d(x, 2, return_indices=True)
    assert indices.flatten().tolist() == [0, 2, 8, 10]
    F.max_pool2d(x, 2).sum().backward()
    expected = np.zeros((4, 4))
    expected[::2, ::2] = 1
    assert (x.grad.numpy()[0, 0] == expected).all()


def test_padding_never_wins() -> None:
    x = minitorch.full((1, 1, 3, 3), -math.inf).requires_grad_()
    out, indices = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert (out.detach().numpy() == -math.inf).all()
    assert indices.flatten().tolist() == [0, 1, 3, 4]
    out.sum().backward()
    assert x.grad.numpy().sum() == 4


def test_nan_wins() -> None:
    x = minitorch.tensor([[[1.0, math.nan, 2.0, 3.0]]])
    out, indices = F.max_pool1d(x, 2, return_indices=True)
    assert math.isnan(out[0, 0, 0])
    assert indices.tolist() == [[[1, 3]]]


def test_infinite_gradient_reaches_only_the_winner() -> None:
    x = minitorch.tensor([[[1.0, 2.0, 3.0, 0.0]]], requires_grad=True)
    F.max_pool1d(x, 2).backward(minitorch.tensor([[[math.inf, 1.0]]]))
    assert x.grad.tolist() == [[[0.0, math.inf, 1.0, 0.0]]]


def test_integer_max_pool() -> None:
    x = minitorch.arange(16).reshape(1, 1, 4, 4)
    assert F.max_pool2d(x, 2).flatten().tolist() == [5, 7, 13, 15]


def test_large_logits_do_not_overflow() -> None:
    x = minitorch.tensor([[1000.0, 0.0], [-1000.0, 0.0]], requires_grad=True)
    loss = F.cross_entropy(x, minitorch.tensor([1, 0]), reduction="none")
    assert loss.tolist() == [1000.0, 1000.0]
    loss.sum().backward()
    assert x.grad.tolist() == [[1.0, -1.0], [-1.0, 1.0]]
    y = minitorch.tensor([800.0, -800.0], requires_grad=True)
    out = F.binary_cross_entropy_with_logits(y, minitorch.tensor([0.0, 1.0]), reduction="none")
    assert out.tolist() == [800.0, 800.0]
    for function in (F.silu, F.elu, F.mish, F.logsigmoid, F.selu):
        z = minitorch.tensor([-200.0, 200.0], requires_grad=True)
        out = function(z)
        out.sum().backward()
        assert np.isfinite(out.detach().numpy()).all()
        assert np.isfinite(z.grad.numpy()).all()


def test_ignored_infinite_log_probability() -> None:
    x = minitorch.tensor([[-math.inf, 0.0], [0.0, -math.inf]])
    assert F.nll_loss(x, minitorch.tensor([-100, 0])).item() == 0.0


def test_query_that_may_attend_nowhere() -> None:
    q = minitorch.ones(2, 3)
    mask = minitorch.tensor([[False, False], [True, False]])
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert out.tolist() == [[0.0] * 3, [1.0] * 3]


def test_binary_cross_entropy_at_the_bounds() -> None:
    x = minitorch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    target = minitorch.tensor([0.0, 1.0, 1.0, 0.0])
    loss = F.binary_cross_entropy(x, target, reduction="none")
    assert loss.tolist() == [0.0, 0.0, 100.0, 100.0]


def test_running_statistics() -> None:
    layer = layers.BatchNorm1d(1)
    values = [1.0, 2.0, 4.0]
    layer(minitorch.tensor(values).reshape(3, 1))
    assert layer.running_mean.item() == pytest.approx(0.1 * np.mean(values))
    assert layer.running_var.item() == pytest.approx(0.9 + 0.1 * np.var(values, ddof=1))
    assert layer.num_batches_tracked.item() == 1
    average = layers.BatchNorm1d(1, momentum=None)
    for batch in ([0.0, 2.0], [4.0, 6.0]):
        average(minitorch.tensor(batch).reshape(2, 1))
    assert average.running_mean.item() == pytest.approx(3.0)


def test_running_statistics_of_an_empty_batch_stay() -> None:
    layer = layers.BatchNorm2d(2)
    out = layer(minitorch.zeros(0, 2, 3, 3))
    assert tuple(out.shape) == (0, 2, 3, 3)
    assert layer.running_mean.tolist() == [0.0, 0.0]


def test_embedding_max_norm_writes_the_table() -> None:
    weight = minitorch.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding(minitorch.tensor([0]), weight, max_norm=1.0)
    np.testing.assert_allclose(weight.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_sizes_that_differ_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="Using a target size .* that is different to the input"):
        F.mse_loss(minitorch.ones(2, 3), minitorch.ones(3))
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        F.softmax(minitorch.ones(2, 3))
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        loss = F.mse_loss(minitorch.ones(2), minitorch.zeros(2), size_average=False)
    assert loss.item() == 2.0


def test_unsupported_options_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Invalid padding string 'abc'"):
        layers.Conv2d(4, 4, 3, padding="abc")


def test_inplace_activations_write_their_input() -> None:
    for function in (F.relu, F.leaky_relu, F.elu, F.hardtanh, F.silu, F.dropout):
        x = minitorch.tensor([-1.0, 2.0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(x, inplace=True)
        assert out is x
    leaf = minitorch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        F.relu(leaf, inplace=True)


def test_overwritten_input_is_noticed() -> None:
    x = minitorch.ones(1, 1, 3, 3).requires_grad_()
    hidden = x * 1
    out = F.conv2d(hidden, minitorch.ones(1, 1, 2, 2).requires_grad_())
    hidden.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_names_of_nodes() -> None:
    x = minitorch.ones(1, 1, 4, 4).requires_grad_()
    assert F.conv2d(x, minitorch.ones(1, 1, 2, 2)).grad_fn.name() == "ConvolutionBackward0"
    assert F.max_pool2d(x, 2).grad_fn.name() == "MaxPool2DWithIndicesBackward0"
    assert F.softmax(x, 1).grad_fn.name() == "SoftmaxBackward0"
    assert F.leaky_relu(x).grad_fn.name() == "LeakyReluBackward0"


def test_cosine_similarity_broadcasts():
    x, y = minitorch.tensor([[3.0, 4.0], [0.0, 2.0]]), minitorch.tensor([0.0, 1.0])
    assert F.cosine_similarity(x, y).tolist() == pytest.approx([0.8, 1.0])
    assert F.cosine_similarity(y, x.double()).dtype is minitorch.float64


@pytest.mark.parametrize(
    ("kernel", "call"),
    [
        ("LayerNormKernelImpl", lambda x: F.layer_norm(x, (4,))),
        ("GroupNormKernelImpl", lambda x: F.group_norm(x, 1)),
        ("batch_norm", lambda x: F.batch_norm(x, None, None, training=True)),
        ("batch_norm", F.instance_norm),
        ("rms_norm", lambda x: F.rms_norm(x, (4,))),
    ],
)
def test_whole_numbers_are_not_normalised(kernel, call):
    with pytest.raises(NotImplementedError, match=f"^\"{kernel}\" not implemented for 'Long'$"):
        call(minitorch.arange(8).reshape(2, 1, 4))
