"""Update rules and schedules follow PyTorch's recorded trajectories."""

import json
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import minitorch

RECORD = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "record_optim.py"))
TRAJECTORIES = np.load(RECORD["TRAJECTORIES"])
RATES = json.loads(RECORD["SCHEDULES"].read_text())
BOUND = {"float32": 1e-6, "float64": 1e-12}


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("name", RECORD["OPTIMIZERS"])
def test_trajectory(name, dtype):
    found = RECORD["trajectory"](minitorch, name, dtype)
    expected = TRAJECTORIES[f"{name}/{dtype}"]
    np.testing.assert_allclose(found, expected, rtol=BOUND[dtype], atol=BOUND[dtype])


@pytest.mark.parametrize("name", RECORD["OPTIMIZERS"])
def test_blocks_do_not_change_the_result(name, monkeypatch):
    # Blocks of 3 elements against one block for everything: the same bits.
    whole = RECORD["trajectory"](minitorch, name, "float32")
    monkeypatch.setattr("minitorch.optim._blocks.BLOCK", 3)
    monkeypatch.setattr("minitorch.optim._blocks._scratch.buffers", {})
    np.testing.assert_array_equal(RECORD["trajectory"](minitorch, name, "float32"), whole)


@pytest.mark.parametrize("name", RECORD["schedule_names"](minitorch))
def test_schedule(name):
    np.testing.assert_allclose(RECORD["rates"](minitorch, name), RATES[name], rtol=1e-14)


def test_onecycle_moves_adams_first_beta():
    found = RECORD["rates"](minitorch, "onecycle", "Adam")
    np.testing.assert_allclose(found, RATES["onecycle_adam"], rtol=1e-14)


@pytest.mark.parametrize("name", RECORD["PLATEAUS"])
def test_plateau(name):
    found = RECORD["plateau"](minitorch, **RECORD["PLATEAUS"][name])
    np.testing.assert_allclose(found, RATES[name], rtol=1e-14)


@pytest.mark.parametrize("name", RECORD["schedule_names"](minitorch))
def test_a_restored_schedule_goes_on_alike(name):
    def fresh():
        optimizer = RECORD["_optimizer"](minitorch)
        return optimizer, RECORD["_schedules"](minitorch.optim.lr_scheduler)[name](optimizer)

    optimizer, schedule = fresh()
    for _ in range(6):
        optimizer.step()
        schedule.step()
    saved = json.loads(json.dumps([optimizer.state_dict(), schedule.state_dict()]))
    other_optimizer, other = fresh()
    other_optimizer.load_state_dict(saved[0])
    if name == "multistep":  # JSON turns the milestones into strings
        saved[1].pop("milestones")
    other.load_state_dict(saved[1])
    for _ in range(6):
        for o, s in ((optimizer, schedule), (other_optimizer, other)):
            o.step()
            s.step()
        assert other.get_last_lr() == schedule.get_last_lr()


@pytest.mark.parametrize("name", ["step", "multistep", "exponential", "cosine", "linear"])
def test_jumping_equals_stepping(name):
    optimizer = RECORD["_optimizer"](minitorch)
    schedule = RECORD["_schedules"](minitorch.optim.lr_scheduler)[name](optimizer)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step(4)
    np.testing.assert_allclose(schedule.get_last_lr(), RATES[name][4][:2], rtol=1e-12)
