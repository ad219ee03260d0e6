"""SAGA and its family, step by step: recorded traces, closed forms, unbiasedness, bad input."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from optim.finite_sums import Linear, random_problem, recorded, traces

import minitorch as torch
from minitorch.optim import SAG, SAGA, SVRG, ProxSGD, saga_step_size
from minitorch.optim.prox import L1, L2, GroupLasso, NonNegative, Prox

FAMILY = [SAGA, SAG, SVRG, ProxSGD]

VARIANTS = {
    "l2": {"weight_decay": True},
    "l2exact": {"weight_decay": True, "decoupled_weight_decay": True},
    "l1": {"prox": True},
    "l2l1": {"weight_decay": True, "prox": True},
    "l2_zerotable": {"weight_decay": True, "init": "zero"},
}


@pytest.mark.parametrize("kind", ["log", "sq"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("gradients", ["autograd", "backward"])
def test_recorded_trace(kind, variant, gradients):
    z, problem, options = traces(), recorded(kind), dict(VARIANTS[variant])
    if "weight_decay" in options:
        options["weight_decay"] = float(z["l2"])
    if "prox" in options:
        options["prox"] = L1(float(z["l1"]))
    lr = float(z[f"{kind}_gamma"])
    opt = SAGA([problem.w], problem.n, lr=lr, **options)
    closure = getattr(problem, gradients)
    if opt.init == "paper":
        opt.init_table(closure)
    path = [problem.w.detach().numpy().copy()]
    for j in z["idx"]:
        closure(j)
        opt.step(j)
        path.append(problem.w.detach().numpy().copy())
    np.testing.assert_allclose(path, z[f"{kind}_{variant}"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["log", "sq"])
def test_step_sizes_of_the_paper(kind):
    z, problem = traces(), recorded(kind)
    l2, n = float(z["l2"]), problem.n
    opt = SAGA([problem.w], n, L=problem.L, weight_decay=l2)
    assert opt.param_groups[0]["lr"] == pytest.approx(float(z[f"{kind}_gamma"]), rel=1e-15)
    opt = SAGA([problem.w], n, L=problem.L, mu=0.0, weight_decay=l2)
    expected = 1 / (2 * (l2 * n + problem.L + l2))
    assert opt.param_groups[0]["lr"] == pytest.approx(expected, rel=1e-15)
    assert SAG([problem.w], n, L=2.0).param_groups[0]["lr"] == 1 / 32
    assert SVRG([problem.w], n, L=2.0).param_groups[0]["lr"] == 0.05
    assert ProxSGD([problem.w], n, L=2.0).param_groups[0]["lr"] == 0.25
    average = saga_step_size(4.0, 0.1, 10, strongly_convex="average")
    assert average == pytest.approx(1 / 15)


@pytest.mark.parametrize("cls", [SAGA, SVRG, ProxSGD])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_estimate_is_unbiased(cls, l2):
    """The mean over all samples of the direction is the full gradient, at any table."""
    problem = recorded("log")
    opt = cls([problem.w], problem.n, lr=0.05, weight_decay=l2)
    opt.init_table(problem.backward)
    for j in (3, 1, 3, 0, 6):
        problem.backward(j)
        opt.step(j)
    w = problem.w.detach().numpy().copy()
    directions = []
    for j in range(problem.n):
        problem.backward(j)
        directions.append(opt.gradient_estimate(j).numpy())
    full = problem.gradients(w).mean(0) + l2 * w
    np.testing.assert_allclose(np.mean(directions, axis=0), full, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(problem.w.detach().numpy(), w)


def test_sag_steps_along_the_mean_of_the_new_table():
    problem = recorded("sq")
    opt = SAG([problem.w], problem.n, lr=0.05)
    opt.init_table(problem.backward)
    table, w = problem.gradients(problem.w.detach().numpy()), problem.w.detach().numpy().copy()
    for j in traces()["idx"]:
        problem.backward(j)
        opt.step(j)
        table[j] = problem.gradients(w)[j]
        w = w - 0.05 * table.mean(0)
        np.testing.assert_allclose(problem.w.detach().numpy(), w, atol=1e-13)


@pytest.mark.parametrize("inner", [1, 5, None])
def test_svrg_corrects_by_its_snapshot(inner):
    problem = recorded("log")
    opt = SVRG([problem.w], problem.n, lr=0.1, prox=L1(0.02), inner=inner)
    opt.init_table(problem.autograd)
    w = snapshot = problem.w.detach().numpy().copy()
    for k, j in enumerate(traces()["idx"], start=1):
        problem.autograd(j)
        grad = problem.w.grad
        opt.step(j)
        assert problem.w.grad is grad, "the snapshot's gradients are nobody's business"
        at_w, at_s = problem.gradients(w), problem.gradients(snapshot)
        w = L1(0.02).prox(w - 0.1 * (at_w[j] - at_s[j] + at_s.mean(0)), 0.1)
        if k % (inner or 2 * problem.n) == 0:
            snapshot = w
        np.testing.assert_allclose(problem.w.detach().numpy(), w, atol=1e-13)


def test_prox_sgd_is_sgd_and_a_prox():
    a, b = recorded("log"), recorded("log")
    prox = ProxSGD([a.w], a.n, lr=0.1, weight_decay=0.05)
    plain = torch.optim.SGD([b.w], lr=0.1, weight_decay=0.05)
    for j in range(a.n):
        a.autograd(j)
        prox.step(j)
        b.autograd(j)
        plain.step()
    np.testing.assert_allclose(a.w.detach().numpy(), b.w.detach().numpy(), rtol=1e-14)
    with_prox = ProxSGD([a.w], a.n, lr=0.1, prox=NonNegative())
    a.autograd(0)
    with_prox.step(0)
    assert a.w.min().item() >= 0


@pytest.mark.parametrize("cls", FAMILY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_modules_and_groups(cls, dtype):
    """A network with a bias: one vector over all parameters, options by group."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(
        dtype
    )
    x, y = torch.randn(6, 3).to(dtype), torch.randn(6).to(dtype)
    weights = [p for p in model.parameters() if p.ndim == 2]
    biases = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": weights, "prox": L1(0.01), "lr": 0.05}, {"params": biases}]
    opt = cls(groups, 6, lr=0.1)

    def closure(i):
        opt.zero_grad()
        loss = ((model(x[i : i + 1]).squeeze() - y[i]) ** 2).sum()
        loss.backward()
        return loss

    def total():
        with torch.no_grad():
            return sum(float((model(x[i : i + 1]).squeeze() - y[i]) ** 2) for i in range(6))

    opt.init_table(closure)
    before = total()
    for k in range(120):
        closure(k * 5 % 6)
        opt.step(k * 5 % 6)
    assert total() < 0.7 * before
    assert all(p.dtype == dtype for p in model.parameters())


