"""Custom functions: contexts, saved tensors, errors."""

from __future__ import annotations

from answers import message

from .registry import leaf, scenario


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
