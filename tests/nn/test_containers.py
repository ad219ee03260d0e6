"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import minitorch
from minitorch import nn as layers


def test_sequential() -> None:
    net = layers.Sequential(layers.Linear(2, 3), layers.ReLU(), layers.Linear(3, 1))
    assert len(net) == 3
    assert net[-1] is list(net)[2]
    assert list(net[1:].state_dict()) == ["2.weight", "2.bias"]
    net.append(layers.Tanh())
    assert tuple(net(minitorch.ones(4, 2)).shape) == (4, 1)
    del net[1]
    assert list(net._modules) == ["0", "1", "2"]
    net.insert(1, layers.Sigmoid())
    assert isinstance(net[1], layers.Sigmoid)
    net[1] = layers.Identity()
    assert isinstance(net.pop(1), layers.Identity)
    assert len(net + layers.Sequential(layers.ReLU())) == 4
    named = layers.Sequential(OrderedDict(a=layers.Linear(1, 2), b=layers.ReLU()))
    assert list(named.state_dict()) == ["a.weight", "a.bias"]
    assert named.b is named[1]


def test_module_list() -> None:
    modules = layers.ModuleList([layers.Linear(1, 1)])
    modules.append(layers.ReLU()).extend([layers.Tanh()])
    modules += [layers.Sigmoid()]
    assert len(modules) == 4
    assert isinstance(modules[1:3], layers.ModuleList)
    modules.insert(0, layers.Identity())
    del modules[2:4]
    assert [type(m).__name__ for m in modules] == ["Identity", "Linear", "Sigmoid"]
    assert list(modules.state_dict()) == ["1.weight", "1.bias"]
    with pytest.raises(TypeError, match=r"ModuleList\.extend should be called with an iterable"):
        modules.extend(3)


def test_module_dict() -> None:
    modules = layers.ModuleDict({"a": layers.Linear(1, 1)})
    modules["b"] = layers.ReLU()
    modules.update([("c", layers.Tanh())])
    assert list(modules) == ["a", "b", "c"]
    assert "b" in modules
    assert isinstance(modules.pop("b"), layers.ReLU)
    del modules["c"]
    assert list(modules.keys()) == ["a"]
    assert list(modules.state_dict()) == ["a.weight", "a.bias"]
    modules.clear()
    assert len(modules) == 0


def test_parameter_list() -> None:
    values = layers.ParameterList([minitorch.ones(2), layers.Parameter(minitorch.zeros(1))])
    values.append(minitorch.ones(3))
    assert len(list(values.parameters())) == 3
    assert isinstance(values[0], layers.Parameter)
    values[0] = minitorch.zeros(2)
    assert values[0].tolist() == [0.0, 0.0]
    assert len(values[1:]) == 2
    with pytest.raises(IndexError):
        values[5]
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)


def test_parameter_dict() -> None:
    values = layers.ParameterDict({"a": minitorch.ones(2)})
    values["b"] = layers.Parameter(minitorch.zeros(1))
    assert [name for name, _ in values.named_parameters()] == ["a", "b"]
    assert values.get("c") is None
    assert values.setdefault("c", minitorch.ones(1)) is values["c"]
    assert values.pop("a").tolist() == [1.0, 1.0]
    assert list(values.keys()) == ["b", "c"]
    assert dict(values.items()).keys() == {"b", "c"}
    with pytest.raises(KeyError):
        values["a"]
