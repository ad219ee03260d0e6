"""The ACD paper's comparisons between methods: agreement, known truth, and robustness.

=============================  =====================================================================
``top_class_agreement``        does a growing group's best class stay the predicted one?
``coefficient_correlation``    do word scores follow the coefficients of a logistic model?
``rank_correlation``           do an input and its attacked twin get the same ranking of units?
``fgsm``, ``gradient_attack``  the attacks: the smallest step that changes the prediction
=============================  =====================================================================

Source: Singh, Murdoch, Yu (ICLR 2019), section 4 and appendix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minitorch.autograd import enable_grad, grad, no_grad, wrap
from minitorch.interpret.attribution import attribute
from minitorch.interpret.borrowed import evaluating
from minitorch.interpret.scorers import logits_of
from minitorch.interpret.tree import Tree
from minitorch.ops._typing import Tensor
from minitorch.ops.nll import cross_entropy

__all__ = [
    "coefficient_correlation",
    "fgsm",
    "gradient_attack",
    "rank_correlation",
    "robustness",
    "top_class_agreement",
]


def top_class_agreement(trees: Tree | Iterable[Tree], bins: int = 10) -> np.ndarray:
    """Return how often a growing group's highest class is the predicted one, by the group's size.

    Parameters
    ----------
    trees : Tree, or iterable of Tree
    bins : int
        The largest group of every round falls into one of so many classes of size, as a share of
        all units: the first holds shares up to ``1/bins``, the last the whole input.

    Returns
    -------
    numpy.ndarray
        ``(bins,)``: shares of agreement; NaN where no group of that size was seen.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    hits, seen = np.zeros(bins), np.zeros(bins)
    for tree in [trees] if isinstance(trees, Tree) else trees:
        predicted = int(tree.logits.argmax())
        for order in range(max(group.order for group in tree) + 1):
            largest = max(tree.alive(order), key=lambda group: group.size)
            place = max(-(-largest.size * bins // tree.num_units) - 1, 0)
            seen[place] += 1
            hits[place] += int(largest.scores.argmax()) == predicted
    return np.divide(hits, seen, out=np.full(bins, np.nan), where=seen > 0)


def coefficient_correlation(
    model: Callable[..., Any],
    texts: Iterable[Tensor],
    coefficients: Mapping[int, float] | Sequence[float] | np.ndarray,
    target: int = 1,
    *,
    method: str = "cd",
    **options: Any,
) -> float:
    """Correlate a model's word scores with the coefficients of a linear model of the same task.

    Parameters
    ----------
    model : Module
    texts : iterable of Tensor
        Token ids, one text each.
    coefficients : mapping or array
        The linear model's coefficient of each token id; words without one are left out.
    target : int
        The class whose evidence the coefficients measure.
    method, **options
        As in :func:`minitorch.interpret.attribute`.

    Returns
    -------
    float
        Pearson's correlation over words, each word's score averaged over its places; NaN for fewer
        than two words.
    """
    if not isinstance(coefficients, Mapping):
        coefficients = dict(enumerate(coefficients))
    totals: dict[int, list[float]] = {}
    for ids in texts:
        found = attribute(model, ids, target, method=method, units="words", **options)
        for word, score in zip(ids._array.ravel().tolist(), found.scores.tolist(), strict=True):
            if word in coefficients:
                totals.setdefault(word, []).append(score)
    if len(totals) < 2:
        return float("nan")
    scores = np.array([np.mean(each) for each in totals.values()])
    return _pearson(scores, np.array([coefficients[word] for word in totals], float))


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else float("nan")


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return Spearman's correlation of two arrays of scores, ties by their mean rank."""
    a, b = np.asarray(a, float).ravel(), np.asarray(b, float).ravel()
    if a.shape != b.shape:
        raise ValueError(f"rank_correlation: {a.size} scores against {b.size}")
    return _pearson(_ranks(a), _ranks(b))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def robustness(
    model: Callable[..., Any],
    input: Tensor,
    attacked: Tensor,
    target: int | None = None,
    *,
    method: str = "cd",
    **options: Any,
) -> float:
    """Return the rank correlation of a method's scores for an input and for its attacked twin.

    Both are explained for `target`, by default the class predicted for the original.
    """
    before = attribute(model, input, target, method=method, **options)
    after = attribute(model, attacked, before.target, method=method, **options)
    return rank_correlation(before.scores, after.scores)


# -- attacks -------------------------------------------------------------------------------------


def _attack(
    model: Callable[..., Any],
    input: Tensor,
    direction: Callable[[np.ndarray], np.ndarray],
    largest: float,
    steps: int,
    bounds: tuple[float, float] | None,
) -> Tensor | None:
    if steps < 1 or largest <= 0:
        raise ValueError(f"attack: steps and largest must be positive, not {steps} and {largest}")
    with evaluating(model):
        leaf = wrap(np.array(input._array, copy=True))
        leaf._requires_grad = True
        with enable_grad():
            logits = model(leaf)
            label = int(logits._array.reshape(-1).argmax())
            loss = cross_entropy(logits.reshape(1, -1), wrap(np.array([label])))
            (slope,) = grad(loss, [leaf])
        way = direction(slope._array)
        with no_grad():
            for step in range(1, steps + 1):
                moved = input._array + np.asarray(largest * step / steps, way.dtype) * way
                if bounds is not None:
                    moved = np.clip(moved, *bounds)
                if int(logits_of(model, wrap(moved)).reshape(-1).argmax()) != label:
                    return wrap(moved)
    return None


def fgsm(
    model: Callable[..., Any],
    input: Tensor,
    largest: float = 1.0,
    steps: int = 100,
    bounds: tuple[float, float] | None = None,
) -> Tensor | None:
    """Return the input moved along the sign of the loss's gradient until its class changes.

    Parameters
    ----------
    model : Module or callable
    input : Tensor
        One sample.
    largest : float
        The longest step tried, per element.
    steps : int
        How many lengths are tried, in equal distances.
    bounds : pair of float, optional
        What values an input may have.

    Returns
    -------
    Tensor or None
        None if no step up to `largest` changes the class.

    Notes
    -----
    Goodfellow, Shlens, Szegedy, "Explaining and harnessing adversarial examples" (2015).
    """
    return _attack(model, input, np.sign, largest, steps, bounds)


def gradient_attack(
    model: Callable[..., Any],
    input: Tensor,
    largest: float = 10.0,
    steps: int = 100,
    bounds: tuple[float, float] | None = None,
) -> Tensor | None:
    """Like :func:`fgsm`, along the gradient itself; `largest` is a Euclidean length."""

    def unit(slope: np.ndarray) -> np.ndarray:
        length = float(np.sqrt((slope * slope).sum()))
        return slope / np.asarray(length or 1.0, slope.dtype)

    return _attack(model, input, unit, largest, steps, bounds)
