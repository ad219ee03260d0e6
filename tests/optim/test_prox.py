"""Proximal operators, by the conditions that make a point the right one.

p = prox(v) is optimal exactly where u = (v - p) / step is a subgradient of h in p, that is where
h(p) + h*(u) = <u, p> (Fenchel-Young); and no other point has a smaller objective.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from minitorch.optim.prox import (
    L1,
    L2,
    Custom,
    ElasticNet,
    GroupLasso,
    NonNegative,
    Prox,
    Simplex,
    as_prox,
)

SHAPES = [(1,), (2,), (7,), (3, 4)]


def operators(shape):
    size = math.prod(shape)
    groups = np.arange(size) % 3 if size >= 3 else np.zeros(size, int)
    return {
        "l1": L1(0.7),
        "no-l1": L1(0.0),
        "l2": L2(1.3),
        "elastic": ElasticNet(0.4, 0.9),
        "elastic-l1": ElasticNet(0.7, 0.0),
        "groups": GroupLasso(0.5, groups),
        "weights": GroupLasso(0.5, groups, weights=np.arange(1, groups.max() + 2)),
        "columns": GroupLasso(0.8, dim=0),
        "nonnegative": NonNegative(),
        "simplex": Simplex(),
        "radius": Simplex(2.5, dim=-1),
    }


NAMES = list(operators((3,)))


def points(shape, count=6):
    rng = np.random.default_rng(math.prod(shape))
    yield np.zeros(shape)
    for scale in np.logspace(-2, 2, count):
        yield scale * rng.standard_normal(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_optimality(name, shape):
    h = operators(shape)[name]
    for v in points(shape):
        for step in (0.01, 1.0, 30.0):
            p = h.prox(v, step)
            u = (v - p) / step
            inner = float((u * p).sum())
            largest = float(np.abs(u).max())
            # u is a rounded difference, and may lie as much outside the domain of h*.
            slack = 1e-13 + 1e-15 * float(np.abs(v).max()) / (step * max(largest, 1e-300))
            conjugate = h.conjugate(u * (1 - slack)) if largest else 0.0
            size = 1.0 + abs(inner) + largest * float(np.abs(p).sum())
            assert h.value(p) + conjugate == pytest.approx(inner, abs=(1e-12 + 4 * slack) * size)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_no_point_nearby_is_better(name, shape):
    h = operators(shape)[name]
    rng = np.random.default_rng(1)

    def objective(x, v, step):
        return h.value(x) + float(((x - v) ** 2).sum()) / (2 * step)

    for v in points(shape, 3):
        p = h.prox(v, 0.5)
        best = objective(p, v, 0.5)
        assert math.isfinite(best)
        for width in (1e-3, 0.3):
            # Projected, so that constraints have finite competitors too.
            z = h.prox(p + width * rng.standard_normal(shape), 1e-9)
            assert objective(z, v, 0.5) >= best - 1e-12 * (1 + abs(best))


@pytest.mark.parametrize("name", NAMES)
def test_conjugate_is_a_supremum(name):
    """<u, x> - h(x) never exceeds h*(u), and comes close to it somewhere."""
    h = operators((4,))[name]
    rng = np.random.default_rng(2)
    for _ in range(20):
        x = h.prox(2 * rng.standard_normal(4), 1e-6)
        u = rng.standard_normal(4)
        assert h.conjugate(u) >= float(u @ x) - h.value(x) - 1e-12


@pytest.mark.parametrize("h", [L1(0.5), GroupLasso(0.3, [0, 1, 1, 0]), L1(0.0)])
def test_dual_norm(h):
    """h(x) dual_norm(u) >= <u, x>, with equality for the best x; the edge of h*'s domain is 1."""
    rng = np.random.default_rng(3)
    u = rng.standard_normal(4)
    size = h.dual_norm(u)
    assert all(
        size * h.value(x) >= u @ x - 1e-12 for x in rng.standard_normal((50, 4)) if h.value(x) > 0
    )
    if math.isfinite(size):
        assert h.conjugate(u / size) == 0
        assert h.conjugate(u / size * 1.001) == math.inf
    assert h.dual_norm(np.zeros(4)) == 0