def test_group_options_reach_their_parameters():
    a, b = (torch.tensor([1.0, -1.0], dtype=torch.float64, requires_grad=True) for _ in range(2))
    groups = [{"params": [a], "prox": L2(1.0), "weight_decay": 0.5}, {"params": [b], "lr": 0.25}]
    opt = SAGA(groups, 2, lr=0.5, init="zero")
    a.grad, b.grad = torch.ones(2, dtype=torch.float64), None  # b took no part: gradient zero
    opt.step(1)
    w = np.array([1.0, -1.0])
    np.testing.assert_allclose(a.detach().numpy(), (w - 0.5 * (1 + 0.5 * w)) / 1.5)
    np.testing.assert_array_equal(b.detach().numpy(), w)


def test_unused_parameters_and_odd_layouts():
    """Transposed, 0-d and empty parameters; a row lists them in order."""
    base = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).t().detach().requires_grad_(True)
    scalar = torch.tensor(2.0, requires_grad=True)
    empty = torch.zeros(0, requires_grad=True)
    opt = SAGA([base, scalar, empty], 3, lr=1.0, init="zero")
    (base * torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
    opt.step(2)
    np.testing.assert_array_equal(base.detach().numpy(), [[0, 1, 2], [-2, -1, 0]])
    assert scalar.item() == 2
    rows = opt.state["samples"]["rows"].numpy()
    np.testing.assert_array_equal(rows, [[0] * 7, [0] * 7, [1, 2, 3, 4, 5, 6, 0]])


def test_the_mean_stays_the_mean():
    """Incremental, and taken afresh after some passes: early large gradients leave no trace."""
    w = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    opt = SAGA([w], 3, lr=0.0, init="zero")
    for k in range(16 * 3):
        w.grad = torch.tensor([1e16 if k < 3 else 0.1 * (k % 3)], dtype=torch.float64)
        opt.step(k % 3)
    samples = opt.state["samples"]
    assert samples["mean"].numpy()[0] == pytest.approx(0.1, rel=1e-15)


@pytest.mark.parametrize("cls", FAMILY)
def test_only_one_sample_per_step(cls):
    problem = recorded("log")
    opt = cls([problem.w], problem.n, lr=0.1)
    opt.init_table(problem.backward)
    before = problem.w.detach().numpy().copy()
    problem.backward(0)
    for several in ([0, 1], (0,), np.array([0]), torch.tensor([1, 2]), slice(2), None, 1.0, "0"):
        with pytest.raises(TypeError, match="number of one sample"):
            opt.step(several)
    with pytest.raises(TypeError, match="bool"):
        opt.step(True)
    for outside in (-1, problem.n):
        with pytest.raises(IndexError, match="there are 8, counted from 0"):
            opt.step(outside)
    np.testing.assert_array_equal(problem.w.detach().numpy(), before)
    for number in (0, np.int32(0), torch.tensor(0)):
        opt.step(number)


@pytest.mark.parametrize("cls", [SAGA, SAG, SVRG])
def test_the_start_is_asked_for(cls):
    problem = recorded("log")
    opt = cls([problem.w], problem.n, lr=0.1)
    problem.backward(0)
    with pytest.raises(RuntimeError, match=r"init_table\(closure\)"):
        opt.step(0)
    with pytest.raises(RuntimeError, match=r"closure\(0\) left no gradient"):
        opt.init_table(lambda i: None)
    with pytest.raises(RuntimeError, match=r"init_table\(closure\)"):
        opt.step(0)
    grad = problem.w.grad
    opt.init_table(problem.autograd)
    assert problem.w.grad is grad
    opt.zero_grad()
    with pytest.raises(RuntimeError, match=r"call backward\(\) on the loss of sample 2 first"):
        opt.step(2)


@pytest.mark.parametrize("cls", FAMILY)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(cls, bad):
    problem = recorded("log")
    opt = cls([problem.w], problem.n, lr=0.1)
    opt.init_table(problem.backward)
    before = problem.w.detach().numpy().copy(), copy.deepcopy(opt.state["samples"])
    problem.w.grad = torch.tensor([0.0, bad, 0.0], dtype=torch.float64)
    with pytest.raises(FloatingPointError, match="sample 3"):
        opt.step(3)
    np.testing.assert_array_equal(problem.w.detach().numpy(), before[0])
    for name, value in before[1].items():
        now = opt.state["samples"][name]
        assert (
            np.array_equal(now.numpy(), value.numpy()) if hasattr(value, "numpy") else now == value
        )


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (lambda v, step: v * np.nan, FloatingPointError, "nothing has been changed"),
        (lambda v, step: v[:2], ValueError, r"returned one of shape \(2,\)"),
        (lambda v, step: None, TypeError, "must return real numbers"),
        (lambda v, step: v + 1j, TypeError, "must return real numbers"),
        (lambda v, step: {}[0], KeyError, "0"),
        (GroupLasso(1.0, [0, 1]), ValueError, "2 entries"),
    ],
)
@pytest.mark.parametrize("cls", FAMILY)
def test_a_prox_that_fails_changes_nothing(cls, bad, error, message):
    """Whatever group it is in: the parameters of the others stay, too."""
    x, y = traces()["X"], traces()["y_sq"]
    w, b = (torch.zeros(n, dtype=torch.float64, requires_grad=True) for n in (3, 1))

    def backward(i):
        slope = float(x[i] @ w.detach().numpy() + b.item() - y[i])
        w.grad, b.grad = torch.from_numpy(slope * x[i]), torch.tensor([slope]).double()

    opt = cls([{"params": [b]}, {"params": [w], "prox": bad}], len(x), lr=0.1)
    opt.init_table(backward)
    before = copy.deepcopy(opt.state["samples"])
    backward(1)
    with pytest.raises(error, match=message):
        opt.step(1)
    assert not w.detach().any()
    assert not b.detach().any()
    for name, value in before.items():
        np.testing.assert_array_equal(
            *(a.numpy() if hasattr(a, "numpy") else a for a in (value, opt.state["samples"][name]))
        )


