"""`minitorch interpret`: a text and an image explained, printed and drawn. About four seconds."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import minitorch as torch
from minitorch import interpret, nn
from minitorch.cli import main
from minitorch.datasets import Vocabulary

SENTENCE = "Not very good, but I loved it!"
WORDS = ["not", "very", "good", ",", "but", "i", "loved", "it", "!"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files that are not given a place land here; wide enough that no line is broken."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def text_model(tmp_path):
    torch.manual_seed(0)
    vocabulary = Vocabulary(["<unk>", *(word for word in WORDS if word != "loved")])
    model = interpret.SentenceClassifier(len(vocabulary), embedding=6, hidden=6)
    path = tmp_path / "text.pt"
    interpret.save_model(path, model, ["negative", "positive"], vocabulary=vocabulary)
    return path


@pytest.fixture
def image_model(tmp_path, monkeypatch):
    """A model of digits, and digits where the loader looks first."""
    rng = np.random.default_rng(0)
    rows = [",".join(map(str, [*rng.integers(0, 17, 64), at % 10])) for at in range(50)]
    (tmp_path / "digits.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 10)
    )
    path = tmp_path / "image.pt"
    interpret.save_model(path, model, [f"digit {at}" for at in range(10)], data="digits")
    return path


def run(*arguments):
    return main(["interpret", *map(str, arguments)])


def page_data(page):
    """What the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def check_png(path, smallest):
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    assert width > smallest
    assert height > smallest


def check_self_contained(page):
    """One file: nothing is loaded from anywhere."""
    assert not re.search(r"https?://|//\w+\.\w+/|\bsrc=|<link|@import|url\(|fetch\(", page)


def test_a_sentence_is_printed_and_drawn(text_model, tmp_path, capsys):
    assert run("--model", text_model, "--text", SENTENCE, "--save", "out/tree") == 0
    out = capsys.readouterr().out
    assert re.search(r"predicted: (negative|positive) \(\d+\.\d%\)", out)
    assert "not in its vocabulary: loved" in out
    rows = [line.split() for line in out.splitlines()]
    assert WORDS in rows, "a row of all words"
    assert out.count(" not very good , but i loved it !") == 1, "the root of the hierarchy"
    assert "page:    out/tree.html" in out
    assert "picture: out/tree.png" in out
    check_png(tmp_path / "out/tree.png", 100)
    page = (tmp_path / "out/tree.html").read_text()
    check_self_contained(page)
    assert f"<title>{SENTENCE}</title>" in page
    data = page_data(page)
    assert [group["text"] for group in data["groups"][:9]] == WORDS
    assert data["classes"] == ["negative", "positive"]
    root = data["groups"][-1]
    assert root["members"] == list(range(9))
    # The score of the whole sentence is the prediction: the margin of the two logits.
    saved = interpret.load_model(text_model)
    logits = saved.model(saved.vocabulary.encode(SENTENCE)).detach().numpy()[0]
    target = data["target"]
    assert root["score"] == pytest.approx(logits[target] - logits[1 - target], abs=1e-5)
    assert target == logits.argmax()


def test_the_tree_is_that_of_the_library(text_model, capsys):
    assert run("--model", text_model, "--text", SENTENCE, "--target", "positive") == 0
    assert "+ speaks for positive, - for negative" in capsys.readouterr().out
    saved = interpret.load_model(text_model)
    tree = interpret.agglomerate(saved.model, saved.vocabulary.encode(SENTENCE), 1, names=WORDS)
    with open("interpretation.html") as file:
        groups = page_data(file.read())["groups"]
    assert [group["members"] for group in groups] == [list(group.members) for group in tree]
    np.testing.assert_allclose([g["score"] for g in groups], [g.score for g in tree], atol=1e-5)


def test_nothing_is_written_on_demand(text_model, tmp_path, capsys):
    before = set(tmp_path.rglob("*"))
    assert run("--model", text_model, "--text", "good", "--save", "none") == 0
    assert set(tmp_path.rglob("*")) == before
    assert "page:" not in capsys.readouterr().out


def test_without_matplotlib_the_page_is_still_written(text_model, tmp_path, capsys, monkeypatch):
    from minitorch.cli.commands import interpret as command

    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert run("--model", text_model, "--text", "good , but not very") == 0
    assert "pip install matplotlib" in capsys.readouterr().out
    assert (tmp_path / "interpretation.html").exists()
    assert not (tmp_path / "interpretation.png").exists()


