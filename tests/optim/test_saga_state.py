"""State of SAGA and its family: saved, loaded, copied; schedulers and hooks as for any other."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from optim.finite_sums import recorded, traces

import minitorch as torch
from minitorch.optim import SAG, SAGA, SVRG, ProxSGD
from minitorch.optim.prox import L1

FAMILY = [SAGA, SAG, SVRG, ProxSGD]


def walk(opt, problem, samples):
    for j in samples:
        problem.backward(j)
        opt.step(j)
    return problem.w.detach().numpy().copy()


@pytest.mark.parametrize("cls", FAMILY)
def test_a_resumed_run_has_the_same_bits(cls, tmp_path):
    """Half, save to a file, load into a fresh optimizer, the other half."""
    index, options = traces()["idx"], {"prox": L1(0.02), "weight_decay": 0.05}
    problem = recorded("log")
    opt = cls([problem.w], problem.n, L=2.0, **options)
    opt.init_table(problem.backward)
    walk(opt, problem, index[:30])
    torch.save({"opt": opt.state_dict(), "w": problem.w.detach()}, tmp_path / "state.pt")
    expected = walk(opt, problem, index[30:])

    saved, fresh = torch.load(tmp_path / "state.pt"), recorded("log")
    fresh.w.detach().copy_(saved["w"])
    other = cls([fresh.w], fresh.n, lr=123.0, **options)
    other.load_state_dict(saved["opt"])
    assert other.param_groups[0]["lr"] == opt.param_groups[0]["lr"]
    if cls is SVRG:
        with pytest.raises(RuntimeError, match="set the attribute closure"):
            other.step(0)
        other.closure = fresh.backward
    np.testing.assert_array_equal(walk(other, fresh, index[30:]), expected)
    assert other.state["samples"]["steps"] == 60


def test_state_dict_layout():
    problem = recorded("log")
    opt = SAGA([problem.w], problem.n, L=2.0, prox=L1(0.5))
    state = opt.state_dict()
    assert state["param_groups"][0]["prox"] == "L1(0.5)"
    assert state["param_groups"][0]["params"] == [0]
    samples = state["state"]["samples"]
    assert {"kind", "steps", "filled", "rows", "mean"} == set(samples)
    assert samples["rows"].shape == (8, 3)
    opt.param_groups[0]["prox"].strength = 0.25  # not touched by state_dict
    assert opt.param_groups[0]["prox"].strength == 0.25


def test_loading_what_does_not_fit_changes_nothing():
    problem = recorded("log")
    opt = SAGA([problem.w], 8, lr=0.1, init="zero")
    walk(opt, problem, [1, 2])
    before = opt.state["samples"]["rows"].numpy().copy()
    more = SAGA([problem.w], 9, lr=0.2, init="zero").state_dict()
    with pytest.raises(ValueError, match=r"'rows'.* of shape \(8, 3\), but is of shape \(9, 3\)"):
        opt.load_state_dict(more)
    with pytest.raises(ValueError, match="not one of SAGA but of SAG"):
        opt.load_state_dict(SAG([problem.w], 8, lr=0.2).state_dict())
    with pytest.raises(ValueError, match=r"has no state\['samples'\]"):
        opt.load_state_dict(torch.optim.SGD([problem.w], lr=0.2).state_dict())
    assert opt.param_groups[0]["lr"] == 0.1
    np.testing.assert_array_equal(opt.state["samples"]["rows"].numpy(), before)


def test_another_prox_is_noticed():
    problem = recorded("log")
    saved = SAGA([problem.w], 8, lr=0.1, prox=L1(0.5)).state_dict()
    opt = SAGA([problem.w], 8, lr=0.1, prox=L1(0.25))
    with pytest.warns(UserWarning, match=r"saved with prox=L1\(0.5\).*L1\(0.25\)"):
        opt.load_state_dict(saved)
    assert opt.param_groups[0]["prox"].strength == 0.25


def test_a_table_of_another_precision_is_taken_over():
    double = recorded("log")
    opt = SAGA([double.w], 8, lr=0.1)
    opt.init_table(double.backward)
    single = torch.zeros(3, requires_grad=True)
    other = SAGA([single], 8, lr=0.1)
    other.load_state_dict(opt.state_dict())
    assert other.state["samples"]["rows"].dtype == torch.float32
    coarse = opt.state_dict()
    coarse["state"]["samples"]["mean"] = coarse["state"]["samples"]["mean"].float()
    other.load_state_dict(coarse)
    assert other.state["samples"]["mean"].dtype == torch.float64
    single.grad = torch.ones(3)
    other.step(0)


@pytest.mark.parametrize("cls", FAMILY)
def test_deepcopy_is_independent(cls):
    problem = recorded("log")
    opt = cls([problem.w], problem.n, lr=0.1)
    opt.init_table(problem.backward)
    walk(opt, problem, [0, 1])
    twin = copy.deepcopy(opt)
    steps = twin.state["samples"]["steps"]
    walk(opt, problem, [2, 3])
    assert (twin.state["samples"]["steps"], opt.state["samples"]["steps"]) == (steps, steps + 2)
    copied = twin.param_groups[0]["params"][0]
    assert copied is not problem.w
    copied.grad = torch.ones(3, dtype=torch.float64)
    if cls is SVRG:
        twin.closure = lambda i: setattr(copied, "grad", torch.ones(3, dtype=torch.float64))
    twin.step(1)
    assert twin.n_samples == problem.n


def test_schedulers_and_hooks():
    problem = recorded("log")
    opt = ProxSGD([problem.w], problem.n, lr=0.4)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    seen = []
    opt.register_step_pre_hook(lambda o, args, kwargs: seen.append(args[1]))
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    walk(opt, problem, [5])
    scheduler.step()
    assert seen == [5, "after"]
    assert opt.param_groups[0]["lr"] == 0.2


def test_a_step_size_of_zero_moves_nothing():
    problem = recorded("log")
    opt = SAGA([problem.w], problem.n, lr=0.0, prox=L1(1.0))
    opt.init_table(problem.backward)
    before = problem.w.detach().numpy().copy()
    np.testing.assert_array_equal(walk(opt, problem, [0, 1]), before)
