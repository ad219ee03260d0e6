"""The walk: depth, order, memory, threads, reentrance, what callbacks do when something raises."""

import gc
import threading
import weakref

import numpy as np
import pytest

import minitorch
from minitorch import autograd


def leaf(*shape):
    return minitorch.ones(*shape, requires_grad=True)


@pytest.mark.parametrize("depth", [10_000, 200_000])
def test_deep_graph_is_walked_and_freed_without_recursion(depth):
    x = leaf(2)
    y = x
    for _ in range(depth):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del y  # the chain of nodes is freed here
    gc.collect()


@pytest.mark.parametrize("op", ["sin", "exp", "neg", "t"])
def test_deep_graph_that_nobody_walks_is_freed(op):
    y = minitorch.full((1, 1), 0.5, requires_grad=True)
    for _ in range(50_000):
        y = getattr(y, op)() if op != "exp" else (-y).exp()
    del y


def test_deep_graph_with_two_paths():
    x = leaf(1)
    a = b = x
    for _ in range(5_000):
        a, b = b + 0, a + 0
    (a + b).backward()
    assert x.grad.item() == 2


def test_graph_is_freed_without_the_garbage_collector():
    """No reference cycle: memory of a step is free when the step ends."""
    gc.disable()
    try:
        x = leaf(3)
        y = (x * 2).tanh().exp().sigmoid()
        z = minitorch.stack(y.softmax(0).unbind()) if hasattr(y, "softmax") else y
        watched = [weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(z.grad_fn)]
        z.sum().backward()
        del y, z
        assert [each() for each in watched] == [None] * 3
    finally:
        gc.enable()


def test_leaf_and_its_accumulator_are_no_cycle():
    gc.disable()
    try:
        x = leaf(3)
        node = autograd.grad_accumulator(x)
        watched = weakref.ref(x)
        assert node.variable is x
        assert autograd.grad_accumulator(x) is node
        del x, node
        assert watched() is None
    finally:
        gc.enable()


def test_saved_values_are_freed_during_backward():
    x = leaf(3)
    y = x.exp()
    z = y.sin()
    saved = weakref.ref(y)
    seen = []
    x.register_hook(lambda g: seen.append(saved() is None))
    loss = z.sum()
    del y, z
    loss.backward()
    assert seen == [True]


# -- memory of gradients -------------------------------------------------------------------------


def all_grads(*tensors):
    return [t.grad._array for t in tensors]


def test_no_two_gradients_share_memory():
    a, b, c = leaf(3), leaf(3), leaf(3)
    given = minitorch.ones(3)
    (a + b + c).backward(given)
    grads = [*all_grads(a, b, c), given._array]
    for i, one in enumerate(grads):
        for other in grads[:i]:
            assert not np.shares_memory(one, other)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x.expand(4, 3).sum(),
        lambda x: x.sum(),
        lambda x: x.reshape(3, 1).t().sum(),
        lambda x: x[None][0].sum(),
        lambda x: minitorch.cat([x, x]).sum(),
        lambda x: minitorch.stack([x, x * 2])[0].sum(),
        lambda x: x.unbind()[1] * 2,
        lambda x: (x * 3).mean(),
    ],
)
def test_a_gradient_is_a_writeable_array_of_its_own(build):
    x = leaf(3)
    build(x).backward()
    array = x.grad._array
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert array.base is None
    assert not np.shares_memory(array, x._array)


def test_a_fresh_gradient_is_taken_over_and_a_kept_one_is_copied():
    w = leaf(4, 4)
    pointers = []
    y = minitorch.ones(2, 4) @ w

    def rule(node, grad):
        fresh = np.full((4, 4), 5.0, np.float32)
        pointers.append(fresh.ctypes.data)
        return (fresh,)

    autograd.record(y._array.copy(), rule, (w,)).sum().backward()
    assert w.grad.data_ptr() == pointers[0]

    kept = np.full((4, 4), 7.0, np.float32)
    w.grad = None
    autograd.record(y._array.copy(), lambda node, grad: (kept,), (w,)).sum().backward()
    assert w.grad.data_ptr() != kept.ctypes.data

    w.grad = None
    v = leaf(4, 4)
    shared = autograd.record(
        y._array.copy(), lambda n, g: [np.zeros((4, 4), np.float32)] * 2, (w, v)
    )
    shared.sum().backward()
    assert not np.shares_memory(w.grad._array, v.grad._array)