def test_words_in_blocks_and_other_scores(text_model, tmp_path, capsys):
    options = ("--block", 2, "--method", "occlusion", "--percentile", 50, "--theme", "dark")
    assert run("--model", text_model, "--text", SENTENCE, *options) == 0
    data = page_data((tmp_path / "interpretation.html").read_text())
    texts = [group["text"] for group in data["groups"] if len(group["members"]) == 1]
    assert texts == ["not very", "good ,", "but i", "loved it", "!"]


def test_an_image_is_printed_and_drawn(image_model, tmp_path, capsys):
    options = ("--image", 3, "--block", 2, "--compare", "--target", "digit 4", "--save", "seen")
    assert run("--model", image_model, *options) == 0
    out = capsys.readouterr().out
    assert re.search(r"predicted: digit \d \(\d+\.\d%\)", out)
    assert "its label is digit " in out
    assert "16 units" in out, "the root: an image of 8 x 8 in blocks of 2 x 2"
    assert "+ speaks for digit 4, - against it" in out
    check_png(tmp_path / "seen.png", 300)
    check_png(tmp_path / "seen-methods.png", 300)
    page = (tmp_path / "seen.html").read_text()
    check_self_contained(page)
    data = page_data(page)
    assert np.shape(data["image"]["pixels"]) == (8, 8)
    assert np.unique(data["image"]["layout"]).tolist() == list(range(16))
    assert data["target"] == 4
    assert len(data["classes"]) == 10


# -- mistakes ------------------------------------------------------------------------------------


def test_files_that_are_no_models(tmp_path, capsys):
    assert run("--model", "missing.pt", "--text", "a") == 2
    assert capsys.readouterr().err == "minitorch interpret: there is no file missing.pt\n"
    (tmp_path / "bad.pt").write_bytes(b"nothing")
    assert run("--model", "bad.pt", "--text", "a") == 2
    assert "minitorch interpret: bad.pt cannot be read" in capsys.readouterr().err
    torch.save({"states": {}}, tmp_path / "checkpoint.pt")
    assert run("--model", "checkpoint.pt", "--text", "a") == 2
    assert "a trainer's checkpoint: the trainer writes a model.pt" in capsys.readouterr().err
    assert run("--model", tmp_path, "--text", "a") == 2
    assert "there is no file" in capsys.readouterr().err
    assert not (tmp_path / "interpretation.html").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--text", " "], "there is no word in ' '"),
        (["--image", 1], 'reads texts; give --text "..."'),
        (["--text", "good", "--target", "neutral"], "the classes are negative, positive"),
        (["--text", "good", "--target", "2"], "the classes are negative, positive"),
        (["--text", "good", "--method", "magic"], "unknown method 'magic'; there are: cd,"),
        (["--text", "good", "--percentile", 101], "between 0 and 100"),
        (["--text", "good", "--block", 0], "block must be"),
    ],
)
def test_questions_a_text_model_cannot_answer(text_model, tmp_path, capsys, arguments, complaint):
    assert run("--model", text_model, *arguments) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.startswith("minitorch interpret: ")
    assert not list(tmp_path.glob("interpretation*"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--text", "good"], "reads no texts; give --image N"),
        (["--image", 10], "--image 10: digits has images 0 to 9"),
        (["--image", -1], "--image -1: digits has images 0 to 9"),
        (["--image", 0, "--data", "cifar"], "unknown data set 'cifar'"),
    ],
)
def test_questions_an_image_model_cannot_answer(image_model, capsys, arguments, complaint):
    assert run("--model", image_model, *arguments) == 2
    assert complaint in capsys.readouterr().err


def test_a_model_that_does_not_know_its_data(tmp_path, capsys):
    interpret.save_model(tmp_path / "m.pt", nn.Sequential(nn.Linear(2, 2)), ["a", "b"])
    assert run("--model", "m.pt", "--image", 0) == 2
    assert "does not say what it was trained on; give --data" in capsys.readouterr().err


def test_what_is_asked_must_be_one_thing(text_model, capsys):
    for arguments in ([], ["--text", "a", "--image", "1"]):
        with pytest.raises(SystemExit) as stopped:
            run("--model", text_model, *arguments)
        assert stopped.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


def test_a_place_that_cannot_be_written(text_model, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run("--model", text_model, "--text", "good", "--save", "file/tree") == 2
    assert "minitorch interpret: " in capsys.readouterr().err
