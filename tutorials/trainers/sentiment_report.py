"""What a sentiment classifier has learnt about words, negation and contrast: counts, not examples.

A score here is the contextual decomposition of the margin: the logit of "positive" minus that of
"negative", as far as the words in question contribute to it. Three questions are asked of every
held-out sentence:

phrases    Does the score of a phrase have another sign than the sum of its words' scores?
negation   Does a phrase's score change its sign when the negation before it joins? The same is
           counted for all other words, since any word may tip a phrase; and a negation that is simply
           a bad word is told from one that turns its phrase around: the latter changes the sign
           where adding its own score would not.
contrast   In "A but B" with scores of opposite signs, does the sentence follow B?

The fourth figure is the correlation of word scores with the coefficients of a logistic regression on
the bag of words.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch import datasets, interpret, nn
from minitorch.linear import LogisticRegression

NEGATIONS = {
    "not",
    "no",
    "never",
    "neither",
    "nor",
    "nothing",
    "none",
    "without",
    "hardly",
    "barely",
}
NEGATIONS |= {"lacks", "lacking", "cannot", "can't", "won't", "don't", "doesn't", "didn't", "isn't"}
NEGATIONS |= {"wasn't", "aren't", "couldn't", "wouldn't"}
MARGIN = 0.1  # scores nearer to zero than this have no sign worth counting
LONGEST = 5  # words of a phrase
SCOPE = 3  # words after a negation that it may act on

Part = list[tuple[str, int]]


@dataclass
class Baseline:
    """A logistic regression on words: its coefficient for each word number, and its accuracy."""

    coefficients: np.ndarray
    accuracy: float


@dataclass
class Turns:
    """How often one more word in front changed the sign of a phrase.

    `to_negative` counts positive phrases that became negative, of `positive`; `by_interaction` is
    how many of those the sum of both scores would have left positive. `to_positive` and `negative`
    are the other way round, `by_interaction_up` likewise.
    """

    positive: int = 0
    to_negative: int = 0
    by_interaction: int = 0
    negative: int = 0
    to_positive: int = 0
    by_interaction_up: int = 0

    def count(self, word: float, phrase: float, joint: float) -> None:
        """Look at one phrase, the word before it, and both together."""
        if abs(phrase) < MARGIN or abs(joint) < MARGIN:
            return
        if phrase > 0:
            self.positive += 1
            self.to_negative += joint < 0
            self.by_interaction += joint < 0 < word + phrase
        else:
            self.negative += 1
            self.to_positive += joint > 0
            self.by_interaction_up += joint > 0 > word + phrase


@dataclass
class Interactions:
    """All counts over a set of sentences."""

    sentences: int = 0
    phrases: int = 0
    flipped: int = 0
    negation: Turns = field(default_factory=Turns)
    other: Turns = field(default_factory=Turns)
    contrasts: int = 0
    opposed: int = 0
    follows_last: int = 0
    label_is_last: int = 0
    examples: list[tuple[float, str]] = field(default_factory=list)
    correlation: tuple[float, int] = (float("nan"), 0)

    def lines(self) -> Iterable[str]:
        """The report, for people."""
        yield f"What it has learnt, over {self.sentences:,} held-out sentences:"
        yield (
            f"  phrases   {share(self.flipped, self.phrases)} phrases of 2 to {LONGEST} words have "
            f"another sign than their words' sum"
        )
        for name, turns in (("negation", self.negation), ("others", self.other)):
            yield (
                f"  {name:9s} {share(turns.to_negative, turns.positive)} positive phrases turn "
                f"negative, {turns.by_interaction} of them not by mere addition;"
            )
            yield (
                f"            {share(turns.to_positive, turns.negative)} negative phrases turn "
                f"positive, {turns.by_interaction_up} of them not by mere addition"
            )
        yield (
            f"  contrast  in {self.opposed} of {self.contrasts} sentences 'A but B' the scores of "
            f"A and B are opposed; then"
        )
        yield (
            f"            the prediction follows B in {share(self.follows_last, self.opposed)}, "
            f"the label in {share(self.label_is_last, self.opposed)}"
        )
        for score, text in sorted(self.examples)[:3]:
            yield f"  e.g.      {score:+.2f}  {text}"
        value, words = self.correlation
        yield f"  words     correlation with the logistic model {value:.3f} over {words:,} words"


def share(part: int, whole: int) -> str:
    """A count as people read it."""
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "0 of 0"


# -- the bag of words ----------------------------------------------------------------------------


def bags(vocabulary: datasets.Vocabulary, part: Part) -> Any:
    """Which words each text has: (texts, words) of 0 and 1; sparse where SciPy is installed."""
    texts = [sorted(set(vocabulary.numbers(text)) - {0}) for text, _ in part]
    columns = np.array([word for text in texts for word in text], dtype=np.int64)
    ends = np.cumsum([0, *map(len, texts)])
    shape = (len(texts), len(vocabulary))
    if importlib.util.find_spec("scipy") is not None:
        from scipy.sparse import csr_matrix

        return csr_matrix((np.ones(len(columns)), columns, ends), shape=shape)
    dense = np.zeros(shape, dtype=np.float32)
    dense[np.repeat(np.arange(len(texts)), np.diff(ends)), columns] = 1
    return dense


def bag_of_words_baseline(
    vocabulary: datasets.Vocabulary, data: datasets.Sentences, C: float = 1.0
) -> Baseline:
    """Fit a logistic regression on which words a sentence has; `C` as in scikit-learn."""
    labels = [np.array([label for _, label in part]) for part in (data.train, data.test)]
    model = LogisticRegression(C=C, tol=1e-3).fit(bags(vocabulary, data.train), labels[0])
    accuracy = model.score(bags(vocabulary, data.test), labels[1])
    return Baseline(model.coef_[0], accuracy)


def correlation_with(
    baseline: Baseline, model: nn.Module, vocabulary: datasets.Vocabulary, part: Part
) -> tuple[float, int]:
    """Correlate each word's mean score, in its sentences, with its coefficient; say over how many."""
    texts = [vocabulary.encode(text) for text, _ in part if vocabulary.numbers(text)]
    known = {n: float(c) for n, c in enumerate(baseline.coefficients) if n > 0}
    words = {n for text in texts for n in text.flatten().tolist()} & set(known)
    value = interpret.coefficient_correlation(model, texts, known, target=1, contrast=True)
    return value, len(words)


