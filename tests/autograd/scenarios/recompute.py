"""checkpoint: activations computed again in backward."""

from __future__ import annotations

from .registry import leaf, scenario


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
