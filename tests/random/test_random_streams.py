"""Every distribution draws what PyTorch draws, and leaves the stream where PyTorch leaves it."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import minitorch

RECORD = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "record_random.py"))
ANSWERS = np.load(RECORD["ANSWERS"])
CASES = sorted({key.rsplit("/", 1)[0] for key in ANSWERS})


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name):
    for key, found in RECORD["play"](minitorch, name).items():
        expected = ANSWERS[key]
        assert found.dtype == expected.dtype
        if name.startswith(RECORD["ROUNDED"]) and not key.endswith("/next"):
            # log, sin and cos differ in the last place; 16-bit types may round to a neighbour.
            bound = 4e-3 if name.startswith("half") else 3e-7
            np.testing.assert_allclose(found, expected, rtol=bound, atol=bound, err_msg=key)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=key)


def test_every_case_is_recorded():
    assert set(CASES) == set(RECORD["cases"](minitorch))


def test_known_first_numbers():
    # The best known numbers of the field: PyTorch's under seed 0.
    minitorch.manual_seed(0)
    np.testing.assert_allclose(
        minitorch.rand(4).numpy(), [0.49625659, 0.76822180, 0.08847743, 0.13203049], rtol=1e-7
    )


def test_wide_permutation_variant(monkeypatch):
    # The variant for more than 2**32/20 elements, run small: a permutation, two words per element.
    from minitorch.random import picks
    from minitorch.random.mt19937 import MersenneStream

    stream = MersenneStream(1)
    assert sorted(picks._permutation_wide(stream, 100).tolist()) == list(range(100))
    other = MersenneStream(1)
    other.words(200)
    assert stream.words(1) == other.words(1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.rand(-1), RuntimeError, "negative dimension -1: [-1]"),
        (lambda t: t.rand(2, 3.5), TypeError, "type must be tuple of ints,but got float"),
        (lambda t: t.rand(2, dtype=t.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda t: t.randint(5, 5, (2,)), RuntimeError, "got from=5 >= to=5"),
        (lambda t: t.randint(5, 2), TypeError, "must be tuple of ints, not int"),
        (lambda t: t.randint(0, 300, (2,), dtype=t.uint8), RuntimeError, "to - 1 is out of bounds"),
        (
            lambda t: t.randint(5, (2,), requires_grad=True),
            RuntimeError,
            "Only Tensors of floating",
        ),
        (lambda t: t.randperm(2.5), TypeError, "must be int, not float"),
        (lambda t: t.normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0"),
        (lambda t: t.normal(0.0, 1.0), TypeError, "two numbers need a size"),
        (lambda t: t.bernoulli(t.full((2,), 1.5)), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
        (lambda t: t.ones(2).bernoulli_(1.5), RuntimeError, "bernoulli_ expects p to be in [0, 1]"),
        (lambda t: t.ones(2).uniform_(3, 1), RuntimeError, "found from=3 > to=1"),
        (lambda t: t.ones(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0"),
        (lambda t: t.ones(2, requires_grad=True).uniform_(), RuntimeError, "a leaf Variable"),
        (lambda t: t.ones(2).expand(3, 2).uniform_(), RuntimeError, "Please clone() the tensor"),
        (lambda t: t.multinomial(t.ones(2, 2, 2), 1), RuntimeError, "must be 1 or 2 dim"),
        (lambda t: t.multinomial(t.ones(2), 3), RuntimeError, "without replacement"),
        (lambda t: t.multinomial(t.ones(2), 0), RuntimeError, "n_sample <= 0"),
        (lambda t: t.multinomial(t.tensor([-1.0, 2]), 1), RuntimeError, "element < 0"),
        (lambda t: t.multinomial(t.zeros(2), 1), RuntimeError, "sum of probabilities <= 0"),
        (lambda t: t.rand(2, out=t.empty(2), dtype=t.float64), RuntimeError, "does not match"),
        (lambda t: t.rand(2, generator=3), TypeError, "Generator"),
        (lambda t: t.rand(2, device="cuda"), RuntimeError, "cuda"),
    ],
)
def test_errors_as_pytorch_words_them_and_draw_nothing(call, error, words):
    minitorch.manual_seed(1)
    before = minitorch.get_rng_state()
    with pytest.raises(error) as caught:
        call(minitorch)
    assert words in str(caught.value)
    assert minitorch.equal(minitorch.get_rng_state(), before)


def test_factories_take_pytorchs_arguments():
    out = minitorch.empty(2)
    assert minitorch.rand(2, out=out) is out
    assert minitorch.randn(2, 3, requires_grad=True).requires_grad
    assert minitorch.rand([2, 3]).shape == (2, 3)
    assert minitorch.randint(high=5, size=(2,)).dtype == minitorch.int64
    assert minitorch.randn(3, dtype=minitorch.float64, device="cpu").dtype == minitorch.float64
    ints = minitorch.ones(2, dtype=minitorch.int64)
    assert minitorch.rand_like(ints, dtype=minitorch.float32).dtype == minitorch.float32


def test_default_dtype_is_used():
    minitorch.set_default_dtype(minitorch.float64)
    try:
        assert minitorch.rand(2).dtype == minitorch.float64
    finally:
        minitorch.set_default_dtype(minitorch.float32)


def test_bernoulli_passes_a_zero_gradient():
    p = minitorch.full((3,), 0.5, requires_grad=True)
    minitorch.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0.0, 0.0, 0.0]


def test_inplace_draw_moves_the_version():
    x = minitorch.zeros(3)
    before = x._version
    x.normal_()
    assert x._version == before + 1
