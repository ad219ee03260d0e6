"""Addressed draws depend on their address and on nothing else."""

import numpy as np
import pytest

import minitorch
from minitorch.random import (
    addressed_bits,
    addressed_integers,
    addressed_normal,
    addressed_permutation,
    addressed_uniform,
)

KINDS = {
    "bits": addressed_bits,
    "uniform": addressed_uniform,
    "uniform64": lambda *a, **k: addressed_uniform(*a, dtype=np.float64, **k),
    "normal": addressed_normal,
    "integers": lambda *a, **k: addressed_integers(*a, 1000, **k),
}


@pytest.mark.parametrize("draw", KINDS.values(), ids=KINDS)
def test_every_part_is_found_at_its_offset(draw):
    whole = draw(1, 2, 3, 101)
    assert whole.shape == (101,)
    for start, stop in [(0, 0), (0, 1), (1, 2), (3, 50), (7, 101), (100, 101)]:
        part = draw(1, 2, 3, stop - start, offset=start)
        np.testing.assert_array_equal(part, whole[start:stop])


def test_order_of_calls_and_the_default_generator_do_not_matter():
    addresses = [(seed, step, bucket) for seed in (0, 1) for step in (0, 1) for bucket in (0, 1)]
    minitorch.manual_seed(1)
    state = minitorch.get_rng_state()
    first = {a: addressed_uniform(*a, 9) for a in addresses}
    assert minitorch.equal(minitorch.get_rng_state(), state)
    minitorch.rand(5)
    second = {a: addressed_uniform(*a, 9) for a in reversed(addresses)}
    for a in addresses:
        np.testing.assert_array_equal(first[a], second[a])
    assert len({tuple(v.tolist()) for v in first.values()}) == len(addresses)


def test_streams_of_different_length_differ():
    draws = [addressed_bits(0, 0, s, 4).tolist() for s in (5, (5, 0), (5, 0, 0), (0, 5), (5, 1))]
    assert len(set(map(tuple, draws))) == len(draws)
    assert addressed_bits(0, 0, 5, 4).tolist() == addressed_bits(0, 0, (5,), 4).tolist()


def test_is_philox_4x64():
    # The first block of the counter-based generator that NumPy ships, with the documented key.
    philox = np.random.Philox(key=[7, 3], counter=[1 << 56, 11, 0, 0])
    np.testing.assert_array_equal(addressed_bits(7, 11, 3, 8), philox.random_raw(8))


def test_distributions():
    # 40,000 draws: means and variances within five standard errors.
    n = 40_000
    u = addressed_uniform(3, 0, 0, n)
    assert u.dtype == np.float32
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 5 * (1 / 12 / n) ** 0.5
    z = addressed_normal(3, 0, 0, n, dtype=np.float64)
    assert abs(z.mean()) < 5 / n**0.5
    assert abs(z.var() - 1) < 5 * (2 / n) ** 0.5
    assert np.corrcoef(z[:-1], z[1:])[0, 1] < 5 / n**0.5
    assert sorted(addressed_permutation(3, 0, 0, 100).tolist()) == list(range(100))
    assert set(addressed_integers(3, 0, 0, 1000, 7).tolist()) == set(range(7))


def test_bad_addresses():
    with pytest.raises(ValueError, match="must not be negative"):
        addressed_bits(0, 0, 0, -1)
    with pytest.raises(ValueError, match="one to three integers"):
        addressed_bits(0, 0, (1, 2, 3, 4), 1)
    with pytest.raises(TypeError, match="float32 or float64"):
        addressed_uniform(0, 0, 0, 1, dtype=np.int32)
    with pytest.raises(ValueError, match="high must be in"):
        addressed_integers(0, 0, 0, 1, 0)