def test_a_prox_of_the_users_class_need_not_write_into_out():
    class Box(Prox):
        def prox(self, v, step, out=None):
            return np.clip(v, -0.25, 0.25)

    class Nothing(Prox):
        def prox(self, v, step, out=None):
            return None

    w = torch.zeros(3, requires_grad=True)
    opt = ProxSGD([w], 1, lr=1.0, prox=Box())
    w.grad = torch.tensor([-1.0, 0.125, 3.0])
    opt.step(0)
    np.testing.assert_array_equal(w.detach().numpy(), [0.25, -0.125, -0.25])
    with pytest.raises(ValueError, match=r"shape \(3,\) returned None"):
        ProxSGD([w], 1, lr=1.0, prox=Nothing()).step(0)


@pytest.mark.parametrize("cls", FAMILY)
def test_sparse_gradients_fill_dense_rows(cls):
    found = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 2, sparse=sparse)
        opt = cls(table.parameters(), 4, lr=0.1)

        def backward(i, table=table, opt=opt):
            opt.zero_grad()
            (table(torch.tensor([i, i, 4])) ** 2).sum().backward()

        opt.init_table(backward)
        for i in (0, 3, 3, 1):
            backward(i)
            opt.step(i)
        assert table.weight.grad.is_sparse == sparse
        found.append(table.weight.detach().numpy())
    np.testing.assert_array_equal(*found)


