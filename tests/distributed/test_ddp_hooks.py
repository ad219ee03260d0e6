"""Communication hooks: what they see, what they return, and how a wrong one is refused."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, Scale, a, grad, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed._ddp.hooks import GradBucket
from minitorch.distributed.futures import Future


def done(value):
    future = Future()
    future.set_result(value)
    return future


def noop(state, bucket):
    return done(bucket.buffer())


def summed(state, bucket):
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future()


views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


@views
def test_noop_leaves_local_gradients(view):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        ddp.register_comm_hook(None, noop)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert run(rank) == [1.0, 2.0]


@views
def test_hook_gets_undivided_gradients(view):
    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=view)
        ddp.register_comm_hook(None, summed)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank) == 3.0


def test_allreduce_hook_with_continuation_equals_no_hook():
    def mean(state, bucket):
        def divide(future):
            value = future.value()
            return (value[0] if isinstance(value, list) else value) / state

        return summed(None, bucket).then(divide)

    def rank(r):
        gradients = []
        for hook in (None, mean):
            torch.manual_seed(0)
            ddp = DDP(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), bucket_cap_mb=0)
            if hook:
                ddp.register_comm_hook(2, hook)
            for _ in range(3):
                ddp.zero_grad()
                ddp(torch.ones(2, 3) * (r + 1)).sum().backward()
            gradients.append([p.grad.tolist() for p in ddp.parameters()])
        return gradients[0], gradients[1]

    plain, hooked = same_on_all(rank)
    assert plain == hooked  # powers of two: exact either way


def test_grad_bucket():
    def rank(r):
        seen = []

        def hook(state, bucket: GradBucket):
            seen.append(
                (
                    bucket.index(),
                    bucket.is_last(),
                    [tuple(g.shape) for g in bucket.gradients()],
                    len(bucket.parameters()),
                    bucket.buffer().numel(),
                )
            )
            assert all(
                g.shape == p.shape
                for g, p in zip(bucket.gradients(), bucket.parameters(), strict=True)
            )
            return summed(state, bucket)

        ddp = DDP(nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 300)), bucket_cap_mb=0.344)
        ddp.register_comm_hook(None, hook)
        for _ in range(2):
            ddp(torch.ones(1, 300)).sum().backward()
        return seen

    first, *second = same_on_all(rank)
    assert first == (0, True, [(300, 300), (300,), (300, 300), (300,)], 4, 180600)
    # Within a layer bias and weight may become ready in either order.
    assert [(i, last, sorted(shapes), n, size) for i, last, shapes, n, size in second] == [
        (0, False, [(300,), (300, 300)], 2, 90300),
        (1, True, [(300,), (300, 300)], 2, 90300),
    ]


def test_result_of_another_tensor_is_copied_back():
    def hook(state, bucket):
        return done(torch.full((bucket.buffer().numel(),), 7.0))

    def rank(r):
        ddp = DDP(Scale(), gradient_as_bucket_view=True)
        ddp.register_comm_hook(None, hook)
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank) == 7.0


def test_once_only():
    def rank(r):
        ddp = DDP(Scale())
        ddp.register_comm_hook(None, noop)
        with pytest.raises(
            RuntimeError,
            match=r"register_comm_hook or register_builtin_comm_hook can only be called once\.",
        ):
            ddp.register_comm_hook(None, noop)

    run(rank, 1)


def wrong_argument(state: object, bucket: int):
    return None


def wrong_return(state: object, bucket: GradBucket) -> int:
    return 0


@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (1, TypeError, "Communication hook must be callable."),
        (lambda state, b: None, ValueError, "must be named 'bucket'"),
    ],
)
def test_wrong_hooks_are_refused(hook, error, message):
    def rank(r):
        with pytest.raises(error, match=message):
            DDP(Scale()).register_comm_hook(None, hook)

    run(rank, 1)


def test_wrong_annotations_are_refused():
    def argument(state, bucket): ...

    def result(state, bucket): ...

    argument.__annotations__ = {"bucket": int}
    result.__annotations__ = {"return": int}

    def rank(r):
        with pytest.raises(ValueError, match=r"bucket annotation should be dist\.GradBucket"):
            DDP(Scale()).register_comm_hook(None, argument)
        with pytest.raises(ValueError, match="return annotation should be"):
            DDP(Scale()).register_comm_hook(None, result)

    run(rank, 1)


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (lambda buffer: 1, TypeError, "expected a Future of a Tensor for bucket 0, got int"),
        (lambda buffer: done(1), TypeError, "must hold a Tensor, got int"),
        (lambda buffer: done(torch.ones(2)), RuntimeError, "has 2 elements, the bucket has 1"),
    ],
)
def test_wrong_results_are_named(result, error, message):
    def rank(r):
        ddp = DDP(Scale())

        def hook(state, bucket):
            return result(bucket.buffer())

        ddp.register_comm_hook(None, hook)
        with pytest.raises(error, match=message):
            ddp(a(r)).sum().backward()

    run(rank)