# -- counting ------------------------------------------------------------------------------------


def count_interactions(
    model: nn.Module, vocabulary: datasets.Vocabulary, part: Part
) -> Interactions:
    """Ask the three questions of every text; unknown words count as such."""
    found = Interactions()
    for text, label in part:
        words = datasets.words_of(text)
        if words:
            found.sentences += 1
            Scores(model, vocabulary, text, words).into(found, label)
    return found


class Scores:
    """The scores of all that is asked about one sentence: one pass for all of it."""

    def __init__(
        self, model: nn.Module, vocabulary: datasets.Vocabulary, text: str, words: list[str]
    ) -> None:
        self.words = words
        length = len(words)
        spans = {
            (start, stop)
            for start in range(length)
            for stop in range(start + 1, min(start + LONGEST, length) + 1)
        }
        self.sides = [at for at in range(2, length - 2) if words[at] == "but"]
        if len(self.sides) == 1:
            (at,) = self.sides
            spans |= {(0, at), (at + 1, length)}
        spans.add((0, length))
        order = sorted(spans)
        bounds = np.array(order)
        places = np.arange(length)
        masks = (bounds[:, :1] <= places) & (places < bounds[:, 1:])
        decomposer = interpret.Decomposer(model, vocabulary.encode(text))
        relevant, _ = decomposer(masks[:, :, None].astype(np.float32))
        margins = relevant[:, 0, 1] - relevant[:, 0, 0]
        self.of = dict(zip(order, margins.tolist(), strict=True))
        logits = decomposer.logits[0]
        self.margin = float(logits[1] - logits[0])

    def into(self, found: Interactions, label: int) -> None:
        """Add this sentence to the counts."""
        self._phrases(found)
        self._turns(found)
        if len(self.sides) == 1:
            (at,) = self.sides
            found.contrasts += 1
            first, last = self.of[0, at], self.of[at + 1, len(self.words)]
            if min(abs(first), abs(last)) >= MARGIN and (first > 0) != (last > 0):
                found.opposed += 1
                found.follows_last += (self.margin > 0) == (last > 0)
                found.label_is_last += bool(label) == (last > 0)

    def _phrases(self, found: Interactions) -> None:
        alone = np.array([self.of[at, at + 1] for at in range(len(self.words))])
        for (start, stop), score in self.of.items():
            if not 2 <= stop - start <= LONGEST:
                continue
            total = float(alone[start:stop].sum())
            if min(abs(score), abs(total)) >= MARGIN:
                found.phrases += 1
                found.flipped += (score > 0) != (total > 0)

    def _turns(self, found: Interactions) -> None:
        for at, word in enumerate(self.words[:-1]):
            stop = at + 1
            while stop < min(at + 1 + SCOPE, len(self.words)) and self.words[stop][0].isalnum():
                stop += 1
            if stop == at + 1 or not word[0].isalnum():
                continue
            alone, phrase = self.of[at, at + 1], self.of[at + 1, stop]
            joint = self.of[at, stop]
            negates = word in NEGATIONS
            (found.negation if negates else found.other).count(alone, phrase, joint)
            if negates and phrase > MARGIN and joint < -MARGIN and alone + phrase > 0:
                inner = " ".join(self.words[at + 1 : stop])
                found.examples.append((joint - phrase, f"{word} [{inner}]: {phrase:+.2f} alone"))