def test_large_float32_gradients_are_finite():
    w = torch.zeros(2, requires_grad=True)
    opt = ProxSGD([w], 1, lr=1e-30)
    w.grad = torch.tensor([1e30, 1e30])  # its square overflows
    opt.step(0)
    np.testing.assert_allclose(w.detach().numpy(), -1, rtol=1e-6)


def test_memory_is_told_and_refused(monkeypatch):
    model = torch.nn.Linear(100, 10)
    assert SAGA.table_bytes(model.parameters(), 1000) == 1010 * 1000 * 4
    opt = SAGA(model.parameters(), 1000, lr=0.1, memory_limit=1010 * 4000)
    assert "Table: 1000 x 1010, 3.9 MiB" in repr(opt)
    taken = []
    monkeypatch.setattr(SAGA, "_new_samples", lambda *a: taken.append(1))
    with pytest.raises(MemoryError, match=r"1,000 gradients of 1,010 numbers \(float32\), 3.9 MiB"):
        SAGA(model.parameters(), 1000, lr=0.1, memory_limit=1010 * 4000 - 1)
    with pytest.raises(MemoryError, match="memory_limit is 1 GiB"):
        SAGA(model.parameters(), 10**6, lr=0.1)
    assert not taken
    SVRG(model.parameters(), 10**9, lr=0.1)  # no table


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "at least 1"),
        ({"n_samples": 2.0}, TypeError, "must be an int"),
        ({"n_samples": True}, ValueError, "at least 1"),
        ({"lr": -1.0}, ValueError, "Invalid learning rate"),
        ({"L": 0.0}, ValueError, "Invalid L"),
        ({"L": np.nan}, ValueError, "Invalid L"),
        ({"L": "1"}, TypeError, "L must be a number, but got str"),
        ({"lr": 1.0, "weight_decay": [0.1]}, TypeError, "weight_decay must be a number"),
        ({"lr": 1.0, "memory_limit": "1 GB"}, TypeError, "memory_limit must be a number"),
        ({"L": 1.0, "mu": -1.0}, ValueError, "Invalid mu"),
        ({"L": 1.0, "mu": 0.0}, ValueError, "mu must be positive"),
        ({"L": 1.0, "mu": 2.0}, ValueError, "exceeds L"),
        ({"lr": 1.0, "weight_decay": -0.1}, ValueError, "Invalid weight_decay"),
        ({"lr": 1.0, "init": "random"}, ValueError, 'init must be "paper" or "zero"'),
        ({"lr": 1.0, "prox": L1}, TypeError, "call it with its parameters"),
    ],
)
def test_bad_construction(options, error, message):
    w = torch.zeros(2, requires_grad=True)
    with pytest.raises(error, match=message):
        SAGA([w], **{"n_samples": 3, **options})


def test_other_bad_construction():
    w, v = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    with pytest.raises(ValueError, match="one of them to all groups"):
        SAGA([{"params": [w], "lr": 0.1}, {"params": [v]}], 3)
    with pytest.raises(TypeError, match="rows of real numbers"):
        SAGA([torch.zeros(2, dtype=torch.int64)], 3, lr=0.1)
    for inner, error in ((0, ValueError), (True, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="inner must be"):
            SVRG([w], 3, lr=0.1, inner=inner)
    opt = SAGA([w], 3, lr=0.1)
    with pytest.raises(RuntimeError, match="make another optimizer"):
        opt.add_param_group({"params": [v]})


def test_mini_batches_as_samples():
    """A fixed mini-batch has one row; with equal sizes the minimiser is that of all samples."""
    problem = random_problem(12, 2, "sq")
    batches = np.arange(12).reshape(4, 3)
    sums = Linear(problem.x, problem.y, "sq")

    def backward(b):
        sums.w.grad = None
        (sum(sums.loss(i) for i in batches[b]) / 3).backward()

    opt = SAGA([sums.w], 4, L=problem.L)
    opt.init_table(backward)
    rng = np.random.default_rng(0)
    for b in rng.integers(4, size=1000):
        backward(b)
        opt.step(b)
    exact = np.linalg.lstsq(problem.x, problem.y, rcond=None)[0]
    np.testing.assert_allclose(sums.w.detach().numpy(), exact, atol=1e-9)
