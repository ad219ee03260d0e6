"""The linear trainer from end to end, over ranks as threads and on small data."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys

import numpy as np
import pytest
from profiler.timelines import check_schema
from trainer_programs import FOLDER, output_of_two_processes, run_trainer, usage_error

import minitorch as torch
import minitorch.distributed as dist
from minitorch import profiler

FEW, SAMPLES = 3, 50


@functools.cache
def trainer():
    """The script as a module. Its name belongs to a folder of tests as well, hence by its path."""
    path = FOLDER / "linear.py"
    spec = importlib.util.spec_from_file_location("linear_trainer", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """Put small "digits" where the loader of digits looks first: 40 to fit, 10 held out."""
    rng = np.random.default_rng(0)
    rows = []
    for label in range(10):
        for _ in range(SAMPLES // 10):
            image = rng.integers(0, 6, 64)
            image[6 * label : 6 * label + 8] = 16
            rows.append(",".join(map(str, [*image, label])))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "digits.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("MINITORCH_DATA", str(folder))


def run(*arguments):
    return run_trainer(trainer(), *arguments)


NO_FILES = ("--checkpoint", "none", "--trace", "none")
SMALL = ("--batch-size", 6, "--strength", 0.1, "--epochs", FEW)


def minimum(strength):
    """Objective at the minimiser, by accelerated gradient steps on everything, in NumPy."""
    linear = trainer()

    (x, y), _ = linear.load_data(linear.arguments().parse_args([]))
    x, hot = np.hstack([x.numpy(), np.ones((len(y), 1))]), np.eye(10)[y.numpy()]
    penalty = np.r_[np.full(64, strength), 0.0][:, None]
    step = 1 / (0.5 * np.linalg.eigvalsh(x.T @ x / len(x))[-1] + strength)
    w = ahead = np.zeros((65, 10))
    for k in range(3000):
        z = x @ ahead
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        before, w = w, ahead - step * (x.T @ (p - hot) / len(x) + penalty * ahead)
        ahead = w + k / (k + 3) * (w - before)
    z = x @ w
    z -= z.max(1, keepdims=True)
    loss = np.log(np.exp(z).sum(1)) - (z * hot).sum(1)
    return loss.mean() + 0.5 * float((penalty * w * w).sum())


def test_two_ranks_fit_and_say_so(digits, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # short paths, whatever the width of the table
    files = ("--checkpoint", "c.pt", "--trace", "t.trace.json")
    summary = run("--threads", 2, *SMALL, *files, "--epochs", 90, "--tol", 4e-3)
    out = capsys.readouterr().out
    assert summary.values["certified"]
    assert summary.values["gradient_mapping"] <= 4e-3
    assert summary.values["steps"] < 90 * 7, "stopped by the certificate"
    # F - F* <= |mapping|^2 / (2 mu) = 8e-5 for mu = 0.1, and rounding aside never negative.
    assert -1e-9 < summary.values["objective"] - minimum(0.1) < 1e-4
    assert summary.values["accuracy"] > 0.5  # chance is 0.1
    assert summary.values["seen"] == 10
    for text in ("gradient mapping", "certified", "held-out accuracy", "c.pt", "t.trace.json"):
        assert text in out
    assert "\x1b" not in out, "no terminal, no escape codes"
    assert out.count("saga on digits") == 1, "one rank prints"
    check_schema(json.loads((tmp_path / "t.trace.json").read_text()))
    timeline = profiler.load(tmp_path / "t.trace.json")
    assert timeline.ranks == [0, 1]
    assert len(timeline.of(rank=0, category="optimizer")) == 40


@pytest.mark.parametrize(
    ("method", "end"),
    [("saga", "--epochs"), ("sag", "--stop-after"), ("svrg", "--epochs"), ("sgd", "--stop-after")],
)
def test_a_resumed_run_equals_one_that_was_not_interrupted(digits, tmp_path, method, end):
    """Interrupted with ``--stop-after``, or a shorter run that goes on with more ``--epochs``."""
    start = ("--threads", 2, *SMALL, "--method", method, "--trace", "none", "--checkpoint")
    whole = run(*start, tmp_path / "a.pt")
    part = run(*start, tmp_path / "b.pt", end, 1)
    rest = run(*start, tmp_path / "b.pt", "--resume")
    expected, got = whole.values["parameters"], rest.values["parameters"]
    assert not all(map(np.array_equal, expected, part.values["parameters"]))
    assert all(map(np.array_equal, expected, got)), "not the same bits"


def test_resuming_what_is_certified_takes_no_step(digits, tmp_path):
    start = (*SMALL, "--tol", 10, "--trace", "none", "--checkpoint", tmp_path / "c.pt")
    first = run(*start)
    assert first.values["steps"] == 7  # one pass over 40 images, six at a time
    again = run(*start, "--resume")
    assert again.values["steps"] == 0
    assert again.values["objective"] == first.values["objective"]


def test_the_tables_of_another_number_of_ranks_are_refused(digits, tmp_path):
    start = (*SMALL, "--stop-after", 1, "--trace", "none", "--checkpoint", tmp_path / "c.pt")
    run("--threads", 2, *start)
    with pytest.raises(SystemExit, match="tables of 2 ranks, and there are 1"):
        run(*start, "--resume")


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_penalties_make_zeros(digits, penalty):
    summary = run(*SMALL, *NO_FILES, "--penalty", penalty)
    weight, bias = summary.values["parameters"]
    assert 0 < np.count_nonzero(weight) < weight.size
    assert np.count_nonzero(bias) == 10, "the bias has no penalty"


@pytest.mark.parametrize(("samples", "world", "size"), [(7, 3, 2), (40, 3, 4), (5, 4, 1)])
def test_the_mean_over_batches_is_the_mean_over_samples(samples, world, size):
    """Whatever the sizes of shards and batches: the table's mean is the whole gradient."""
    linear = trainer()

    rng = np.random.default_rng(0)
    inputs = torch.from_numpy(rng.standard_normal((samples, 3)))
    labels = torch.from_numpy(rng.integers(0, 10, samples))

    def on_rank(rank):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 10).double()
        shard = linear.Shard(inputs, labels, size)
        optimizer = linear.DistributedSAGA(
            model.parameters(), len(shard.batches), L=shard.smoothness()
        )
        optimizer.init_table(lambda b: shard.loss(model, b).backward())
        shard.loss(model, 0).backward()
        estimate = optimizer.gradient_estimate(0).numpy()  # at the table's point: the mean
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        return estimate, torch.cat([p.grad.flatten() for p in model.parameters()]).numpy()

    for estimate, full in dist.run_local(on_rank, world):
        np.testing.assert_allclose(estimate, full, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--method", "adam"], "invalid choice"),
        (["--strength", "0"], "must be positive"),
        (["--tol", "nan"], "must be positive"),
        (["--algorithm", "ddp"], "unrecognized arguments"),
    ],
)
def test_bad_arguments(arguments, complaint, capsys):
    assert complaint in usage_error(run, arguments, capsys)


@pytest.mark.mpi
def test_between_processes(digits):
    """Two processes under mpirun print what two threads compute."""
    options = [*map(str, (*SMALL, *NO_FILES)), "--every", "1"]
    printed = output_of_two_processes("linear.py", *options)
    threads = run("--threads", 2, *options)
    assert printed.count(f"pass   {FEW}") == 1
    assert f"objective {threads.values['objective']:.10f}" in printed
