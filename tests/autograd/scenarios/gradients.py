"""backward, grad, accumulation, inputs, create_graph."""

from __future__ import annotations

from .registry import leaf, scenario


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
