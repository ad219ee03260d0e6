"""What cannot be followed is refused by name, and rules can be added."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret, nn
from minitorch.interpret import registry
from minitorch.nn import functional as F


@pytest.fixture(autouse=True)
def _rules_are_restored():
    ops, modules = dict(registry._op_rules), dict(registry._module_rules)
    yield
    for table, saved in ((registry._op_rules, ops), (registry._module_rules, modules)):
        table.clear()
        table.update(saved)


def _x(*shape):
    return minitorch.tensor(np.random.default_rng(0).normal(size=shape))


def _apply(function):
    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    return Model()


def test_an_op_without_a_rule_is_named_with_its_line():
    def forward(x):
        return minitorch.log(x * x + 1)

    with pytest.raises(NotImplementedError, match=r"no rule for LogBackward0 .*test_cd_errors"):
        interpret.cd(_apply(forward), _x(2, 3), np.ones(3))


def test_a_rule_is_one_line():
    model = nn.Sequential(nn.Linear(3, 4), _apply(lambda x: minitorch.log(x * x + 1))).double()
    x, mask = _x(2, 3), np.array([1, 0, 1])
    interpret.register_rule(minitorch.log)(interpret.whole)
    with pytest.raises(ValueError, match="stay whole"):
        interpret.cd(model, x, mask)
    # With log(x) = log1p(x - 1), the value at zero is finite.
    interpret.register_rule("LogBackward0")(
        lambda call, x: interpret.smooth(lambda part: (part * part + 1).log())(call, x)
    )
    with pytest.raises(RuntimeError, match="differ from the logits"):  # a rule of another function
        interpret.cd(model, x, mask)


def test_a_rule_for_a_module_covers_all_inside():
    class Cube(nn.Module):
        def forward(self, x):
            return minitorch.from_numpy(x.detach().numpy() ** 3)  # nothing that could be followed

    class Tame(Cube):
        pass

    class Other(Cube):
        def forward(self, x):
            return x

    @interpret.register_rule(Cube)
    def cube(call, x):
        assert isinstance(call.op, Cube)
        return interpret.rectifier(call, x, lambda part: part * part * part)

    x, mask = _x(2, 3), np.array([1, 0, 1])
    for module in (Cube(), Tame(), Other()):
        model = nn.Sequential(nn.Linear(3, 3), module).double()
        relevant, irrelevant = interpret.cd(model, x, mask)
        assert_allclose(relevant + irrelevant, model(x).detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (F.relu, "ReluBackward0"),
        (F.linear, "AddmmBackward0"),
        (F.conv2d, "ConvolutionBackward0"),
        (F.max_pool2d, "MaxPool2DWithIndicesBackward0"),
        (F.softmax, "SoftmaxBackward0"),
        (F.layer_norm, "NativeLayerNormBackward0"),
        (minitorch.tanh, "TanhBackward0"),
        (minitorch.cat, "CatBackward0"),
        (minitorch.matmul, "MmBackward0"),
    ],
)
def test_an_op_says_what_it_records(op, name):
    assert registry.node_name(op) == name


def test_what_is_no_op():
    with pytest.raises(TypeError, match="composed of"):
        interpret.register_rule(F.softsign)
    with pytest.raises(TypeError, match="not int"):
        interpret.register_rule(3)
    with pytest.raises(TypeError, match="not a subclass"):
        interpret.register_rule(dict)
    with pytest.raises(TypeError, match="cannot tell what"):
        interpret.register_rule(len)


def test_a_rule_for_a_linear_op_replaces_the_general_one():
    model, x = _apply(lambda x: x.cumsum(1)), _x(2, 3)
    before = interpret.cd(model, x, np.array([1, 0, 1]))
    seen = []

    @interpret.register_rule("CumsumBackward0")
    def rule(call, x):
        seen.append(call.name)
        return x.map(lambda part: part.cumsum(2))

    for part, general in zip(interpret.cd(model, x, np.array([1, 0, 1])), before, strict=True):
        assert_allclose(part, general, rtol=1e-12)
    assert seen == ["CumsumBackward0"]


def test_a_rule_that_returns_nonsense():
    x, mask = _x(2, 3), np.ones(3)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).double()
    interpret.register_rule("TanhBackward0")(lambda call, x: (x, x))
    with pytest.raises(RuntimeError, match="2 parts for 1 outputs"):
        interpret.cd(model, x, mask)
    interpret.register_rule("TanhBackward0")(lambda call, x: x.map(lambda part: part[:, :1]))
    with pytest.raises(RuntimeError, match=r"parts of shape \[1, 1, 3\]"):
        interpret.cd(model, x, mask)


class _Double(minitorch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@pytest.mark.parametrize(
    ("forward", "error", "message"),
    [
        (lambda x: _Double.apply(x) + 1, NotImplementedError, "not a recorded op"),
        (lambda x: x.detach() * 2 + x, NotImplementedError, "detach"),
        (lambda x: (x > 0).to(minitorch.float64), ValueError, "does not depend on the input"),
        (lambda x: F.softmax(x, 1) * 2, ValueError, "stay whole"),
        (lambda x: 3.0, TypeError, "must return a tensor"),
        (lambda x: F.linear(x, x[:2, :3]), NotImplementedError, "weight or bias"),
    ],
    ids=["function", "detach", "comparison", "softmax", "number", "weight"],
)
def test_what_cannot_be_followed(forward, error, message):
    with pytest.raises(error, match=message):
        interpret.cd(_apply(forward), _x(2, 3), np.ones(3))


def test_a_constant_that_changes_after_its_use():
    def forward(x):
        shift = minitorch.ones(3, dtype=minitorch.float64)
        y = x + shift
        shift.add_(1)
        return y

    with pytest.raises(RuntimeError, match="changed in place later"):
        interpret.cd(_apply(forward), _x(2, 3), np.ones(3))


def test_token_ids_are_not_numbers():
    ids = minitorch.tensor(np.array([[1, 2, 0]]))
    for forward in (lambda ids: ids * 2.0, lambda ids: ids.to(minitorch.float64)):
        with pytest.raises(NotImplementedError, match="token ids"):
            interpret.cd(_apply(forward), ids, np.ones(3))
    model = nn.Embedding(4, 2)
    with pytest.raises(ValueError, match="0 or 1"):
        interpret.cd(model, ids, np.full(3, 0.5))


def test_arguments():
    model, x = nn.Linear(3, 2).double(), _x(2, 3)
    with pytest.raises(ValueError, match="does not broadcast"):
        interpret.cd(model, x, np.ones(4))
    with pytest.raises(ValueError, match="bias must be one of exact, golden"):
        interpret.cd(model, x, np.ones(3), bias="half")
    with pytest.raises(ValueError, match="lstm_bias must be one of"):
        interpret.cd(model, x, np.ones(3), lstm_bias="none")
    with pytest.raises(TypeError, match="inputs must be Tensors"):
        interpret.cd(model, x.numpy(), np.ones(3))
    with pytest.raises(ValueError, match="every mask is None"):
        interpret.cd(model, x, (None,))
    with pytest.raises(ValueError, match="1 inputs need as many masks"):
        interpret.cd(model, x, (np.ones(3), np.ones(3)))
    for mask, message in (
        (np.array([255, 0, 0], np.uint8), "goes from 0 to 255"),
        ([1, -1, 0], "goes from -1 to 1"),
        ([1.0, np.nan, 0.0], "nan or inf"),
        (["a", "b", "c"], "a mask holds numbers"),
        (np.ones((0, 2, 3)), "there are no masks"),
    ):
        with pytest.raises(ValueError, match=message):
            interpret.cd(model, x, mask)


def test_watching_ends_with_an_error_and_does_not_nest():
    from minitorch.autograd.graph import watch

    seen = []
    with pytest.raises(ZeroDivisionError), watch(lambda *op: seen.append(op)):
        _x(2) + 1
        raise ZeroDivisionError
    _x(2) + 1
    assert len(seen) == 1
    with watch(print), pytest.raises(RuntimeError, match="watched already"), watch(print):
        pass
