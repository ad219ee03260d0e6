"""Which layers and losses run in which type under autocast, as PyTorch does on the CPU."""

from __future__ import annotations

import pytest

import minitorch
import minitorch.nn.functional as F
from minitorch import nn as layers


def test_convolutions_run_in_the_low_type() -> None:
    image, signal = minitorch.ones(1, 3, 4, 4), minitorch.ones(1, 3, 4)
    cases = (
        (layers.Conv2d(3, 2, 2), image),
        (layers.Conv1d(3, 2, 2), signal),
        (layers.ConvTranspose2d(3, 2, 2), image),
    )
    for layer, x in cases:
        with minitorch.autocast("cpu"):
            out = layer(x)
        assert out.dtype == minitorch.bfloat16
        out.sum().backward()
        assert layer.weight.grad.dtype == minitorch.float32


@pytest.mark.parametrize(
    "loss",
    [
        F.mse_loss,
        F.l1_loss,
        F.smooth_l1_loss,
        F.huber_loss,
        F.binary_cross_entropy,
        F.binary_cross_entropy_with_logits,
        F.cross_entropy,
    ],
)
def test_losses_run_in_float32(loss) -> None:
    x = minitorch.full((2, 3), 0.25, dtype=minitorch.bfloat16).requires_grad_()
    with minitorch.autocast("cpu"):
        out = loss(x, x.detach())
    assert out.dtype == minitorch.float32
    out.backward()
    assert x.grad.dtype == minitorch.bfloat16


def test_a_model_end_to_end() -> None:
    minitorch.manual_seed(0)
    net = layers.Sequential(
        layers.Conv2d(1, 2, 3, padding=1),
        layers.BatchNorm2d(2),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Flatten(),
        layers.LayerNorm(8),
        layers.Linear(8, 3),
    )
    x, target = minitorch.randn(5, 1, 4, 4), minitorch.tensor([0, 1, 2, 0, 1])
    exact = F.cross_entropy(net(x), target)
    with minitorch.autocast("cpu"):
        out = net(x)
        loss = F.cross_entropy(out, target)
    assert out.dtype == minitorch.bfloat16
    assert loss.dtype == minitorch.float32
    assert loss.item() == pytest.approx(exact.item(), abs=0.05)
    loss.backward()
    assert all(p.grad.dtype == minitorch.float32 for p in net.parameters())


@pytest.mark.parametrize("leading", [(1,), (2, 3)], ids=["matrix", "batch"])
def test_linear_rounds_once_after_the_bias(leading) -> None:
    """1 + 2^-8 is halfway between two bfloat16 numbers, and 1 + 2^-8 + 2^-8 is one: a product that
    is rounded before the bias is added loses it, as PyTorch's does not.
    """
    x = minitorch.tensor([1.0, 2.0**-8]).expand(*leading, 2)
    weight, bias = minitorch.ones(3, 2), minitorch.full((3,), 2.0**-8)
    with minitorch.autocast("cpu"):
        out = F.linear(x, weight, bias)
        without = F.linear(x, weight)
    assert out.dtype == minitorch.bfloat16
    assert (out.float() == 1 + 2.0**-7).all()
    assert (without.float() == 1).all()  # ties go to even
