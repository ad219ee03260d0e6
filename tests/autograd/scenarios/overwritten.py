"""Values that a gradient needs, overwritten in place before it is computed."""

from __future__ import annotations

from .registry import leaf, scenario


@scenario
def overwritten_input(t):
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    x = a * 2
    y = x * b
    x.add_(1)
    y.sum().backward()


@scenario
def overwritten_output(t):
    y = leaf(t, 1.0, 2.0).exp()
    y.mul_(2)
    y.sum().backward()


@scenario
def overwritten_through_view(t):
    x = leaf(t, 1.0, 2.0) * 1
    y = x.sin()
    x[0].add_(1)
    y.sum().backward()


@scenario
def overwritten_through_base(t):
    x = leaf(t, 1.0, 2.0, 3.0) * 1
    y = x[1:].sin()
    x.add_(1)
    y.sum().backward()


@scenario
def overwritten_through_detached(t):
    y = leaf(t, 1.0, 2.0).tanh()
    y.detach().zero_()
    y.sum().backward()


@scenario
def written_through_data_is_unseen(t):
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    y.data.mul_(2)
    y.sum().backward()
    return x.grad, y._version


@scenario
def overwritten_under_no_grad(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    with t.no_grad():
        x.mul_(2)
    y.sum().backward()


@scenario
def not_saved_may_be_overwritten(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = y + 1
    y.mul_(3)
    (z + y).sum().backward()
    return x.grad


@scenario
def pow_inplace_saves_itself(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    y.pow_(2)
    y.sum().backward()
    return x.grad


@scenario
def sigmoid_inplace(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    y.sigmoid_()
    y.sum().backward()
    return x.grad


@scenario
def exp_inplace_twice(t):
    x = leaf(t, 0.5, 0.25)
    y = x * 1
    y.exp_()
    y.exp_()
    y.sum().backward()


@scenario
def mul_inplace_by_itself(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    y *= y
    y.sum().backward()
