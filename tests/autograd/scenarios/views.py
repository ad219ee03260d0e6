"""Writes to views: pieces, expanded, made without recording, overlapping."""

from __future__ import annotations

from .registry import leaf, scenario


@scenario
def write_to_split_piece(t):
    x = leaf(t, 1.0, 2.0) * 1
    x.split(1)[0].add_(1)


@scenario
def write_to_unbound_piece(t):
    x = leaf(t, 1.0, 2.0) * 1
    x.unbind()[1].add_(1)


@scenario
def write_to_chunk_without_grad(t):
    x = t.zeros(4)
    x.chunk(2)[1].add_(1)
    return x


@scenario
def write_to_view_made_under_no_grad(t):
    x = leaf(t, 1.0, 2.0) * 1
    with t.no_grad():
        v = x[:1]
    v.add_(1)


@scenario
def write_under_no_grad_to_view_made_there(t):
    x = leaf(t, 1.0, 2.0)
    with t.no_grad():
        v = x[:1]
        v.add_(1)
    (x * x).sum().backward()
    return x, x.grad


@scenario
def version_counts(t):
    x = t.zeros(4)
    v = x[1:]
    counts = [x._version]
    v.add_(1)
    x.mul_(2)
    x[0] = 3
    counts += [x._version, v._version, x.detach()._version, x.data._version]
    x.detach().add_(1)
    counts += [x._version, x.clone()._version]
    return counts, x


@scenario
def retain_grad_follows_the_write(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return y.grad, x.grad


@scenario
def hook_stays_with_the_value_before_the_write(t):
    seen = []
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()))
    y.mul_(3)
    y.sum().backward()
    return seen, x.grad


@scenario
def expanded_view_of_a_written_base(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    e = y.expand(3, 2)
    y.mul_(2)
    e.sum().backward()
    return e, x.grad


@scenario
def relu_inplace_on_view(t):
    x = t.tensor([[-1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    y = x * 1
    y[:, 1].relu_()
    (y * y).sum().backward()
    return y, x.grad


@scenario
def second_derivative_through_inplace(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    y[0] = y[1] * x[0]
    y.mul_(x.detach())
    (g,) = t.autograd.grad((y * x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    return g, h


@scenario
def set_data(t):
    x = leaf(t, 1.0, 2.0)
    x.data = t.tensor([5.0, 6.0])
    (x * x).sum().backward()
    x.data.add_(1)
    return x, x.grad, x._version


@scenario
def squeeze_view_written(t):
    x = t.ones(1, 3, requires_grad=True)
    y = x * 2
    y.squeeze(0).mul_(t.tensor([1.0, 2.0, 3.0]))
    y.sum().backward()
    return y, x.grad


@scenario
def reshape_that_copies_is_no_view(t):
    x = t.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    z = y.t().reshape(-1)
    z.mul_(2)
    (y.sum() + z.sum()).backward()
    return y, z, x.grad


@scenario
def write_overlapping_parts(t):
    x = t.arange(4.0).requires_grad_()
    y = x * 1
    y[1:] = y[:-1].clone()
    (y * t.arange(4.0)).sum().backward()
    return y, x.grad
