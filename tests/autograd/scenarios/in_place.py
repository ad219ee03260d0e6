"""In-place writes on record: whose gradient goes where."""

from __future__ import annotations

from .registry import leaf, scenario


@scenario
def inplace_chain(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.add_(1).mul_(3)
    y -= x
    y /= 2
    y.sum().backward()
    return y, x.grad, y._version, y.grad_fn.name()


@scenario
def write_to_view_changes_base(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 1
    y[1:].mul_(10)
    (y * t.tensor([1.0, 2.0, 3.0])).sum().backward()
    return y, x.grad, y.grad_fn.name()


@scenario
def write_to_base_changes_view(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 1
    v = y[1:]
    y.mul_(10)
    v.sum().backward()
    return v, x.grad


@scenario
def write_to_one_view_changes_another(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(10)
    b.sum().backward()
    return b, x.grad


@scenario
def views_of_views(t):
    x = t.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    v = y.t()[1:]
    w = v.unsqueeze(0)[..., 0]
    w.mul_(5)
    (y * y.detach()).sum().backward()
    return y, x.grad, v.grad_fn is not None


@scenario
def write_then_view_then_write(t):
    x = leaf(t, 1.0, 2.0, 3.0, 4.0)
    y = x * 2
    y[0] = x[3] * 3
    z = y.view(2, 2)
    z[1] += z[0]
    y.mul_(2)
    (z * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return y, x.grad


@scenario
def write_with_history_into_constant(t):
    x = leaf(t, 1.0, 2.0)
    buffer = t.zeros(4)
    early = buffer[:2]
    buffer[1:3] = x * 3
    late = buffer[1:]
    (early.sum() + (late * late).sum()).backward()
    return buffer.requires_grad, early.requires_grad, x.grad


@scenario
def fill_a_buffer_in_a_loop(t):
    x = leaf(t, 0.5, -0.5)
    out = t.zeros(3, 2)
    state = x
    for step in range(3):
        state = t.tanh(state * 2)
        out[step] = state
    (out * t.arange(6.0).reshape(3, 2)).sum().backward()
    return out, x.grad


@scenario
def setitem_with_tensor_index(t):
    x, v = leaf(t, 1.0, 2.0, 3.0), leaf(t, 10.0, 20.0)
    y = x * 1
    y[t.tensor([2, 0])] = v
    (y * t.tensor([1.0, 2.0, 3.0])).sum().backward()
    return y, x.grad, v.grad


@scenario
def setitem_with_mask(t):
    x = leaf(t, 1.0, -2.0, 3.0)
    y = x * 1
    y[y < 0] = 0
    (y * y).sum().backward()
    return y, x.grad


@scenario
def setitem_broadcast_number_and_row(t):
    x, v = t.ones(2, 3, requires_grad=True), leaf(t, 1.0, 2.0, 3.0)
    y = x * 2
    y[:, 0] = 7
    y[0] = v
    (y * y).sum().backward()
    return y, x.grad, v.grad


@scenario
def copy_from_tensor_with_history(t):
    x, v = leaf(t, 1.0, 2.0), leaf(t, 5.0)
    y = x * 2
    y.copy_(v)
    (y * t.tensor([1.0, 3.0])).sum().backward()
    return y, x.grad, v.grad


@scenario
def zero_and_fill(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = x * 3
    y.zero_()
    z.fill_(4)
    (y + z + x).sum().backward()
    return y, z, x.grad


@scenario
def clamp_inplace(t):
    x = leaf(t, -2.0, 0.5, 2.0)
    y = x * 1
    y.clamp_(-1, 1)
    (y * y).sum().backward()
    return y, x.grad


@scenario
def masked_fill_inplace(t):
    x = leaf(t, -2.0, 0.5, 2.0)
    y = x * 1
    y.masked_fill_(t.tensor([True, False, False]), 9)
    (y * y).sum().backward()
    return y, x.grad


@scenario
def scatter_inplace(t):
    x, s = leaf(t, 1.0, 2.0, 3.0), leaf(t, 7.0, 8.0)
    y = x * 1
    y.scatter_(0, t.tensor([2, 0]), s)
    y.scatter_add_(0, t.tensor([1, 1]), s)
    (y * y).sum().backward()
    return y, x.grad, s.grad


@scenario
def write_into_strided_view(t):
    x = t.arange(12.0).reshape(3, 4).requires_grad_()
    y = x * 1
    y[::2, 1::2] = y[::2, ::2] * 10
    (y * t.arange(12.0).reshape(3, 4)).sum().backward()
    return y, x.grad


@scenario
def write_into_diagonal_view(t):
    x = t.ones(3, 3, requires_grad=True)
    y = x * 2
    y.diagonal().mul_(5) if hasattr(t, "_C") else y.__setitem__(
        (t.arange(3), t.arange(3)), y[t.arange(3), t.arange(3)] * 5
    )
    (y * y).sum().backward()
    return y, x.grad
