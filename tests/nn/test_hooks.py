"""Forward and backward hooks: when they run, what they see, what they may replace."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch
from minitorch import nn as layers
from minitorch.nn.modules import module as module_file


class Double(layers.Module):
    def forward(self, x, factor=2.0):
        return x * factor


def test_forward_hooks_in_order_and_replacing() -> None:
    net, log = Double(), []
    first = net.register_forward_pre_hook(lambda m, args: log.append("pre") or (args[0] + 1,))
    net.register_forward_pre_hook(lambda m, args: log.append("first"), prepend=True)
    net.register_forward_hook(lambda m, args, out: log.append("post") or out * 10)
    assert net(minitorch.tensor(1.0)).item() == 40.0
    assert log == ["first", "pre", "post"]
    first.remove()
    assert net(minitorch.tensor(1.0)).item() == 20.0


def test_hooks_with_kwargs() -> None:
    net, seen = Double(), []
    net.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True
    )
    handle = net.register_forward_hook(
        lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True
    )
    assert net(minitorch.tensor(1.0), factor=2.0).item() == 3.0
    assert seen == [{"factor": 3.0}]
    handle.remove()
    assert not net._forward_hooks_with_kwargs
    bad = Double()
    bad.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        bad(minitorch.tensor(1.0))


def test_always_called() -> None:
    class Failing(layers.Module):
        def forward(self, x):
            raise ValueError("no")

    net, log = Failing(), []
    net.register_forward_hook(lambda m, args, out: log.append("plain"))
    net.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    with pytest.raises(ValueError, match="no"):
        net(1)
    assert log == [None]


def test_full_backward_hook_sees_both_borders() -> None:
    net = layers.Linear(2, 1, bias=False)
    with minitorch.no_grad():
        net.weight.copy_(minitorch.tensor([[3.0, 4.0]]))
    log = []
    net.register_full_backward_pre_hook(lambda m, grad_output: log.append(grad_output))
    net.register_full_backward_hook(lambda m, gi, go: log.append((gi, go)))
    x = minitorch.ones(1, 2).requires_grad_()
    (net(x) * 2).sum().backward()
    (pre,), (grad_input, grad_output) = log
    assert pre.tolist() == [[2.0]]
    assert grad_output[0].tolist() == [[2.0]]
    assert grad_input[0].tolist() == [[6.0, 8.0]]
    assert x.grad.tolist() == [[6.0, 8.0]]
    assert net.weight.grad.tolist() == [[2.0, 2.0]]


def test_full_backward_hook_replaces() -> None:
    net = Double()
    net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    net.register_full_backward_pre_hook(lambda m, go: (go[0] + 1,))
    x = minitorch.tensor(1.0, requires_grad=True)
    net(x).backward()
    assert x.grad.item() == 40.0


def test_full_backward_hook_without_input_gradient() -> None:
    net, log = layers.Linear(1, 1), []
    net.register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].item())))
    net(minitorch.ones(1, 1)).sum().backward()
    assert log == [((None,), 1.0)]
    with minitorch.no_grad():
        net(minitorch.ones(1, 1))
    assert len(log) == 1


def test_full_backward_hook_with_several_outputs_and_create_graph() -> None:
    class Two(layers.Module):
        def forward(self, x, y):
            return x * y, y * y

    net, log = Two(), []
    net.register_full_backward_hook(lambda m, gi, go: log.append((gi, go)))
    x = minitorch.tensor(2.0, requires_grad=True)
    y = minitorch.tensor(3.0, requires_grad=True)
    product, _ = net(x, y)
    (grad,) = minitorch.autograd.grad(product, y, create_graph=True)
    assert grad.item() == 2.0
    (second,) = minitorch.autograd.grad(grad, x)
    assert second.item() == 1.0
    assert log[0][1][1] is None


def test_wrong_number_of_gradients() -> None:
    net = Double()
    net.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    x = minitorch.tensor(1.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        net(x).backward()


def test_global_hooks() -> None:
    log = []
    handles = [
        module_file.register_module_forward_pre_hook(lambda m, args: log.append("pre")),
        module_file.register_module_forward_hook(lambda m, args, out: log.append("post")),
        module_file.register_module_full_backward_hook(lambda m, gi, go: log.append("back")),
    ]
    try:
        x = minitorch.ones(1, 1).requires_grad_()
        layers.Sequential(layers.ReLU())(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert log == ["pre", "pre", "post", "post", "back", "back"]
    layers.ReLU()(minitorch.ones(1))
    assert len(log) == 6


def test_hooks_that_remove_themselves() -> None:
    net, log = Double(), []
    handle = net.register_forward_hook(lambda m, args, out: (log.append(1), handle.remove())[0])
    net(minitorch.tensor(1.0))
    net(minitorch.tensor(1.0))
    assert log == [1]
    with net.register_forward_hook(lambda m, args, out: log.append(2)):
        net(minitorch.tensor(1.0))
    net(minitorch.tensor(1.0))
    assert log == [1, 2]


def test_values_are_unchanged_by_markers() -> None:
    net = layers.Linear(2, 2)
    x = minitorch.ones(3, 2)
    plain = net(x).detach().numpy()
    net.register_full_backward_hook(lambda m, gi, go: None)
    assert np.array_equal(net(x).detach().numpy(), plain)
