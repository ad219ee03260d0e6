"""What theory promises SAGA: the paper's bound, the number of passes, L by search and by estimate.

Recorded optima and passes come from independent runs on scikit-learn's bundled sets.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from optim.finite_sums import Linear, bundled, epochs, optima, optimum, random_problem

import minitorch as torch
from minitorch.optim import (
    SAG,
    SAGA,
    SVRG,
    ProxSGD,
    estimate_smoothness,
    estimate_strong_convexity,
    saga_bound,
    saga_rate,
    saga_step_size,
)
from minitorch.optim.prox import L1

L2 = 0.1


@pytest.mark.parametrize("step", ["strong", "adaptive"])
@pytest.mark.parametrize("prox", [None, L1(0.05)], ids=["smooth", "composite"])
def test_the_papers_bound_holds(step, prox):
    """E|x_k - x*|^2 <= rate^k bracket, for the mean over seeds, at every k; not by a mile.

    The bracket is of f, also where there is a prox.
    """
    problem = random_problem(20, 4)
    best, n = optimum(problem, L2, prox), problem.n
    L, mu = problem.L + L2, L2

    def f(w):
        return problem.value(w) + L2 / 2 * float(w @ w)

    slope = problem.gradients(best).mean(0) + L2 * best
    start = best + 3.0
    excess = f(start) - f(best) - float(slope @ (start - best))
    assert excess > 0
    seeds, steps = 25, 120
    distances = np.zeros((seeds, steps + 1))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        problem.w.detach().numpy()[:] = start
        mu_given = 0.0 if step == "strong" else None
        opt = SAGA([problem.w], n, L=problem.L, mu=mu_given, prox=prox, weight_decay=L2)
        opt.init_table(problem.backward)
        for k in range(steps + 1):
            w = problem.w.detach().numpy()
            distances[seed, k] = float(((w - best) ** 2).sum())
            j = rng.integers(n)
            problem.backward(j)
            opt.step(j)
    mean = distances.mean(0)
    bound = [
        saga_bound(k, L, mu, n, float(((start - best) ** 2).sum()), excess, step)
        for k in range(steps + 1)
    ]
    assert (mean <= bound).all()
    assert mean[0] > 0.05 * bound[0], "a bound that is never near says nothing"
    assert mean[-1] < 0.5 * mean[0]


def test_step_sizes_and_rates():
    n, L, mu = 20, 5.0, 0.1
    assert saga_step_size(L) == pytest.approx(1 / 15)
    assert saga_step_size(L, mu, n) == pytest.approx(1 / 14)
    assert saga_step_size(L, mu, n, "average") == pytest.approx(1 / 21)
    assert saga_rate(L, mu, n) == pytest.approx(1 - mu / 14)
    assert saga_rate(L, mu, n, strongly_convex="average") == pytest.approx(1 - mu / 42)
    assert saga_rate(L, mu, n, "adaptive") == pytest.approx(1 - mu / 15)
    assert saga_rate(L, 4.9, n, "adaptive") == pytest.approx(1 - 1 / 80)
    assert saga_bound(0, L, mu, n, 2.0, 3.0) == pytest.approx(2 + 20 / 7 * 3)
    assert saga_bound(2, L, mu, n, 2.0, 3.0, "adaptive") == pytest.approx(
        (1 - mu / 15) ** 2 * (2 + 40 / 15 * 3)
    )
    for bad in (
        lambda: saga_step_size(0.0),
        lambda: saga_step_size(1.0, 0.1),
        lambda: saga_step_size(1.0, 0.1, 10, "none"),
        lambda: saga_rate(1.0, 0.1, 10, "large"),
    ):
        with pytest.raises(ValueError, match=r"L|n_samples|strongly_convex|step"):
            bad()


@pytest.mark.parametrize(
    ("name", "key", "step", "target"),
    [
        ("breast_cancer", "bc_l2_C0.1_noint", "1/2(mun+L)", 0),
        ("diabetes", "diab_ridge_0.01", "1/3L", 1),
        ("diabetes", "diab_ridge_0.01", "1/2(mun+L)", 2),
        ("diabetes", "diab_lasso_0.1", "1/3L", 3),
    ],
)
def test_passes_to_a_suboptimality(name, key, step, target):
    """Passes to 1e-4, 1e-6, 1e-8, 1e-10 (the target's number) within 20 % of the recorded ones.

    (Of the lasso, which needs few, within 3 passes: there the recorded seeds differ by as much.)
    """
    pytest.importorskip("sklearn")
    problem, facts = bundled(name), optima()[key]
    l1, l2 = facts["l1"], facts["l2"]
    np.testing.assert_allclose(problem.L, facts["L_max_data"], rtol=1e-12)
    prox = L1(l1) if l1 else None
    mu = facts["mu_hess_min"] - l2 if step != "1/3L" else None
    opt = SAGA([problem.w], problem.n, L=problem.L, mu=mu, prox=prox, weight_decay=l2)
    opt.init_table(problem.backward)
    recorded = [run[target] for run in epochs()[key][step]]
    rng, w = np.random.default_rng(0), problem.w.detach().numpy()
    allowed = max(3.0, 0.2 * max(recorded))
    value, epoch = np.inf, 0
    wanted = facts["objective"] + 10.0 ** -(4 + 2 * target)
    while value > wanted and epoch <= max(recorded) + allowed:
        epoch += 1
        for j in rng.integers(problem.n, size=problem.n):
            problem.backward(j)
            opt.step(j)
        value = problem.value(w) + l2 / 2 * float(w @ w) + l1 * float(np.abs(w).sum())
    assert min(recorded) - allowed <= epoch <= max(recorded) + allowed


def test_sgd_has_a_noise_floor_and_the_others_have_not():
    """Same constant step size for all four, same samples."""
    gaps = {}
    reference = random_problem(20, 3, "sq", seed=1)
    best = optimum(reference)
    for cls in (SAGA, SAG, SVRG, ProxSGD):
        problem = random_problem(20, 3, "sq", seed=1)
        opt = cls([problem.w], problem.n, lr=1 / (3 * problem.L))
        opt.init_table(problem.backward)
        rng = np.random.default_rng(0)
        for j in rng.integers(problem.n, size=6000):
            problem.backward(j)
            opt.step(j)
        gaps[cls] = problem.value(problem.w.detach().numpy()) - problem.value(best)
    assert gaps[ProxSGD] > 1e-4
    assert max(gaps[SAGA], gaps[SAG], gaps[SVRG]) < 1e-13


@pytest.mark.parametrize("cls", [SAGA, SAG, SVRG, ProxSGD])
@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_line_search_finds_the_smoothness(cls, l2):
    """L starts at 1, 30 times too small or 20 times too large, and ends near the data's."""
    for scale in (5.0, 0.1):
        base = random_problem(20, 3, "sq")
        problem = Linear(scale * base.x, base.y, "sq")
        opt = cls([problem.w], problem.n, weight_decay=l2)
        assert opt.param_groups[0]["line_search"]
        opt.init_table(problem.autograd)
        rng = np.random.default_rng(0)
        for j in rng.integers(20, size=300):
            loss = problem.autograd(j)
            assert opt.step(j, partial(problem.loss, j)) == loss.item()
        # The largest curvature of a sample, and no more than a doubling above it.
        assert opt.param_groups[0]["L"] <= 2.1 * (problem.L + l2)
        assert opt.param_groups[0]["L"] >= (problem.x**2).sum(1).min() / 2
        rates = {SAGA: 1 / 3, SAG: 1 / 16, SVRG: 0.1, ProxSGD: 0.5}
        assert opt.param_groups[0]["lr"] * opt.param_groups[0]["L"] == pytest.approx(rates[cls])


def test_saga_converges_with_line_search():
    problem = random_problem(20, 3)
    best = optimum(problem, 0.1)
    opt = SAGA([problem.w], 20, mu=0.0, weight_decay=0.1)
    opt.init_table(problem.autograd)
    rng = np.random.default_rng(0)
    for j in rng.integers(20, size=2000):
        problem.autograd(j)
        opt.step(j, partial(problem.loss, j))
    np.testing.assert_allclose(problem.w.detach().numpy(), best, atol=1e-9)


def test_line_search_complaints():
    problem = random_problem(4, 2)
    opt = SAGA([problem.w], 4, init="zero")
    problem.autograd(0)
    before = problem.w.detach().numpy().copy()
    with pytest.raises(RuntimeError, match=r"call step\(index, closure\)"):
        opt.step(0)
    with pytest.raises(TypeError, match="returned None"):
        opt.step(0, lambda: None)
    with pytest.raises(RuntimeError, match="does not decrease along its gradient"):
        opt.step(0, lambda: -problem.loss(0))
    for loss in (float("nan"), float("inf")):
        with pytest.raises(FloatingPointError, match="loss is not finite"):
            opt.step(0, lambda loss=loss: loss)
    np.testing.assert_array_equal(problem.w.detach().numpy(), before)
    assert not opt.state["samples"]["rows"].any()


@pytest.mark.parametrize("cls", [SAGA, SAG, SVRG, ProxSGD])
def test_a_step_refused_after_its_line_search_keeps_the_step_sizes(cls):
    problem = random_problem(20, 3, "sq")

    def broken(v, step):
        raise ArithmeticError("not today")

    opt = cls([problem.w], problem.n, prox=broken)
    opt.init_table(problem.autograd)
    group = opt.param_groups[0]
    before, start = (group["L"], group["lr"]), problem.w.tolist()
    problem.autograd(0)
    with pytest.raises(ArithmeticError, match="not today"):
        opt.step(0, partial(problem.loss, 0))
    assert (group["L"], group["lr"]) == before
    assert problem.w.tolist() == start


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_line_search_knows_how_coarse_a_half_precision_loss_is(dtype):
    problem = random_problem(8, 3, "sq")
    x, y = torch.tensor(problem.x).to(dtype), torch.tensor(problem.y).to(dtype)
    w = torch.zeros(3, dtype=dtype, requires_grad=True)
    opt = SAG([w], 8, init="zero")

    def loss(i):
        return 0.5 * (x[i] @ w - y[i]) ** 2

    for i in np.random.default_rng(0).integers(8, size=200).tolist():
        opt.zero_grad()
        loss(i).backward()
        opt.step(i, partial(loss, i))
    assert opt.param_groups[0]["L"] <= 4 * problem.L


@pytest.mark.parametrize(("kind", "c"), [("log", 0.25), ("sq", 1.0)])
def test_smoothness_is_estimated(kind, c):
    """Linear models: c max |x_i|^2, at zero weights."""
    problem = random_problem(15, 4, kind)
    grad = problem.w.grad
    found = estimate_smoothness([problem.w], problem.autograd, 15)
    assert found == pytest.approx(c * (problem.x**2).sum(1).max(), rel=1e-6)
    assert problem.w.grad is grad
    assert not problem.w.detach().any()
    one = estimate_smoothness([problem.w], problem.autograd, 15, samples=[3])
    assert one == pytest.approx(c * (problem.x[3] ** 2).sum(), rel=1e-6)
    hessian = c * problem.x.T @ problem.x / 15
    mu = estimate_strong_convexity([problem.w], problem.autograd, 15)
    assert mu == pytest.approx(np.linalg.eigvalsh(hessian)[0], rel=1e-6)


def test_smoothness_of_softmax():
    """At zero weights the Hessian by the scores is (I - 1/K)/K: largest eigenvalue 1/K."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 4, bias=False).double()
    x = torch.randn(5, 3, dtype=torch.float64)
    with torch.no_grad():
        model.weight.zero_()

    def closure(i):
        torch.nn.functional.cross_entropy(model(x[i : i + 1]), torch.tensor([i % 4])).backward()

    found = estimate_smoothness(model.parameters(), closure, 5)
    assert found == pytest.approx((x.numpy() ** 2).sum(1).max() / 4, rel=1e-6)


def test_estimates_complain():
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match="no sample's gradient changes"):
        estimate_smoothness([w], lambda i: w.sum().backward(), 2)
    with pytest.raises(RuntimeError, match="left no gradient"):
        estimate_smoothness([w], lambda i: None, 2)
    for estimate in (estimate_smoothness, estimate_strong_convexity):
        with pytest.raises(ValueError, match="n_samples must be at least 1"):
            estimate([w], lambda i: None, 0)
    with pytest.raises(ValueError, match="iterations"):
        estimate_smoothness([w], lambda i: None, 2, iterations=0)
