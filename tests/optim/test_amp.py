"""autocast's switch and casts, and the gradient scaler."""

import threading

import numpy as np
import pytest

import minitorch
from minitorch.amp import GradScaler, cast_inputs, get_autocast_dtype, is_autocast_enabled

BF16, F16, F32 = minitorch.bfloat16, minitorch.float16, minitorch.float32


def test_switch_nests_and_restores_when_the_body_raises():
    assert not is_autocast_enabled()
    with minitorch.autocast("cpu"):
        assert is_autocast_enabled("cpu")
        assert get_autocast_dtype("cpu") == BF16
        with minitorch.autocast("cpu", enabled=False):
            assert not is_autocast_enabled()
        with pytest.raises(KeyError), minitorch.autocast("cpu", dtype=F16):
            assert get_autocast_dtype() == F16
            raise KeyError
        assert get_autocast_dtype() == BF16
    assert not is_autocast_enabled()


def test_decorator_and_threads():
    @minitorch.autocast("cpu")
    def inside():
        seen = []
        thread = threading.Thread(target=lambda: seen.append(is_autocast_enabled()))
        thread.start()
        thread.join()
        return is_autocast_enabled(), seen[0]

    assert inside() == (True, False)
    assert not is_autocast_enabled()


def test_unsupported_requests_warn_and_disable():
    with (
        pytest.warns(UserWarning, match="'cuda', but CUDA is not available"),
        minitorch.autocast("cuda"),
    ):
        assert not is_autocast_enabled()
    with (
        pytest.warns(UserWarning, match="target dtype is not supported"),
        minitorch.autocast("cpu", dtype=minitorch.float64),
    ):
        assert not is_autocast_enabled()


def test_policies():
    x, h = minitorch.ones(2), minitorch.ones(2, dtype=BF16)
    d, i = minitorch.ones(2, dtype=minitorch.float64), minitorch.ones(2, dtype=minitorch.int64)
    assert cast_inputs("lower", x) == (x,)
    with minitorch.autocast("cpu"):
        assert [t.dtype for t in cast_inputs("lower", x, h)] == [BF16, BF16]
        assert cast_inputs("lower", d, i, None, 3)[2:] == (None, 3)
        assert cast_inputs("lower", d, i) == (d, i)
        assert [t.dtype for t in cast_inputs("float32", x, h)] == [F32, F32]
        assert [t.dtype for t in cast_inputs("widest", x, h)] == [F32, F32]
        assert cast_inputs("widest", h)[0] is h
        with pytest.raises(ValueError, match="unknown autocast policy"):
            cast_inputs("up", x)


def test_gradients_come_back_in_the_parameters_type():
    w = minitorch.ones(2, requires_grad=True)
    with minitorch.autocast("cpu"):
        (low,) = cast_inputs("lower", w)
    low.sum().backward()
    assert low.dtype == BF16
    assert w.grad.dtype == F32
    assert w.grad.tolist() == [1.0, 1.0]


def test_parameters_are_cast_once_but_never_stale():
    w = minitorch.ones(2, requires_grad=True)
    with minitorch.autocast("cpu"):
        with minitorch.no_grad():
            (unrecorded,) = cast_inputs("lower", w)
        (first,) = cast_inputs("lower", w)
        assert first.requires_grad
        assert not unrecorded.requires_grad
        assert cast_inputs("lower", w)[0] is first
        with minitorch.no_grad():
            w.mul_(2)
        assert cast_inputs("lower", w)[0].tolist() == [2.0, 2.0]
    with minitorch.autocast("cpu", cache_enabled=False):
        assert cast_inputs("lower", w)[0] is not cast_inputs("lower", w)[0]


def test_scaler_unscales_skips_and_adapts():
    w = minitorch.tensor([1.0], requires_grad=True)
    optimizer = minitorch.optim.SGD([w], lr=0.5)
    scaler = GradScaler(init_scale=8.0, growth_interval=2)
    for expected_scale in (8.0, 16.0):
        optimizer.zero_grad()
        scaler.scale((w * 1.0).sum()).backward()
        scaler.unscale_(optimizer)
        assert w.grad.tolist() == [1.0]
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected_scale
    assert w.tolist() == [0.0]
    w.grad = minitorch.tensor([float("inf")])
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0]
    assert scaler.get_scale() == 8.0
    other = GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0


def test_scaler_errors_and_disabled():
    w = minitorch.tensor([1.0], requires_grad=True)
    w.grad = minitorch.ones(1)
    optimizer = minitorch.optim.SGD([w], lr=0.5)
    scaler = GradScaler()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    off = GradScaler(enabled=False)
    assert off.scale(w) is w
    off.step(optimizer)
    off.update()
    assert off.state_dict() == {}
    assert np.isclose(off.get_scale(), 1.0)
