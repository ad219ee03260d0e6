"""Leaves: what may be asked of them and done to them, and the errors if not."""

from __future__ import annotations

from answers import message

from .registry import leaf, scenario


@scenario
def inplace_on_leaf(t):
    leaf(t, 1.0, 2.0).add_(1)


@scenario
def inplace_on_leaf_under_no_grad(t):
    x = leaf(t, 1.0, 2.0)
    with t.no_grad():
        x.add_(1)
    (x * x).sum().backward()
    return x, x.grad, x._version, x.is_leaf


@scenario
def setitem_on_leaf(t):
    x = leaf(t, 1.0, 2.0)
    x[0] = 5


@scenario
def inplace_on_view_of_leaf(t):
    x = leaf(t, 1.0, 2.0)
    x[:1].mul_(2)


@scenario
def inplace_on_transposed_view_of_leaf(t):
    x = t.ones(2, 3, requires_grad=True)
    x.t().add_(1)


@scenario
def backward_of_vector(t):
    (leaf(t, 1.0, 2.0) * 2).backward()


@scenario
def backward_without_graph(t):
    t.ones(1).sum().backward()


@scenario
def backward_twice(t):
    y = leaf(t, 1.0, 2.0).exp().sum()
    y.backward()
    y.backward()


@scenario
def backward_twice_nothing_saved(t):
    x = leaf(t, 1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@scenario
def backward_twice_retained(t):
    x = leaf(t, 1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@scenario
def wrong_gradient_shape(t):
    (leaf(t, 1.0, 2.0) * 2).backward(t.ones(3))


@scenario
def assign_grad_of_wrong_shape(t):
    leaf(t, 1.0, 2.0).grad = t.ones(3)


@scenario
def assign_grad_of_wrong_type(t):
    leaf(t, 1.0, 2.0).grad = t.ones(2, dtype=t.float64)


@scenario
def assign_grad_no_tensor(t):
    leaf(t, 1.0, 2.0).grad = 3.0


@scenario
def requires_grad_of_integers(t):
    t.tensor([1, 2]).requires_grad_()


@scenario
def requires_grad_false_on_result(t):
    (leaf(t, 1.0) * 2).requires_grad = False


@scenario
def numpy_of_tensor_that_requires_grad(t):
    leaf(t, 1.0).numpy()


@scenario
def detach_view_in_place(t):
    x = leaf(t, 1.0, 2.0) * 2
    x[0].detach_()


@scenario
def detach_in_place(t):
    x = leaf(t, 1.0, 2.0) * 2
    x.detach_()
    return x.requires_grad, x.is_leaf, x


@scenario
def deepcopy_of_result(t):
    import copy

    copy.deepcopy(leaf(t, 1.0) * 2)


@scenario
def deepcopy_of_leaf(t):
    import copy

    x = leaf(t, 1.0, 2.0)
    x.sum().backward()
    y = copy.deepcopy(x)
    y.grad.add_(1)
    return y, y.grad, x.grad, y.requires_grad


@scenario
def hook_on_constant(t):
    t.ones(2).register_hook(lambda g: g)


@scenario
def retain_grad_on_constant(t):
    t.ones(2).retain_grad()


@scenario
def wider_result_in_place(t):
    t.ones(3).add_(t.ones(2, 3))


@scenario
def float_into_integer_in_place(t):
    t.tensor([1, 2]).add_(0.5)


@scenario
def double_into_float_in_place(t):
    x = t.ones(2)
    x.add_(t.ones(2, dtype=t.float64))
    return x


@scenario
def write_to_expanded(t):
    t.ones(1).expand(3).add_(1)


@scenario
def several_shape_errors(t):
    a, b = t.ones(2, 3), t.ones(4, 5)
    return [
        message(lambda: a + b),
        message(lambda: a @ b),
        message(lambda: a.view(7)),
        message(lambda: a.reshape(-1, -1)),
        message(lambda: a.t().view(-1)),
        message(lambda: a[5]),
        message(lambda: a[0, 0, 0]),
        message(lambda: a.sum(2)),
        message(lambda: a.expand(2, 4)),
        message(lambda: t.cat([a, b])),
        message(lambda: t.stack([a, b])),
        message(lambda: a.squeeze(5)),
        message(lambda: a.permute(0)),
        message(lambda: a.transpose(0, 3)),
        message(lambda: t.ones(()).item() + t.ones(2).item()),
        message(lambda: bool(t.ones(2))),
        message(lambda: len(t.ones(()))),
        message(lambda: t.ones(2, dtype=t.int64).mean()),
        message(lambda: t.ones(3) - (t.ones(3) > 0) * (t.ones(2) > 0)),
        message(lambda: -(t.ones(2) > 0)),
        message(lambda: (t.ones(2) > 0) - (t.ones(2) > 0)),
        message(lambda: t.dot(t.ones(2), t.ones(3))),
        message(lambda: t.ones(2, 2) @ t.ones(2, 2, dtype=t.float64)),
        message(lambda: t.tensor([1, 2]) ** -1),
        message(lambda: t.ones(2, 3).gather(0, t.tensor([[5]]))),
        message(lambda: a.index_select(0, t.tensor([7]))),
        message(lambda: a[::-1]),
        message(lambda: t.ones(0).max()),
        message(lambda: t.ones(0, 3).amax(0)),
        message(lambda: a.topk(9)),
        message(lambda: a.clamp()),
        message(lambda: a.masked_fill(a, 1)),
        message(lambda: a.split([1, 3])),
        message(lambda: a.unbind(4)),
        message(lambda: t.zeros(-1)),
        message(lambda: t.arange(3, 0)),
        message(lambda: t.einsum("ij,jk", a)),
        message(lambda: t.einsum("ij,jk->ik", a, b)),
        message(lambda: a.flatten(1, 0)),
        message(lambda: t.tensor([1.0, 2.0])[0.5]),
        message(lambda: a.__setitem__(0, t.ones(2))),
        message(lambda: a.__setitem__(t.tensor([0, 1]), t.ones(2, 2))),
        message(lambda: a.copy_(t.ones(5))),
        message(lambda: t.tensor(1)[0]),
        message(lambda: int(t.ones(2))),
        message(lambda: t.ones(2).long() // 0),
        message(lambda: a.narrow(0, 1, 5)),
        message(lambda: t.tril(t.ones(2))),
        message(lambda: a.repeat(2)),
    ]
