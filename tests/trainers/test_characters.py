"""The character model's trainer from end to end, over ranks as threads and on small text."""

import copy
import json
import math
import sys

import numpy as np
import pytest
from profiler.timelines import check_schema
from trainer_programs import output_of_two_processes, run_trainer, usage_error

import minitorch as torch
import minitorch.distributed as dist
from minitorch import profiler


@pytest.fixture(autouse=True)
def text(tmp_path, monkeypatch):
    """A work of 3,000 characters in which the next one is easily guessed."""
    folder = tmp_path / "data"
    folder.mkdir()
    line = "to be or not to be that is the question\n"
    (folder / "play_gut.txt").write_text((line * 75)[:2999])
    monkeypatch.setenv("MINITORCH_DATA", str(folder))
    monkeypatch.chdir(tmp_path)  # short paths, whatever the width of the table


NO_FILES = ("--checkpoint", "none", "--trace", "none", "--curve", "none", "--history", "none")
SMALL = ("--characters", 2400, "--hidden", 16, "--embedding", 8, "--steps", 20, "--sample", 0)
SMALL = (*SMALL, "--batch-size", 12, "--epochs", 3, "--lr", 0.02)


def run(*arguments):
    import characters

    return run_trainer(characters, *arguments)


def test_two_ranks_learn_and_say_so(tmp_path, capsys):
    options = ("--threads", 2, *SMALL, "--epochs", 6, "--sample", 30, "--prompt", "to be ")
    summary = run(*options, "--temperature", 0.1)
    out = capsys.readouterr().out
    history = json.loads((tmp_path / "runs/characters/history.json").read_text())
    assert history["test"] < 0.75 * math.log2(14), "14 symbols: 3.8 bits know nothing"
    assert history["valid"] == min(row["valid"] for row in history["epochs"])
    assert history["epochs"][history["best_epoch"] - 1]["valid"] == history["valid"]
    assert history["settings"]["hidden"] == 16
    assert history["ranks"] == 2
    assert summary.values["seen"] == 299, "all characters of the test part but the first"
    for text in ("epoch  6 of 6", "perplexity", "hidden under backward", "checkpoint.pt"):
        assert text in out
    assert f"{2 ** history['test']:.3f}" in out, "perplexity per character"
    assert out.count("epoch  1 of 6") == 1, "one rank prints"
    assert len(summary.values["sample"]) == 36
    assert summary.values["sample"].startswith("to be ")
    assert (tmp_path / "runs/characters/checkpoint.pt").exists()
    assert "\x1b" not in out, "no terminal, no escape codes"
    picture = tmp_path / "runs/characters/curve.png"
    assert picture.exists() != ("Matplotlib" in out)
    timeline = profiler.load(tmp_path / "runs/characters/timeline.trace.json")
    check_schema(json.loads((tmp_path / "runs/characters/timeline.trace.json").read_text()))
    assert timeline.ranks == [0, 1]
    assert timeline.complete


@pytest.mark.parametrize(
    ("method", "ranks", "end"),
    [
        ("none", 1, "--epochs"),
        ("none", 3, "--stop-after"),
        ("zoneout", 2, "--epochs"),
        ("recurrent-dropout", 1, "--stop-after"),
        ("dropout", 1, "--epochs"),
    ],
)
def test_a_resumed_run_equals_one_that_was_not_interrupted(method, ranks, end, tmp_path):
    """Interrupted with ``--stop-after``, or a shorter run that goes on with more ``--epochs``."""
    start = ("--threads", ranks, *SMALL, "--regularizer", method, *NO_FILES, "--checkpoint")
    whole = run(*start, tmp_path / "a.pt")
    part = run(*start, tmp_path / "b.pt", end, 1)
    rest = run(*start, tmp_path / "b.pt", "--resume")
    expected, got = whole.values["parameters"], rest.values["parameters"]
    assert not all(map(np.array_equal, expected, part.values["parameters"]))
    assert all(map(np.array_equal, expected, got)), "not the same bits"
    for name in ("valid", "test", "best_epoch"):
        assert whole.values["record"][name] == rest.values["record"][name]
    curves = [
        [(row["train"], row["valid"]) for row in summary.values["record"]["epochs"]]
        for summary in (whole, rest)
    ]
    assert curves[0] == curves[1]