def test_accumulation_stays_in_the_existing_memory():
    """A gradient that is a view of a bucket must stay one."""
    bucket = minitorch.zeros(10)
    x = leaf(4)
    x.grad = bucket[2:6]
    (x * 3).sum().backward()
    assert bucket.tolist() == [0, 0, 3, 3, 3, 3, 0, 0, 0, 0]


def test_many_contributions_add_up_without_touching_what_others_hold():
    x, seen = leaf(2), []
    y = x * 1
    y.register_hook(lambda g: seen.append(g))
    parts = [y * k for k in range(1, 6)]
    grads = [minitorch.ones(2) for _ in parts]
    autograd.backward(parts, grads)
    assert x.grad.tolist() == [15, 15]
    assert all(g.tolist() == [1, 1] for g in grads)


def test_gradient_has_the_layout_of_its_leaf():
    w = minitorch.from_numpy(np.ones((4, 3), np.float32).T).requires_grad_()
    (minitorch.ones(2, 3) @ w).sum().backward()
    assert w.grad.stride() == w.stride()


# -- reentrance, callbacks, errors ---------------------------------------------------------------


def test_callbacks_run_once_at_the_end_and_may_queue_more():
    order, x = [], leaf(1)

    def last():
        order.append("last")

    def callback():
        order.append("callback")
        autograd.queue_callback(last)

    x.register_post_accumulate_grad_hook(lambda p: autograd.queue_callback(callback))
    (x * 2).backward()
    (x * 2).backward()
    assert order == ["callback", "last"] * 2


def test_queueing_outside_backward_raises():
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        autograd.queue_callback(lambda: None)


def test_hooks_after_accumulation_hear_of_a_rule_that_gave_no_gradient():
    """PyTorch's order of calls, as observed; tensor hooks want a gradient and do not run."""
    x, y = leaf(2), leaf(2)
    heard = []
    nodes = {name: (v * 1).grad_fn.next_functions[0][0] for name, v in (("x", x), ("y", y))}
    for name, variable in (("x", x), ("y", y)):
        hook = lambda grads, outs, name=name: heard.append((name, outs[0] is None))
        nodes[name].register_hook(hook)
        variable.register_post_accumulate_grad_hook(lambda v, name=name: heard.append(name))

    def only_x():
        heard.clear()
        return autograd.record(x._array + y._array, lambda node, g: (g, None), (x, y * 3))

    only_x().sum().backward()
    assert heard == ["x", ("x", False), "y", ("y", True)]
    assert y.grad is None
    only_x().sum().backward(inputs=[x])
    assert heard == ["x", ("x", False)]
    (only_x() + y).sum().backward()
    assert heard[2:] == ["y", ("y", False)]
    autograd.grad(only_x().sum(), [x, y], allow_unused=True)
    assert heard == []


@pytest.mark.parametrize("where", ["tensor", "post", "node", "rule", "callback"])
def test_an_exception_leaves_the_engine_usable(where):
    order, x = [], leaf(2)
    y = x * 2

    def bad(*args):
        autograd.queue_callback(lambda: order.append("must be dropped"))
        raise KeyError("mine")

    z = y
    if where == "tensor":
        handle = y.register_hook(bad)
    elif where == "post":
        handle = x.register_post_accumulate_grad_hook(bad)
    elif where == "node":
        handle = y.grad_fn.register_hook(bad)
    elif where == "rule":
        z, handle = autograd.record(y._array, bad, (y,)), None
    else:
        handle = y.register_hook(lambda g: autograd.queue_callback(bad))
    before = minitorch.is_grad_enabled()
    with pytest.raises(KeyError, match="mine"):
        z.sum().backward()
    assert minitorch.is_grad_enabled() is before
    if handle:
        handle.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert order == []


def test_backward_within_backward_has_its_own_callbacks():
    order, x, w = [], leaf(1), leaf(1)

    def hook(grad):
        autograd.queue_callback(lambda: order.append("outer"))
        with minitorch.enable_grad():
            inner = w * 2
        inner.register_hook(lambda g: autograd.queue_callback(lambda: order.append("inner")))
        inner.backward()
        order.append("inner done")

    (x * 2).register_hook(hook)
    y = x * 3
    y.register_hook(hook)
    y.backward()
    assert order == ["inner", "inner done", "outer"]