def test_closed_forms():
    v = np.array([3.0, -0.5, -1.5, 0.0])
    np.testing.assert_array_equal(L1(2.0).prox(v, 0.5), [2, 0, -0.5, 0])
    np.testing.assert_array_equal(L2(2.0).prox(v, 0.5), v / 2)
    np.testing.assert_array_equal(ElasticNet(2.0, 2.0).prox(v, 0.5), [1, 0, -0.25, 0])
    np.testing.assert_array_equal(NonNegative().prox(v, 9.0), [3, 0, 0, 0])
    # |(3, 4)| = 5: shortened by 1; |(0.5,)| is below it.
    group = GroupLasso(1.0, [0, 0, 1], weights=[1, 1])
    np.testing.assert_allclose(group.prox(np.array([3, 4, 0.5]), 1.0), [2.4, 3.2, 0], rtol=1e-15)
    np.testing.assert_allclose(Simplex().prox(np.array([0.5, 1, -2]), 1.0), [0.25, 0.75, 0])
    assert Simplex().prox(np.array([1e17, 1e17]), 1.0).tolist() == [0.5, 0.5]
    rows = Simplex(dim=-1).prox(np.array([[5.0, 0.0], [0.2, 0.2]]), 1.0)
    np.testing.assert_allclose(rows, [[1, 0], [0.5, 0.5]])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_in_place_and_dtype(name, dtype):
    h = operators((3, 4))[name]
    v = np.random.default_rng(0).standard_normal((3, 4)).astype(dtype)
    expected = h.prox(v.copy(), 0.5)
    assert expected.dtype == dtype
    for w in (v.copy(), np.asfortranarray(v)):
        assert h.prox(w, 0.5, out=w) is w
        np.testing.assert_array_equal(w, expected)
    assert math.isfinite(h.value(expected))


def test_values_and_infinities():
    x = np.array([1.0, -2.0])
    assert L1(2.0).value(x) == 6
    assert L2(2.0).value(x) == 5
    assert ElasticNet(2.0, 2.0).value(x) == 11
    assert GroupLasso(1.0, [0, 1]).value(x) == 3
    assert GroupLasso(1.0, [0, 0]).value(x) == pytest.approx(math.sqrt(2) * math.sqrt(5))
    assert NonNegative().value(x) == math.inf
    assert Simplex().value(x) == math.inf
    assert Simplex().value(np.array([0.5, 0.6])) == math.inf
    assert L1(1.0).conjugate(x) == math.inf
    assert NonNegative().conjugate(x) == math.inf
    assert L2(0.0).conjugate(x) == math.inf
    assert L2(0.0).conjugate(0 * x) == 0
    assert (
        L2(2.0).strong_convexity,
        ElasticNet(1, 3).strong_convexity,
        L1(1).strong_convexity,
    ) == (2, 3, 0)


def test_empty_arrays():
    empty = np.zeros(0)
    for h in (L1(1.0), L2(1.0), ElasticNet(1.0, 1.0), GroupLasso(1.0, []), NonNegative()):
        assert h.prox(empty, 1.0).shape == (0,)
        assert h.value(empty) == h.conjugate(empty) == 0
    with pytest.raises(ValueError, match="empty array"):
        Simplex().prox(empty, 1.0)


def test_user_defined():
    box = Custom(lambda v, step: np.clip(v, -1, 1), value=lambda x: 0.0)
    np.testing.assert_array_equal(box.prox(np.array([-3.0, 0.5]), 1.0), [-1, 0.5])
    assert box.value(np.zeros(2)) == 0
    with pytest.raises(NotImplementedError, match="pass conjugate="):
        box.conjugate(np.zeros(2))
    with pytest.raises(NotImplementedError, match="not a norm"):
        L2(1.0).dual_norm(np.zeros(2))
    with pytest.raises(ValueError, match=r"shape \(3,\) returned one of shape \(2,\)"):
        Custom(lambda v, step: v[:2]).prox(np.zeros(3), 1.0)
    assert isinstance(as_prox(lambda v, step: v), Custom)
    assert as_prox(None) is None

    class Mine(Prox):
        def prox(self, v, step, out=None):
            return v

    mine = Mine()
    assert as_prox(mine) is mine
    with pytest.raises(NotImplementedError, match="give it one"):
        mine.value(np.zeros(1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L1(-1.0), "strength must be finite and not negative"),
        (lambda: L1(math.nan), "strength"),
        (lambda: ElasticNet(1.0, math.inf), "l2 must be finite"),
        (lambda: Simplex(0.0), "radius must be positive"),
        (lambda: GroupLasso(1.0), "groups=... or dim=..."),
        (lambda: GroupLasso(1.0, [0, 1], dim=0), "one of them"),
        (lambda: GroupLasso(1.0, [0.5]), "list of integers"),
        (lambda: GroupLasso(1.0, [-1, 0]), "counted from 0"),
        (lambda: GroupLasso(1.0, [0, 1], weights=[1.0]), "2 groups, but 1 weights"),
        (lambda: GroupLasso(1.0, [0, 1], weights=[1.0, 0.0]), "positive numbers"),
        (lambda: GroupLasso(1.0, [0, 1]).prox(np.zeros(3), 1.0), "2 entries"),
        (lambda: L1(1.0).prox(np.zeros(3), 0.0), "step of a proximal operator must be positive"),
        (lambda: L1(1.0).prox(np.zeros(3), math.nan), "step of a proximal operator"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_prox():
    with pytest.raises(TypeError, match="call it with its parameters"):
        as_prox(L1)
    with pytest.raises(TypeError, match="must be a Prox"):
        as_prox(0.1)
    with pytest.raises(TypeError, match="value must be callable"):
        Custom(lambda v, step: v, value=3)
