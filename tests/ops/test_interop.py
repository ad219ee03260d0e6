"""Tensor as a neighbour: NumPy, DLPack, pickle, copy, printing, conversions, factories."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import minitorch


def test_numpy_shares_memory_both_ways():
    array = np.arange(4, dtype=np.float32)
    x = minitorch.from_numpy(array)
    array[0] = 9
    x[1] = 7
    assert x.tolist() == [9, 7, 2, 3]
    assert np.shares_memory(x.numpy(), array)
    assert np.asarray(x) is x.numpy()


def test_array_protocol():
    x = minitorch.tensor([1.5, 2.5])
    assert np.array(x).dtype == np.float32
    assert np.asarray(x, dtype=np.int32).tolist() == [1, 2]
    copied = np.array(x, copy=True)
    assert not np.shares_memory(copied, x.numpy())
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach"):
        np.asarray(minitorch.ones(2, requires_grad=True))
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_ufuncs_and_mixed_arithmetic_are_recorded():
    x = minitorch.tensor([1.0, 2.0], requires_grad=True)
    array = np.array([3.0, 4.0], np.float32)
    for y in (array * x, x * array, np.multiply(x, array)):
        assert isinstance(y, minitorch.Tensor)
        y.sum().backward()
    assert x.grad.tolist() == [9, 12]
    assert np.exp(x).requires_grad
    with pytest.raises(TypeError, match="is not recorded"):
        np.hypot(x, 1)
    assert np.hypot(x.detach(), 0).tolist() == [1, 2]
    out = minitorch.zeros(2)
    np.hypot(x.detach(), 0, out=out)
    assert out.tolist() == [1, 2]
    assert out._version == 1
    assert np.add.reduce(x.detach()).item() == 3


def test_foreign_operands_are_refused():
    x = minitorch.ones(2)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"
    with pytest.raises(TypeError, match="unsupported operand"):
        [] * x if False else object() * x
    assert (x == "a") is False
    assert x != None  # noqa: E711


def test_dlpack_both_ways():
    x = minitorch.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(x)
    assert np.shares_memory(array, x.numpy())
    back = minitorch.from_dlpack(np.arange(3))
    assert back.tolist() == [0, 1, 2]
    assert minitorch.from_dlpack(x).shape == (2, 3)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="require gradient"):
        minitorch.from_dlpack(minitorch.ones(2, requires_grad=True))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool", "uint8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_pickle(dtype, shape):
    x = minitorch.ones(*shape).to(getattr(minitorch, dtype))
    if x.is_floating_point():
        x.requires_grad_()
    x.note = "kept"
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype is x.dtype
        assert y.shape == x.shape
        assert y.tolist() == x.tolist()
        assert y.requires_grad is x.requires_grad
        assert y.note == "kept"
        with minitorch.no_grad():
            y.zero_()


def test_pickle_keeps_the_layout_out_and_the_values_in():
    x = minitorch.arange(6.0).reshape(2, 3).t()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(minitorch.Size([2, 3]))) == (2, 3)
    assert pickle.loads(pickle.dumps(minitorch.float32)) is minitorch.float32
    assert pickle.loads(pickle.dumps(minitorch.device("cpu"))) == minitorch.device("cpu")


def test_copies():
    x = minitorch.ones(2, requires_grad=True)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert np.shares_memory(shallow._array, x._array)
    assert not np.shares_memory(deep._array, x._array)
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]


def test_devices():
    assert minitorch.ones(1).device == minitorch.device("cpu")
    assert str(minitorch.device("cpu:0")) == "cpu:0"
    assert minitorch.ones(1, device="cpu").to("cpu").is_cpu
    assert not minitorch.cuda.is_available()
    for make in (lambda: minitorch.ones(1, device="cuda"), lambda: minitorch.ones(1).to("cuda:0")):
        with pytest.raises(RuntimeError, match="runs on the CPU only"):
            make()


def test_bad_data():
    with pytest.raises(ValueError, match="equal length"):
        minitorch.tensor([[1], [1, 2]])
    with pytest.raises(TypeError, match="invalid data type"):
        minitorch.tensor(["a"])
    with pytest.raises(RuntimeError, match="Could not infer dtype"):
        minitorch.tensor(object())
    with pytest.raises(TypeError, match="supported types"):
        minitorch.from_numpy(np.ones(2, complex))
    with pytest.raises(TypeError, match=r"expected np.ndarray"):
        minitorch.from_numpy([1])
    with pytest.raises(ValueError, match="byte order"):
        minitorch.from_numpy(np.ones(2, ">f4"))


def test_tensor_copies_and_keeps_numpy_types():
    array = np.ones(2)
    x = minitorch.tensor(array)
    array[0] = 5
    assert x.tolist() == [1, 1]
    assert x.dtype is minitorch.float64
    assert minitorch.tensor([np.float64(1)]).dtype is minitorch.float64
    assert minitorch.tensor([minitorch.tensor(1.0), 2.0]).tolist() == [1, 2]
    assert minitorch.tensor(np.ones(2, ">f4")).tolist() == [1, 1]
    assert minitorch.as_tensor(array).tolist() == [5, 1]


def test_default_dtype():
    minitorch.set_default_dtype(minitorch.float64)
    try:
        assert minitorch.ones(1).dtype is minitorch.float64
        assert minitorch.tensor(1.0).dtype is minitorch.float64
        assert (minitorch.tensor([1]) / 2).dtype is minitorch.float64
        assert "dtype" not in repr(minitorch.ones(1))
    finally:
        minitorch.set_default_dtype(minitorch.float32)
    with pytest.raises(TypeError, match="floating-point"):
        minitorch.set_default_dtype(minitorch.int64)


def test_size():
    size = minitorch.ones(2, 3).shape
    assert repr(size) == "torch.Size([2, 3])"
    assert size.numel() == 6
    assert isinstance(size[:1], minitorch.Size)
    assert isinstance(size + (1,), minitorch.Size)
    assert size == (2, 3)


def test_floating_warnings_are_silent_as_in_pytorch():
    x = minitorch.tensor([0.0, -1.0, 1e38])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minitorch\.")
        x.log(), x / 0, x * 1e30, x.exp(), x.sqrt(), (x / 0 - x / 0)
        minitorch.ones(0).mean()


def test_in_place_dunders_keep_the_object():
    x = y = minitorch.ones(3)
    for statement in ("x += 1", "x *= 3", "x -= 2", "x /= 2", "x **= 2", "x //= 1", "x %= 3"):
        scope = {"x": x}
        exec(statement, scope)
        assert scope["x"] is y
    assert y.tolist() == [1, 1, 1]


def test_16_bit_products_compute_in_float32():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 40, 40)).astype(np.float16)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    product = minitorch.from_numpy(a) @ minitorch.from_numpy(b)
    assert product.dtype is minitorch.float16
    np.testing.assert_array_equal(product.numpy(), exact.astype(np.float16))
    total = minitorch.full((5000,), 1.0, dtype=minitorch.float16).sum()
    assert total.item() == 5000


def test_counting_and_linalg():
    x = minitorch.tensor([3, 1, 1, 5])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 3, 5]
    assert inverse.tolist() == [1, 0, 0, 2]
    assert counts.tolist() == [2, 1, 1]
    assert minitorch.bincount(x, minlength=7).tolist() == [0, 2, 0, 1, 0, 1, 0]
    assert minitorch.searchsorted(values, minitorch.tensor([0, 3, 9])).tolist() == [0, 1, 3]
    with pytest.raises(RuntimeError, match="non-negative"):
        minitorch.bincount(minitorch.tensor([-1]))
    matrix = minitorch.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert minitorch.linalg.norm(matrix).item() == pytest.approx(30**0.5)
    assert minitorch.linalg.norm(matrix, 1).item() == 6
    assert minitorch.linalg.norm(matrix, float("inf")).item() == 7
    assert minitorch.linalg.vector_norm(matrix, 1, dim=1).tolist() == [3, 7]


def test_erf_is_precise():
    import math

    x = np.linspace(-6, 6, 4001)
    exact = np.array([math.erf(v) for v in x])
    complement = np.array([math.erfc(v) for v in x])
    np.testing.assert_allclose(
        minitorch.from_numpy(x).erf().numpy(), exact, rtol=1e-15, atol=1e-300
    )
    np.testing.assert_allclose(minitorch.from_numpy(x).erfc().numpy(), complement, rtol=2e-15)
    single = minitorch.from_numpy(x.astype(np.float32)).erf().numpy()
    np.testing.assert_allclose(single, exact, rtol=5e-7, atol=2e-7)
