"""Dropout, gradient clipping, parameters as vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minitorch
import minitorch.nn.functional as F
from minitorch import nn as layers


def test_dropout_scales_what_it_keeps() -> None:
    minitorch.manual_seed(3)
    x = minitorch.ones(100, 100).requires_grad_()
    out = F.dropout(x, 0.25)
    values = out.detach().numpy()
    assert set(np.unique(values)) == {np.float32(0), np.float32(1 / 0.75)}
    # 10,000 draws: five standard deviations around the expected share.
    assert abs((values == 0).mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 10_000)
    out.sum().backward()
    assert np.array_equal(x.grad.numpy(), values)
    minitorch.manual_seed(3)
    assert np.array_equal(F.dropout(x, 0.25).detach().numpy(), values)


def test_dropout_off_and_total() -> None:
    x = minitorch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 1.0).tolist() == [0.0] * 3
    layer = layers.Dropout(0.5).eval()
    assert layer(x) is x


def test_dropout_of_whole_channels() -> None:
    minitorch.manual_seed(0)
    for function, shape in ((F.dropout1d, (8, 16, 3)), (F.dropout2d, (8, 16, 3, 2))):
        out = function(minitorch.ones(*shape), 0.5).numpy().reshape(8, 16, -1)
        assert (out == out[:, :, :1]).all()
        assert 0 < (out == 0).mean() < 1


def _parameters() -> list:
    parameters = [layers.Parameter(minitorch.zeros(2)), layers.Parameter(minitorch.zeros(1))]
    parameters[0].grad = minitorch.tensor([3.0, 0.0])
    parameters[1].grad = minitorch.tensor([-4.0])
    return parameters


def test_clip_grad_norm() -> None:
    parameters = _parameters()
    total = layers.utils.clip_grad_norm_(parameters, 1.0)
    assert total.item() == 5.0
    assert parameters[0].grad.tolist() == pytest.approx([0.6, 0.0], rel=1e-5)
    assert parameters[1].grad.tolist() == pytest.approx([-0.8], rel=1e-5)
    assert layers.utils.clip_grad_norm_(_parameters(), 100.0).item() == 5.0
    assert layers.utils.clip_grad_norm_(_parameters(), 1.0, norm_type=math.inf).item() == 4.0
    assert layers.utils.clip_grad_norm_(_parameters(), 1.0, norm_type=1).item() == 7.0
    assert layers.utils.clip_grad_norm_([layers.Parameter(minitorch.ones(1))], 1.0).item() == 0.0
    assert layers.utils.clip_grad_norm_(iter(_parameters()), 1.0).item() == 5.0


def test_clip_grad_norm_of_nan() -> None:
    parameters = _parameters()
    parameters[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match=r"The total norm of order 2\.0 for gradients"):
        layers.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert parameters[1].grad.item() == -4.0
    layers.utils.clip_grad_norm_(parameters, 1.0)
    assert math.isnan(parameters[1].grad.item())


def test_clip_grad_value() -> None:
    parameters = _parameters()
    layers.utils.clip_grad_value_(parameters, 2.0)
    assert parameters[0].grad.tolist() == [2.0, 0.0]
    assert parameters[1].grad.tolist() == [-2.0]


def test_parameters_as_a_vector() -> None:
    net = layers.Linear(2, 1)
    vector = layers.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (3,)
    assert vector.requires_grad
    layers.utils.vector_to_parameters(minitorch.arange(3.0), net.parameters())
    assert net.weight.tolist() == [[0.0, 1.0]]
    assert net.bias.tolist() == [2.0]
    assert isinstance(net.bias, layers.Parameter)
