"""Module: registration, walking, conversion, copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minitorch
from minitorch import nn as layers


class Net(layers.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = layers.Linear(2, 3)
        self.norm = layers.BatchNorm1d(3)
        self.scale = layers.Parameter(minitorch.ones(1))
        self.register_buffer("shift", minitorch.zeros(1))
        self.register_buffer("cache", minitorch.zeros(2), persistent=False)

    def forward(self, x):
        return self.norm(self.first(x)) * self.scale + self.shift


def test_names_in_order_of_registration() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "scale",
        "first.weight",
        "first.bias",
        "norm.weight",
        "norm.bias",
    ]
    assert [name for name, _ in net.named_buffers()] == [
        "shift",
        "cache",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert [name for name, _ in net.named_modules()] == ["", "first", "norm"]
    assert [name for name, _ in net.named_children()] == ["first", "norm"]
    assert "cache" not in net.state_dict()


def test_shared_parameters_are_counted_once() -> None:
    net = layers.Sequential(layers.Linear(2, 2), layers.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert "1.weight" in net.state_dict()
    twin = layers.Sequential(net[0], net[0])
    assert len(list(twin.modules())) == 2


def test_attributes_move_between_kinds() -> None:
    net = Net()
    net.shift = None
    assert "shift" not in dict(net.named_buffers())
    net.extra = 3
    net.extra = layers.Parameter(minitorch.ones(1))
    assert "extra" in dict(net.named_parameters())
    assert "extra" not in net.__dict__
    net.extra = layers.Linear(1, 1)
    assert "extra" not in net._parameters
    del net.extra
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'extra'"):
        _ = net.extra
    net.buffer = layers.Buffer(minitorch.ones(2), persistent=False)
    assert "buffer" in dict(net.named_buffers())
    assert "buffer" not in net.state_dict()


def test_before_init() -> None:
    class Forgetful(layers.Module):
        def __init__(self, value) -> None:
            self.value = value

    for value, what in (
        (layers.Linear(1, 1), "module"),
        (layers.Parameter(minitorch.ones(1)), "parameters"),
    ):
        with pytest.raises(
            AttributeError, match=rf"cannot assign {what} before Module.__init__\(\) call"
        ):
            Forgetful(value)


def test_train_eval_apply() -> None:
    net = Net()
    seen = []
    assert net.apply(seen.append) is net
    assert seen == [net.first, net.norm, net]
    net.eval()
    assert not net.norm.training
    net.train()
    assert net.norm.training


def test_conversion_keeps_identity() -> None:
    net = Net()
    weight = net.first.weight
    net(minitorch.ones(4, 2)).sum().backward()
    assert net.double() is net
    assert net.first.weight is weight
    assert weight.dtype == minitorch.float64
    assert weight.grad.dtype == minitorch.float64
    assert net.norm.running_mean.dtype == minitorch.float64
    assert net.norm.num_batches_tracked.dtype == minitorch.int64
    net.zero_grad()
    net(minitorch.ones(4, 2, dtype=minitorch.float64)).sum().backward()
    assert weight.grad.dtype == minitorch.float64
    assert net.to("cpu", minitorch.float32).scale.dtype == minitorch.float32
    assert net.half().scale.dtype == minitorch.float16
    with pytest.raises((RuntimeError, AssertionError)):
        net.to("cuda")


def test_zero_grad_and_requires_grad() -> None:
    net = Net()
    net(minitorch.ones(4, 2)).sum().backward()
    grad = net.scale.grad
    net.zero_grad(set_to_none=False)
    assert net.scale.grad is grad
    assert grad.item() == 0.0
    net.zero_grad()
    assert net.scale.grad is None
    net.requires_grad_(False)
    assert not net(minitorch.ones(4, 2)).requires_grad


def test_get_and_set_submodule() -> None:
    net = layers.Sequential(layers.Sequential(layers.Linear(1, 2)))
    assert net.get_submodule("0.0") is net[0][0]
    assert net.get_submodule("") is net
    assert net.get_parameter("0.0.bias") is net[0][0].bias
    replacement = layers.Linear(1, 3)
    net.set_submodule("0.0", replacement)
    assert net[0][0] is replacement
    norm = layers.Sequential(layers.BatchNorm1d(2))
    assert norm.get_buffer("0.running_mean") is norm[0].running_mean


def test_deepcopy_and_pickle() -> None:
    net = Net()
    x = minitorch.from_numpy(np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2))
    net(x).sum().backward()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert isinstance(twin.scale, layers.Parameter)
        assert twin.scale.requires_grad
        for (name, a), (_, b) in zip(
            net.state_dict().items(), twin.state_dict().items(), strict=True
        ):
            assert np.array_equal(a.numpy(), b.numpy()), name
            assert not np.shares_memory(a.numpy(), b.numpy())
        before = net.first.weight.detach().numpy().copy()
        with minitorch.no_grad():
            twin.first.weight.add_(1)
        assert np.array_equal(net.first.weight.detach().numpy(), before)
    assert copy.deepcopy(net).scale.grad is None
    tied = layers.Sequential(layers.Linear(2, 2), layers.Linear(2, 2))
    tied[1].weight = tied[0].weight
    for twin in (copy.deepcopy(tied), pickle.loads(pickle.dumps(tied))):
        assert twin[0].weight is twin[1].weight


def test_parameter() -> None:
    data = minitorch.ones(2)
    parameter = layers.Parameter(data)
    assert isinstance(parameter, minitorch.Tensor)
    assert parameter.is_leaf
    assert parameter.requires_grad
    assert np.shares_memory(parameter.detach().numpy(), data.numpy())
    assert repr(parameter) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    frozen = layers.Parameter(data, requires_grad=False)
    assert not frozen.requires_grad
    assert type(parameter * 2) is minitorch.Tensor
    assert not isinstance(parameter.detach(), layers.Parameter)
    made = layers.Parameter(minitorch.ones(2, requires_grad=True) * 2)
    assert made.is_leaf


def test_failing_forward_names_the_module() -> None:
    with pytest.raises(NotImplementedError, match="Module \\[Empty\\] is missing the required"):
        type("Empty", (layers.Module,), {})()(1)


def test_dir_lists_members() -> None:
    names = dir(layers.Sequential(layers.Linear(1, 1)))
    assert "0" not in names
    assert "weight" in dir(layers.Linear(1, 1))