def test_the_number_of_ranks_does_not_change_the_result():
    alone, three = run(*SMALL, *NO_FILES), run("--threads", 3, *SMALL, *NO_FILES)
    for a, b in zip(alone.values["parameters"], three.values["parameters"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)
    for name in ("valid", "test"):
        assert alone.values["record"][name] == pytest.approx(three.values["record"][name], abs=1e-3)


def test_masks_differ_between_methods_and_seeds():
    results = {
        options: run(*SMALL, "--epochs", 1, *NO_FILES, *options).values["record"]["test"]
        for options in (
            ("--regularizer", "none"),
            ("--regularizer", "zoneout"),
            ("--regularizer", "zoneout", "--rate", 0.25),
            ("--regularizer", "zoneout", "--hidden-rate", 0.5),
            ("--regularizer", "recurrent-dropout"),
            ("--regularizer", "dropout"),
        )
    }
    assert len(set(results.values())) == len(results)
    zero = ("--regularizer", "zoneout", "--rate", 0, "--hidden-rate", 0)
    again = run(*SMALL, "--epochs", 1, *NO_FILES, *zero)
    assert again.values["record"]["test"] == results["--regularizer", "none"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [2, 3, 33, 34, 211])
def test_evaluation_counts_every_character_once(length, ranks):
    import characters

    class Uniform(torch.nn.Module):
        """Scores that favour none of 8 symbols: 3 bits."""

        def forward(self, codes, state):
            return torch.zeros(*codes.shape, 8), state

    codes = torch.arange(length) % 8
    results = dist.run_local(lambda rank: characters.evaluate(Uniform(), codes, 5), ranks)
    assert results == [(pytest.approx(3.0, abs=1e-6), length - 1)] * ranks


def test_evaluation_carries_the_state_and_does_not_depend_on_ranks():
    import characters

    torch.manual_seed(0)
    model = characters.CharacterModel(5, 3, 4, zoneout_cell=0.5).double()
    codes = torch.randint(5, (201,))
    # Every rank has a model of its own: evaluation changes its mode.
    results = dist.run_local(lambda rank: characters.evaluate(copy.deepcopy(model), codes, 3), 3)
    model.eval()
    nats, length = 0.0, math.ceil(200 / characters.EVALUATION_COLUMNS)
    for at in range(0, 200, length):
        piece = codes[at : min(at + length, 200) + 1].reshape(-1, 1)
        scores, _ = model(piece[:-1])
        nats += torch.nn.functional.cross_entropy(
            scores.flatten(0, 1), piece[1:].flatten(), reduction="sum"
        ).item()
    for bits, count in results:
        assert count == 200
        assert bits == pytest.approx(nats / 200 / math.log(2), rel=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("start", [0, 6])
def test_windows_follow_each_other_and_ranks_share_the_columns(ranks, start):
    import characters

    codes, columns, steps = torch.arange(101), 6, 7
    share = columns // ranks
    parts = [
        list(characters.windows(codes, columns, slice(r * share, (r + 1) * share), steps, start))
        for r in range(ranks)
    ]
    assert {len(part) for part in parts} == {characters.steps_per_epoch(101, columns, steps)} == {2}
    joined = np.concatenate(
        [np.concatenate([inputs.numpy() for inputs, _ in part]) for part in parts], axis=1
    )
    # Column k is one stretch of the text, and the next column's begins where it ends.
    assert joined.T.ravel().tolist() == list(range(start, start + 84))
    for part in parts:
        for inputs, targets in part:
            assert (targets - inputs == 1).all()
            assert inputs.shape == (steps, share)


def test_columns_start_elsewhere_in_every_epoch():
    import characters

    starts = [characters.start_of_columns(0, epoch, 64) for epoch in range(50)]
    assert len(set(starts)) > 20
    assert set(starts) <= set(range(64))
    assert starts == [characters.start_of_columns(0, epoch, 64) for epoch in range(50)]


class Peaked(torch.nn.Module):
    """After symbol k, symbol k + 1 has a score of 2 and all others 0."""

    def forward(self, codes, state):
        return 2.0 * torch.eye(14)[(codes + 1) % 14], state


def test_samples():
    import characters

    text = characters.load_text(2400)
    model = Peaked()
    written = characters.sample(model, text, text.alphabet[0], 20, 1e-3, seed=0)
    assert written == (text.alphabet * 2)[:21], "towards zero, the likeliest"
    assert model.training
    many = [characters.sample(model, text, "t", 2000, 1.0, seed) for seed in (1, 1, 2)]
    assert many[0] == many[1] != many[2]
    codes = text.encode(many[2]).numpy()
    share = np.mean((codes[:-1] + 1) % 14 == codes[1:])
    probability = math.exp(2) / (math.exp(2) + 13)
    assert abs(share - probability) < 4 * math.sqrt(probability * (1 - probability) / 2000)
    with pytest.raises(ValueError, match="does not occur"):
        characters.sample(model, text, "%", 2, 1.0, 0)


def test_early_stopping_ends_the_run_and_reports_the_best(capsys, tmp_path):
    # A rate at which weights are thrown about: some epoch is the best, and not for long.
    options = (*SMALL, "--epochs", 40, "--lr", 3.0, "--patience", 2, *NO_FILES, "--checkpoint")
    record = run(*options, tmp_path / "c.pt").values["record"]
    assert len(record["epochs"]) == record["best_epoch"] + 2 < 40
    assert "no better validation for 2 epochs" in capsys.readouterr().out
    again = run(*options, tmp_path / "c.pt", "--resume").values["record"]
    assert again == record, "nothing is left to do"


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    options = (*SMALL, *NO_FILES, "--checkpoint", tmp_path / "c.pt")
    run(*options, "--epochs", 1)
    before = (tmp_path / "c.pt").read_bytes()
    with pytest.raises(SystemExit, match="regularizer was 'none' and is 'zoneout' now"):
        run(*options, "--epochs", 1, "--regularizer", "zoneout", "--resume")
    assert (tmp_path / "c.pt").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--regularizer", "hope"], "invalid choice"),
        (["--regularizer", "zoneout", "--rate", "1.5"], "must be between 0 and 1"),
        (["--patience", "0"], "must be at least 1"),
        (["--temperature", "0"], "must be positive"),
        (["--algorithm", "telepathy"], "not registered"),
    ],
)
def test_bad_arguments(arguments, complaint, capsys):
    assert complaint in usage_error(run, arguments, capsys)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rate", 0.5], "there is no regularizer"),
        (["--regularizer", "dropout", "--hidden-rate", 0.5], "belongs to --regularizer zoneout"),
        (["--characters", 9999], "has 2400 characters for training, and 9999"),
        (["--characters", 100], "too few for 16 columns"),
        (["--threads", 3, "--batch-size", 16], "3 ranks cannot share it equally"),
        (["--prompt", "%"], "--prompt: '%' does not occur"),
        (["--prompt", ""], "at least one character"),
    ],
)
def test_options_that_make_no_sense_end_before_training(arguments, complaint, capsys):
    with pytest.raises(SystemExit, match=complaint):
        run("--characters", 2400, *NO_FILES, *arguments)
    assert "epoch" not in capsys.readouterr().out


def test_missing_text_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MINITORCH_DATA", "/nowhere")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SystemExit, match="make shakespeare"):
        run(*SMALL, *NO_FILES)


@pytest.mark.mpi
def test_between_processes(tmp_path):
    """Two processes under mpirun: the same weights as two threads, masks included."""
    options = [*map(str, SMALL), "--regularizer", "zoneout", *NO_FILES]
    options[options.index("--checkpoint") + 1] = str(tmp_path / "c.pt")
    printed = output_of_two_processes("characters.py", *options)
    assert printed.count("epoch  3 of 3") == 1
    options[options.index("--checkpoint") + 1] = "none"
    threads = run("--threads", 2, *options)
    saved = torch.load(tmp_path / "c.pt")["states"]["model"]
    names = [name for name in saved if not name.endswith("_extra_state")]
    for got, name in zip(threads.values["parameters"], names, strict=True):
        np.testing.assert_array_equal(got, saved[name].numpy())
