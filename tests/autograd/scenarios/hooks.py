"""Hooks on tensors and nodes, retained gradients, end-of-backward callbacks."""

from __future__ import annotations

from answers import message

from .registry import leaf, scenario


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
