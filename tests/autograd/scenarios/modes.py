"""no_grad, enable_grad, inference_mode: as context and decorator."""

from __future__ import annotations

from .registry import leaf, scenario


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