def test_backward_through_the_same_graph_from_a_hook():
    x = leaf(1)
    y = x * 2
    seen = []

    def hook(grad):
        if not seen:
            seen.append(None)
            seen[0] = autograd.grad(y, x, retain_graph=True)[0].item()

    x.register_hook(hook)
    y.backward(retain_graph=True)
    assert seen == [2]
    assert x.grad.item() == 2


def test_node_order_is_newest_first():
    order, x = [], leaf(1)
    a = x * 1
    b = x * 1
    c = x * 1
    for name, node in (("a", a), ("b", b), ("c", c)):
        node.grad_fn.register_prehook(lambda g, name=name: order.append(name))
    (a + c + b).backward()
    assert order == ["c", "b", "a"]


def test_leaf_accumulates_as_soon_as_it_is_ready():
    """So that a bucket can be sent while the walk goes on."""
    order, x = [], leaf(1)
    early, late = leaf(1), leaf(1)
    y = (x * late).exp()
    z = y * early
    early.register_post_accumulate_grad_hook(lambda p: order.append("early"))
    late.register_post_accumulate_grad_hook(lambda p: order.append("late"))
    y.grad_fn.register_prehook(lambda g: order.append("exp"))
    z.backward()
    assert order == ["early", "exp", "late"]


# -- threads -------------------------------------------------------------------------------------


def test_each_thread_has_its_own_mode():
    barrier = threading.Barrier(2)
    seen = {}

    def quiet():
        with minitorch.no_grad():
            barrier.wait()
            seen["quiet"] = (leaf(1) * 2).requires_grad
            barrier.wait()

    def recording():
        barrier.wait()
        seen["recording"] = (leaf(1) * 2).requires_grad
        barrier.wait()

    with minitorch.no_grad():  # a thread does not inherit its starter's mode
        threads = [threading.Thread(target=f) for f in (quiet, recording)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {"quiet": False, "recording": True}


def test_threads_walk_at_the_same_time():
    results = [None] * 4

    def run(rank):
        w = minitorch.full((3, 3), float(rank + 1), requires_grad=True)
        for _ in range(20):
            ((minitorch.ones(3, 3) @ w).tanh() * w).sum().backward()
        results[rank] = w.grad.tolist()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank, mine in enumerate(results):
        run(rank)
        assert results[rank] == mine


# -- gradcheck itself ----------------------------------------------------------------------------


def test_gradcheck_finds_a_wrong_gradient():
    def wrong(x):
        return autograd.record(x._array**2, lambda node, grad: (grad * 3.0,), (x,))

    x = minitorch.tensor([1.0, 2.0], dtype=minitorch.float64, requires_grad=True)
    with pytest.raises(autograd.GradcheckError, match="Jacobian mismatch for output 0"):
        autograd.gradcheck(wrong, x)
    assert not autograd.gradcheck(wrong, x, raise_exception=False)


def test_gradcheck_needs_something_to_check():
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        autograd.gradcheck(lambda x: x, minitorch.ones(1))


# -- checkpoint ----------------------------------------------------------------------------------


def test_checkpoint_keeps_no_activations():
    kept = []

    def part(x):
        y = x.exp()
        kept.append(weakref.ref(y))
        return y.sin()

    x = leaf(5)
    out = autograd.checkpoint(part, x, use_reentrant=False)
    gc.collect()
    assert kept[0]() is None
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.e) * np.e, rtol=1e-6)


def test_checkpoint_that_does_something_else_the_second_time_raises():
    calls = []

    def part(x):
        calls.append(None)
        return x.exp() if len(calls) == 1 else x.exp().sin()

    out = autograd.checkpoint(part, leaf(2), use_reentrant=False)
    with pytest.raises(autograd.CheckpointError, match="different number of tensors"):
        out.sum().backward()


def test_checkpoint_second_backward_raises():
    out = autograd.checkpoint(lambda x: x.exp(), leaf(2), use_reentrant=False).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_checkpoint_restores_the_generator():
    minitorch.manual_seed(5)
    x = leaf(4)
    out = autograd.checkpoint(lambda x: x * minitorch.rand(4), x, use_reentrant=False)
    after = minitorch.rand(1).item()
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.detach().numpy())
    minitorch.manual_seed(5)
    minitorch.rand(4)
    assert minitorch.rand(1).item() == after


def test_checkpoint_sequential():
    layers = [lambda x, k=k: (x * k).tanh() for k in range(1, 5)]
    x, y = leaf(3), leaf(3)
    autograd.checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
    z = y
    for layer in layers:
        z = layer(z)
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())
