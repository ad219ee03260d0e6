"""The hooks that come with the package, under PyTorch's paths, and optimizers that run as hooks.

Expected values: closed forms in float16 and bfloat16 (NumPy and ml_dtypes round as the standard
says), or the same training without a hook.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Scale, a, arrays, batch, grad, mlp, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, optim
from minitorch.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    debugging_hooks,
    default_hooks,
    optimizer_overlap_hooks,
    register_ddp_comm_hook,
)
from minitorch.distributed.compression.half import narrow, widen
from minitorch.distributed.optim import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
    as_functional_optim,
)

HALVES = [
    ("fp16", torch.float16, default_hooks.fp16_compress_hook, default_hooks.fp16_compress_wrapper),
    ("bf16", torch.bfloat16, default_hooks.bf16_compress_hook, default_hooks.bf16_compress_wrapper),
]
halves = pytest.mark.parametrize(("name", "dtype", "hook", "wrapper"), HALVES, ids=["fp16", "bf16"])
views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


def trained(r, hook=None, state=None, steps=5, **options):
    ddp = DDP(mlp(), bucket_cap_mb=0.0001, **options)
    if hook is not None:
        ddp.register_comm_hook(state, hook)
    sgd = optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        x, y = batch(4, seed=10 * step + r)
        sgd.zero_grad()
        (ddp(x) - y).pow(2).mean().backward()
        sgd.step()
    return np.concatenate([w.ravel() for w in arrays(ddp)])


@views
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_allreduce_hook_is_the_default(view, world):
    def rank(r):
        plain = trained(r, gradient_as_bucket_view=view)
        hooked = trained(r, default_hooks.allreduce_hook, gradient_as_bucket_view=view)
        return plain.tobytes() == hooked.tobytes()

    assert all(run(rank, world))


def test_noop_with_division_and_all_reduce_by_hand_is_the_default():
    def rank(r):
        by_hand = DDP(mlp())
        by_hand.register_comm_hook(None, debugging_hooks.noop_hook)
        plain = DDP(mlp())
        x, y = batch(4, seed=r)
        for ddp in (by_hand, plain):
            (ddp(x) - y).pow(2).mean().backward()
        for p in by_hand.parameters():
            p.grad.div_(2)
            dist.all_reduce(p.grad)
        return [
            (p.grad == q.grad).all().item()
            for p, q in zip(by_hand.parameters(), plain.parameters(), strict=True)
        ]

    assert all(all(result) for result in run(rank))


@views
@halves
@pytest.mark.parametrize("world", [2, 4])
def test_cast_then_divide_then_reduce(name, dtype, hook, wrapper, view, world):
    """For a power of two of ranks: sum of rounded gradients, each an exact multiple of 1/W."""
    values = np.random.default_rng(0).standard_normal((world, 257)).astype(np.float32)

    def rank(r):
        results = []
        for chosen in (hook, wrapper(default_hooks.allreduce_hook)):
            ddp = DDP(nn.Linear(257, 1, bias=False), gradient_as_bucket_view=view)
            ddp.register_comm_hook(None, chosen)
            ddp(torch.from_numpy(values[r : r + 1])).sum().backward()
            gradient = ddp.module.weight.grad
            assert gradient.dtype == torch.float32
            results.append(gradient.numpy().copy())
        return results

    shares = (values.astype(dtype.numpy) / np.float32(world).astype(dtype.numpy)).astype(np.float64)
    unit = {"fp16": 2.0**-11, "bf16": 2.0**-8}[name]
    bound = world * unit * np.abs(shares).sum(0)
    for direct, wrapped in run(rank, world):
        assert direct.tobytes() == wrapped.tobytes()
        assert (direct == direct.astype(dtype.numpy).astype(np.float32)).all()
        assert (np.abs(direct[0] - shares.sum(0)) <= bound).all()
        if world == 2:  # one addition, one rounding
            assert (direct[0] == shares.sum(0).astype(dtype.numpy).astype(np.float32)).all()


def test_division_comes_before_the_sum_so_that_float16_does_not_overflow():
    def rank(r):
        ddp = DDP(Scale())
        register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, ddp)
        ddp(torch.tensor([60000.0])).sum().backward()
        return grad(ddp.module.p)

    assert same_on_all(rank, 4) == 60000.0


@halves
def test_half_hooks_halve_the_bytes(name, dtype, hook, wrapper):
    def rank(r):
        ddp = DDP(nn.Linear(1000, 8, bias=False))
        ddp.register_comm_hook(None, hook)
        dist.reset_meter()
        ddp(torch.ones(1, 1000)).sum().backward()
        return dist.meter()["all_reduce"]["bytes_sent"]

    assert run(rank, 2) == [8000 * 2] * 2


@halves
def test_gradients_of_other_dtypes(name, dtype, hook, wrapper):
    def rank(r):
        seen = []
        for kind in (torch.float64, torch.float16, torch.bfloat16):
            ddp = DDP(nn.Linear(3, 1, bias=False, dtype=kind))
            ddp.register_comm_hook(None, hook)
            ddp(torch.full((1, 3), float(r + 1)).to(kind)).sum().backward()
            seen.append((ddp.module.weight.grad.dtype == kind, ddp.module.weight.grad.tolist()))
        return seen

    assert same_on_all(rank) == [(True, [[1.5] * 3])] * 3


def test_states_name_a_group():
    def rank(r):
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        mine = pairs[r // 2]
        seen = []
        for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
            ddp = DDP(Scale())
            ddp.register_comm_hook(mine, hook)
            ddp(a(r)).sum().backward()
            seen.append(grad(ddp.module.p))
        return seen

    assert run(rank, 4) == [[1.5, 1.5], [1.5, 1.5], [3.5, 3.5], [3.5, 3.5]]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("ALLREDUCE", 1.5), ("FP16_COMPRESS", 1.5), ("BF16_COMPRESS", 1.5), ("NOOP", None)],
)
def test_hooks_by_name(kind, expected):
    def rank(r):
        ddp = DDP(Scale())
        register_ddp_comm_hook(getattr(DDPCommHookType, kind), ddp, state=None)
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p)

    assert run(rank) == ([1.0, 2.0] if expected is None else [expected] * 2)


@pytest.mark.parametrize("kind", ["ALLREDUCE", "FP16_COMPRESS"])
def test_builtin_hooks(kind):
    def rank(r):
        ddp = DDP(Scale())
        ddp._register_builtin_comm_hook(getattr(dist.BuiltinCommHookType, kind))
        with pytest.raises(RuntimeError, match="can only be called once"):
            ddp.register_comm_hook(None, debugging_hooks.noop_hook)
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p), ddp._get_ddp_logging_data()["comm_hook"]

    assert same_on_all(rank) == (1.5, f"builtin_hook: {kind}")


# -- conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
def test_conversion_rounds_as_numpy_does(dtype):
    with np.errstate(over="ignore"):
        bits = np.random.default_rng(1).integers(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32)
        values = bits.view(np.float32)
        values = values[~np.isnan(values)]
        values = np.concatenate([values, [0.0, -0.0, np.inf, -np.inf, 65504, 65520, 1e-8, 6e-8]])
        values = values.astype(np.float32)
        expected = values.astype(dtype.numpy)
    got = narrow(values, dtype)
    assert got.tobytes() == expected.tobytes()
    back = np.empty_like(values)
    widen(back, got)
    assert back.tobytes() == expected.astype(np.float32).tobytes()
    empty = narrow(np.empty(0, np.float32), dtype)
    assert empty.size == 0
    assert empty.dtype == dtype.numpy
    strided = np.arange(20, dtype=np.float32)[::2]
    assert (narrow(strided, dtype) == strided).all()


# -- optimizers as hooks --------------------------------------------------------------------------

OPTIMIZERS = [
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    (optim.Adam, {"lr": 0.01}),
]
optimizers = pytest.mark.parametrize(
    ("optimizer", "options"), OPTIMIZERS, ids=lambda v: getattr(v, "__name__", "")
)


def steps_after_backward(r, optimizer, options, view, steps=6):
    ddp = DDP(mlp(), bucket_cap_mb=0.0001, gradient_as_bucket_view=view)
    stepper = optimizer(ddp.parameters(), **options)
    for step in range(steps):
        x, y = batch(4, seed=10 * step + r)
        stepper.zero_grad()
        (ddp(x) - y).pow(2).mean().backward()
        stepper.step()
    return arrays(ddp)


@views
@optimizers
@pytest.mark.parametrize("world", [1, 3])
def test_hook_then_optimizer_equals_steps_after_backward(optimizer, options, view, world):
    def rank(r):
        ddp = DDP(mlp(), bucket_cap_mb=0.0001, gradient_as_bucket_view=view)
        state = optimizer_overlap_hooks._OptimizerHookState(
            as_functional_optim(optimizer, **options)
        )
        hook = optimizer_overlap_hooks._hook_then_optimizer(default_hooks.allreduce_hook, state)
        ddp.register_comm_hook(None, hook)
        for step in range(6):
            x, y = batch(4, seed=10 * step + r)
            ddp.zero_grad()
            (ddp(x) - y).pow(2).mean().backward()
        expected = steps_after_backward(r, optimizer, options, view)
        return [w.tobytes() for w in arrays(ddp)] == [w.tobytes() for w in expected]

    assert all(run(rank, world))


@views
@optimizers
@pytest.mark.parametrize("world", [1, 3])
def test_optimizer_in_backward_equals_steps_after_backward(optimizer, options, view, world):
    def rank(r):
        model = mlp()
        _apply_optimizer_in_backward(optimizer, model.parameters(), options)
        ddp = DDP(model, bucket_cap_mb=0.0001, gradient_as_bucket_view=view)
        for step in range(6):
            x, y = batch(4, seed=10 * step + r)
            (ddp(x) - y).pow(2).mean().backward()
            assert all(p.grad is None for p in ddp.parameters())
        expected = steps_after_backward(r, optimizer, options, view)
        assert len(_get_in_backward_optimizers(ddp)) == 6
        return [w.tobytes() for w in arrays(ddp)] == [w.tobytes() for w in expected]

    assert all(run(rank, world))


def test_fused_optimizer_on_some_parameters():
    def rank(r):
        ddp = DDP(nn.Linear(2, 1))
        before = arrays(ddp)
        ddp._register_fused_optim(optim.SGD, lr=0.5, optim_params=[ddp.module.bias])
        ddp(torch.full((1, 2), float(r))).sum().backward()
        after = arrays(ddp)
        return [(old - new).ravel().tolist() for old, new in zip(before, after, strict=True)]

    weight, bias = same_on_all(rank)
    assert weight == [0.0, 0.0]
    assert bias == pytest.approx([0.5])


def test_without_ddp_a_parameter_steps_when_its_gradient_has_accumulated():
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    _apply_optimizer_in_backward(optim.SGD, [model.weight], {"lr": 0.5})
    _apply_optimizer_in_backward(optim.SGD, [model.weight], {"lr": 0.25})
    model(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad is None
    np.testing.assert_allclose((before - model.weight.detach()).tolist(), [[0.75, 0.75]])


def test_hook_state_needs_step_param():
    with pytest.raises(ValueError, match="must implement method step_param"):
        optimizer_overlap_hooks._OptimizerHookState(object())


def test_other_optimizers_still_may_not_step_inside_backward():
    def rank(r):
        ddp = DDP(mlp())
        sgd = optim.SGD(ddp.parameters(), lr=0.1)
        ddp.module.first.weight.register_hook(lambda g: sgd.step())
        with pytest.raises(RuntimeError, match="An optimizer stepped inside backward"):
            ddp(batch(2)[0]).sum().backward()

    run(rank, 1)
