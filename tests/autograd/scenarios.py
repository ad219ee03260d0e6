"""Small programs about views, in-place writes, hooks, modes and errors, run under both libraries.

Each takes the module (``torch`` or ``minitorch``) and returns numbers, strings or tensors. What
PyTorch answered, errors included, is recorded in ``tests/golden/autograd.json`` by
``tests/golden/record_autograd.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCENARIOS: dict[str, Callable] = {}


def scenario(function: Callable) -> Callable:
    SCENARIOS[function.__name__] = function
    return function


def answer(function: Callable, t: Any) -> Any:
    """Run a scenario; an exception is an answer too."""
    try:
        return plain(function(t))
    except Exception as error:
        return {"error": type(error).__name__, "message": stem(error)}


def stem(error: Exception) -> str:
    """Return the part of a message that both libraries share."""
    text = str(error).split("\n")[0]
    for end in (
        " Use detach().clone()",
        "  If you were attempting",
        " You can set the tensor's grad_dtype",
        " Hint: ",
        ", which is output",
    ):
        text = text.partition(end)[0]
    return text[:200].partition(" is at version")[0]


def plain(value: Any) -> Any:
    """Turn tensors and tuples into what JSON holds."""
    if hasattr(value, "requires_grad"):
        numbers = value.detach().double().reshape(-1).tolist()
        return {"shape": list(value.shape), "dtype": str(value.dtype), "values": numbers}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return round(value, 6)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def message(function: Callable, *args: Any) -> str:
    try:
        function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {stem(error)}"
    return "no error"


def leaf(t: Any, *values: float) -> Any:
    return t.tensor(list(values), requires_grad=True)


# -- leaves and errors ---------------------------------------------------------------------------


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


# -- in-place histories --------------------------------------------------------------------------


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


# -- accumulation, grad(), inputs=, create_graph -------------------------------------------------


@scenario
def gradients_accumulate(t):
    x = leaf(t, 1.0, 2.0)
    for _ in range(3):
        (x * 2).sum().backward()
    return x.grad


@scenario
def diamond(t):
    x = leaf(t, 1.0, 2.0)
    a = x * 2
    b, c = a.exp(), a.sin()
    (b * c + a).sum().backward()
    return x.grad


@scenario
def grad_unused(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    t.autograd.grad(x * 2, [x, y])


@scenario
def grad_unused_allowed(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    return t.autograd.grad(x * 2, [x, y], allow_unused=True)


@scenario
def grad_materialized(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    return t.autograd.grad(x * 2, [x, y], materialize_grads=True)


@scenario
def grad_of_constant_input(t):
    x = leaf(t, 1.0)
    t.autograd.grad(x * 2, t.ones(1))


@scenario
def grad_with_respect_to_inner(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    z = (y * y).sum()
    gy, gx = t.autograd.grad(z, [y, x])
    return gy, gx, x.grad


@scenario
def grad_of_several_outputs(t):
    x = leaf(t, 1.0, 2.0)
    return t.autograd.grad([x * 2, x * x], x, [t.ones(2), t.tensor([1.0, 10.0])])


@scenario
def third_derivative(t):
    x = leaf(t, 2.0)
    g = x**4
    results = []
    for _ in range(3):
        (g,) = t.autograd.grad(g, x, create_graph=True)
        results.append(g)
    return results


@scenario
def gradient_penalty(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 0.5, -1.0)
    y = t.tanh(x * w).sum()
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (g.norm() - 1).pow(2).backward()
    return x.grad, w.grad


@scenario
def create_graph_leaves_grad_with_history(t):
    x = leaf(t, 3.0)
    (x**3).backward(create_graph=True)
    g = x.grad
    return g, g.requires_grad


@scenario
def backward_inputs(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    (x * y).backward(inputs=[x])
    return x.grad, y.grad


@scenario
def backward_inputs_inner(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    return y.grad, x.grad


@scenario
def backward_inputs_empty(t):
    leaf(t, 1.0).sum().backward(inputs=[])


@scenario
def backward_on_leaf(t):
    x = leaf(t, 1.0)
    x.backward()
    x.backward(t.tensor([2.0]))
    return x.grad


@scenario
def several_roots(t):
    x = leaf(t, 1.0, 2.0)
    t.autograd.backward([x.sum(), (x * x).sum()])
    return x.grad


@scenario
def unused_output_of_split(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    a, _ = x.split([1, 2])
    (a * 5).sum().backward()
    return x.grad


@scenario
def max_ties(t):
    x = leaf(t, 1.0, 3.0, 3.0)
    x.max().backward()
    first = x.grad.clone()
    x.grad = None
    x.amax().backward()
    second = x.grad.clone()
    x.grad = None
    x.max(0).values.backward()
    return first, second, x.grad


@scenario
def kinks(t):
    x = leaf(t, 0.0, 0.0)
    results = []
    for f in (
        lambda x: x.abs(),
        lambda x: x.relu(),
        lambda x: x.clamp(0, 1),
        lambda x: x.norm(),
        lambda x: t.maximum(x, x.detach()),
        lambda x: x**0,
        lambda x: x.std(),
        lambda x: x.prod(),
        lambda x: x.norm(1),
        lambda x: x**1.0,
        lambda x: t.pow(x, t.tensor([0.0, 2.0])),
        lambda x: t.where(x > 0, x, x * 2),
    ):
        (g,) = t.autograd.grad(f(x).sum(), x, allow_unused=True)
        results.append(g)
    return results


# -- modes ---------------------------------------------------------------------------------------


@scenario
def modes(t):
    x = leaf(t, 1.0)
    seen = []
    with t.no_grad():
        seen.append((x * 2).requires_grad)
        with t.enable_grad():
            seen.append((x * 2).requires_grad)
        seen.append((x * 2).requires_grad)
    with t.set_grad_enabled(False):
        seen.append((x * 2).requires_grad)
    seen.append((x * 2).requires_grad)
    with t.inference_mode():
        seen.append((x * 2).requires_grad)
        seen.append(t.is_inference_mode_enabled())
    seen.append(t.is_grad_enabled())
    t.set_grad_enabled(False)
    seen.append(t.is_grad_enabled())
    t.set_grad_enabled(True)
    return seen


@scenario
def modes_as_decorators(t):
    @t.no_grad()
    def f():
        return t.is_grad_enabled()

    @t.no_grad
    def f2():
        return t.is_grad_enabled()

    @t.set_grad_enabled(False)
    def g():
        return t.is_grad_enabled()

    @t.no_grad()
    def h():
        yield t.is_grad_enabled()
        yield t.is_grad_enabled()

    between = [[inside, t.is_grad_enabled()] for inside in h()]

    @t.inference_mode()
    def i():
        return t.is_grad_enabled()

    return f(), f2(), g(), between, i(), t.is_grad_enabled()


@scenario
def mode_restored_when_the_body_raises(t):
    try:
        with t.no_grad():
            raise KeyError
    except KeyError:
        pass
    return t.is_grad_enabled()


@scenario
def creation_requires_grad_under_no_grad(t):
    with t.no_grad():
        x = t.ones(2, requires_grad=True)
        y = x.detach().requires_grad_()
    return x.requires_grad, y.requires_grad


# -- hooks ---------------------------------------------------------------------------------------


@scenario
def tensor_hook_changes_the_gradient(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    handle = x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    handle.remove()
    y.sum().backward()
    return first, x.grad


@scenario
def hooks_run_in_order(t):
    order = []
    x = leaf(t, 1.0)
    x.register_hook(lambda g: order.append("first"))
    x.register_hook(lambda g: order.append("second"))
    x.register_post_accumulate_grad_hook(lambda p: order.append(f"after {p.grad.item()}"))
    (x * 2).backward()
    return order


@scenario
def hooks_see_walk_order(t):
    order = []
    x = leaf(t, 1.0)
    w = leaf(t, 2.0)
    for name, p in (("x", x), ("w", w)):
        p.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    a = x * 2
    b = a * w
    c = b.exp()
    for name, y in (("a", a), ("b", b), ("c", c)):
        y.register_hook(lambda g, name=name: order.append(name))
    c.backward()
    return order


@scenario
def post_accumulate_hook_on_result(t):
    (leaf(t, 1.0) * 2).register_post_accumulate_grad_hook(lambda p: None)


@scenario
def post_accumulate_hook_may_clear(t):
    x = leaf(t, 1.0)
    seen = []

    def hook(p):
        seen.append(p.grad.item())
        p.grad = None

    x.register_post_accumulate_grad_hook(hook)
    (x * 2).backward()
    (x * 3).backward()
    return seen, x.grad


@scenario
def hook_of_wrong_type(t):
    x = leaf(t, 1.0)

    def hook(g):
        return 3

    x.register_hook(hook)
    (x * 2).backward()


@scenario
def hook_of_wrong_shape(t):
    x = leaf(t, 1.0)

    def hook(g):
        return t.ones(5)

    x.register_hook(hook)
    (x * 2).backward()


@scenario
def node_hooks(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    z = y.exp()
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0].clone(), go[0].clone())))
    y.grad_fn.register_prehook(lambda go: (go[0] * 2,))
    z.sum().backward()
    return seen, x.grad


@scenario
def node_hook_replaces(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 100,) + tuple(gi[1:]))
    y.sum().backward()
    return x.grad


@scenario
def callbacks_run_once_at_the_end(t):
    order = []
    queue = t.autograd.Variable._execution_engine.queue_callback
    x = leaf(t, 1.0)
    y = x * 2
    y.register_hook(lambda g: queue(lambda: order.append("end")))
    x.register_post_accumulate_grad_hook(lambda p: order.append("leaf"))
    y.backward()
    (x * 2).backward()
    return order


@scenario
def callback_outside_backward(t):
    t.autograd.Variable._execution_engine.queue_callback(lambda: None)


@scenario
def raising_hook_leaves_the_engine_usable(t):
    order = []
    queue = t.autograd.Variable._execution_engine.queue_callback
    x = leaf(t, 1.0)
    y = x * 2

    def bad(g):
        queue(lambda: order.append("dropped"))
        raise ValueError("from the hook")

    handle = y.register_hook(bad)
    order.append(message(y.backward))
    handle.remove()
    (x * 5).backward()
    return order, x.grad, t.is_grad_enabled()


@scenario
def backward_inside_a_hook(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    y = x * 2

    def hook(g):
        (w * 5).sum().backward()

    y.register_hook(hook)
    (y * 3).backward()
    return x.grad, w.grad


@scenario
def retain_grad_of_inner(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, y.retains_grad, x.retains_grad


# -- graph inspection ----------------------------------------------------------------------------


@scenario
def node_names(t):
    x = t.ones(2, 3, requires_grad=True)
    results = [
        x + 1,
        x - x,
        2 - x,
        x * 2,
        x / 2,
        -x,
        x**2,
        x @ x.t(),
        x.exp(),
        x.log(),
        x.sqrt(),
        x.sum(),
        x.sum(1),
        x.mean(),
        x.mean(1),
        x.relu(),
        x.tanh(),
        x.sigmoid(),
        x.t(),
        x.transpose(0, 1),
        x.permute(1, 0),
        x.view(-1),
        x.reshape(6),
        x.unsqueeze(0),
        x.expand(4, 2, 3),
        x[0],
        x[:, 1:],
        x[[0, 1]],
        x.clone(),
        x.abs(),
        x.double(),
        x.max(),
        x.amax(1),
        x.clamp(0, 1),
        t.cat([x, x]),
        t.stack([x, x]),
        t.where(x > 0, x, x),
        x.var(),
        x.std(),
        x.cumsum(0),
        x.gather(0, t.tensor([[0, 0, 0]])),
        x.masked_fill(x > 0, 0),
        x.unbind(0)[0],
        x.split(1)[0],
        x.log1p(),
        x.expm1(),
        x.flip(0),
        x.roll(1, 0),
        x.tril(),
        x.sort().values,
        x.logsumexp(0),
        x.prod(),
        x.index_select(0, t.tensor([0])),
        t.maximum(x, x),
        x.pow(x),
        t.nn.functional.gelu(x),
        t.nn.functional.softplus(x),
        x.squeeze(),
        t.bmm(x[None], x.t()[None]),
        x.norm(),
    ]
    return [each.grad_fn.name() for each in results]


@scenario
def next_functions(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    y = x * 2 + w
    (first, i), (second, j) = y.grad_fn.next_functions
    return [
        first.name(),
        i,
        second.name(),
        j,
        second.variable is w,
        first.next_functions[0][0].name(),
        first.next_functions[0][0].variable is x,
    ]


@scenario
def leaf_facts(t):
    x = leaf(t, 1.0)
    y = x * 2
    return [x.is_leaf, y.is_leaf, x.grad_fn, x.requires_grad, y.requires_grad, y.detach().is_leaf]


@scenario
def view_facts(t):
    x = t.arange(6.0)
    v = x.view(2, 3)
    w = v.t()
    return [
        x._is_view(),
        v._is_view(),
        w._base is x,
        w.is_contiguous(),
        w.stride(),
        v[1].storage_offset(),
        x.data_ptr() == v.data_ptr(),
        w.contiguous().stride(),
        v.expand(2, 2, 3).stride(),
    ]


# -- Function ------------------------------------------------------------------------------------


def _square(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, power):
            ctx.save_for_backward(x)
            ctx.power = power
            return x**power

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.power * x ** (ctx.power - 1), None

    return Square


@scenario
def function_first_and_second_order(t):
    x = leaf(t, 1.0, 2.0)
    y = _square(t).apply(x, 3)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    return y, g, h, y.grad_fn.name(), y.grad_fn.power


@scenario
def function_backward_twice(t):
    y = _square(t).apply(leaf(t, 1.0, 2.0), 3).sum()
    y.backward()
    y.backward()


@scenario
def function_saved_output_overwritten(t):
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = leaf(t, 1.0)
    y = Exp.apply(x)
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (h,) = t.autograd.grad(g, x)
    y = Exp.apply(x)
    y.mul_(2)
    return g, h, message(y.backward)


@scenario
def function_several_outputs(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, x * 3, index

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append([a is None, b is None, c is None])
            return a * 2 if b is None else a * 2 + b * 3

    seen = []
    x = leaf(t, 1.0, 2.0)
    a, b, index = Two.apply(x)
    a.sum().backward()
    a, b, index = Two.apply(x)
    (a + b).sum().backward()
    return seen, x.grad, index.requires_grad, b.requires_grad


@scenario
def function_materializes(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    x = leaf(t, 1.0, 2.0)
    Two.apply(x)[0].sum().backward()
    return x.grad


@scenario
def function_in_place(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(t, 1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    (z * z).sum().backward()
    return z is y, y, x.grad, y._version


@scenario
def function_returns_its_input(t):
    class Same(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    x = leaf(t, 1.0, 2.0)
    y = Same.apply(x)
    y.sum().backward()
    return y is x, x.grad, x.is_leaf


@scenario
def function_wrong_count(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad

    F.apply(leaf(t, 1.0), leaf(t, 1.0)).backward()


@scenario
def function_gradient_for_number(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    F.apply(leaf(t, 1.0), 2.0).backward()


@scenario
def function_wrong_shape(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return t.ones(3)

    F.apply(leaf(t, 1.0, 2.0)).sum().backward()


@scenario
def function_broadcast_gradient_is_summed(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return t.ones(3, 2)

    x = leaf(t, 1.0, 2.0)
    F.apply(x).sum().backward()
    return x.grad


@scenario
def function_setup_context(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            needs.append(ctx.needs_input_grad)
            return grad * y, grad * x

    needs = []
    x, y = leaf(t, 2.0), t.tensor([3.0])
    F.apply(x, y).backward()
    return x.grad, needs


@scenario
def function_once_differentiable(t):
    from importlib import import_module

    once = import_module(f"{t.__name__}.autograd.function").once_differentiable

    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(t, 2.0)
    (g,) = t.autograd.grad(F.apply(x), x, create_graph=True)
    return g, message(g.backward)


# -- checkpoint ----------------------------------------------------------------------------------


def _checkpointed(t, reentrant):
    calls = []
    w = leaf(t, 0.5, -0.5)

    def part(x):
        calls.append(1)
        return t.tanh(x * w).exp() * t.nn.functional.dropout(t.ones(2), 0.5)

    x = leaf(t, 1.0, 2.0)
    t.manual_seed(3)
    y = t.utils.checkpoint.checkpoint(part, x, use_reentrant=reentrant)
    count = len(calls)
    y.sum().backward()
    return y, count, len(calls), x.grad, w.grad


@scenario
def checkpoint_reentrant(t):
    import_checkpoint(t)
    return _checkpointed(t, True)


@scenario
def checkpoint_not_reentrant(t):
    import_checkpoint(t)
    return _checkpointed(t, False)


def import_checkpoint(t):
    from importlib import import_module

    import_module(f"{t.__name__}.utils.checkpoint")


@scenario
def checkpoint_second_order(t):
    import_checkpoint(t)
    x, w = leaf(t, 0.3, 0.7), leaf(t, 1.0, -2.0)
    y = t.utils.checkpoint.checkpoint(lambda x: (x * w).sin() * w, x, use_reentrant=False)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), w)
    return g, h


@scenario
def checkpoint_reentrant_refuses_grad(t):
    import_checkpoint(t)
    x = leaf(t, 0.3, 0.7)
    y = t.utils.checkpoint.checkpoint(lambda x: x.sin(), x, use_reentrant=True)
    t.autograd.grad(y.sum(), x)


@scenario
def checkpoint_nested(t):
    import_checkpoint(t)
    check = t.utils.checkpoint.checkpoint

    def inner(x):
        return x.exp() * x

    def outer(x):
        return check(inner, x.sin(), use_reentrant=False).tanh()

    x = leaf(t, 0.3, 0.7)
    check(outer, x, use_reentrant=False).sum().backward()
    return x.grad


@scenario
def checkpoint_only_parameters_need_grad(t):
    import_checkpoint(t)
    w = leaf(t, 1.0, 2.0)
    x = t.tensor([3.0, 4.0])
    t.utils.checkpoint.checkpoint(lambda x: x * w * w, x, use_reentrant=False).sum().backward()
    return w.grad


# -- data types ----------------------------------------------------------------------------------


@scenario
def mixed_types_get_their_own_gradients(t):
    a = t.ones(2, requires_grad=True)
    b = t.full((2,), 2.0, dtype=t.float64, requires_grad=True)
    c = t.tensor(3.0, dtype=t.float64, requires_grad=True)
    h = t.ones(2, dtype=t.float16, requires_grad=True)
    ((a * b).sum() + (a * c).sum() + (h * a).sum()).backward()
    return a.grad, b.grad, c.grad, h.grad, (a * c).dtype


@scenario
def half_products(t):
    x = (t.arange(6.0).reshape(2, 3) / 3).half().requires_grad_()
    y = (t.arange(6.0).reshape(3, 2) / 7).half().requires_grad_()
    z = x @ y
    z.sum().backward()
    return z, x.grad, y.grad


@scenario
def bfloat16_arithmetic(t):
    x = t.tensor([1.0, 2.5, 3.25], dtype=t.bfloat16, requires_grad=True)
    y = (x * 2 + 1).exp().sum() + x.mean()
    y.backward()
    return y, x.grad, x.tolist(), x.detach().to(t.float32)


@scenario
def conversions(t):
    x = t.tensor([1.7, -1.7, 0.0, 300.0])
    return [
        x.int(),
        x.long(),
        x.bool(),
        x.half(),
        x.double(),
        x.to(t.int16),
        t.tensor([True, False]).float(),
        t.tensor([1, 2]).to(t.tensor(1.0)),
        t.tensor([300]).to(t.uint8),
        t.tensor([1.5]).to("cpu"),
        x.short(),
    ]


@scenario
def repr_of_many(t):
    return [
        repr(each)
        for each in (
            t.tensor(1.0),
            t.tensor(3),
            t.tensor([1, 20, 300]),
            t.tensor([1.0, 2.5]),
            t.tensor([1e-9, 1.0]),
            t.tensor([1e10, 1.0]),
            t.tensor([float("nan"), float("inf"), 1.0]),
            t.tensor([True, False]),
            t.zeros(0),
            t.zeros(0, 3),
            t.zeros(2, 0, dtype=t.int32),
            t.ones(2, 2, dtype=t.float64),
            t.ones(2, requires_grad=True),
            t.ones(2, requires_grad=True) * 2,
            t.arange(2000.0),
            t.arange(40),
            t.arange(24.0).reshape(2, 3, 4) / 7,
            t.arange(5000).reshape(50, 100),
            t.tensor([-1.5, 22.25]),
            t.tensor([1.0, 100000.0]),
            t.tensor([0.001, 0.0]),
            t.tensor([1.5], dtype=t.float16),
            t.tensor([1.5], dtype=t.bfloat16),
            t.tensor(2.5, requires_grad=True).exp(),
            t.ones(3, 3, dtype=t.float64, requires_grad=True) @ t.ones(3, 3, dtype=t.float64),
            t.tensor(-7, dtype=t.int8),
            t.tensor([[1.0, -2.0], [3.0, 4.0]]),
            t.tensor(float("inf")),
            t.tensor(1e-7),
            t.tensor([123456.789]),
        )
    ]


@scenario
def more_in_place_methods(t):
    results = []
    for name, args in (
        ("neg_", ()),
        ("abs_", ()),
        ("sqrt_", ()),
        ("log_", ()),
        ("sin_", ()),
        ("tanh_", ()),
        ("floor_", ()),
        ("reciprocal_", ()),
        ("pow_", (3,)),
        ("remainder_", (0.7,)),
        ("clamp_min_", (1.1,)),
        ("lerp_", (t.tensor([5.0, 6.0]), 0.5)),
        ("addcmul_", (t.tensor([5.0, 6.0]), t.tensor([2.0, 3.0]))),
        ("index_fill_", (0, t.tensor([1]), 9.0)),
        ("index_add_", (0, t.tensor([1]), t.tensor([9.0]))),
        ("index_copy_", (0, t.tensor([1]), t.tensor([9.0]))),
        ("index_put_", ((t.tensor([1]),), t.tensor([9.0]))),
        ("masked_scatter_", (t.tensor([False, True]), t.tensor([9.0]))),
    ):
        x = leaf(t, 1.3, 2.1)
        y = x * 1
        outcome = message(
            lambda y=y, name=name, args=args: getattr(y, name)(*args).sum().backward()
        )
        results.append([name, outcome, y, x.grad])
    return results
