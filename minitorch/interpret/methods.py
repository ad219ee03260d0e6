"""Scorers by name: one call to make any of them, and the class they are asked about."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.interpret.gradients import GradientTimesInput, IntegratedGradients
from minitorch.interpret.sampling import ShapleySampling
from minitorch.interpret.scorers import BuildUp, CDScorer, Occlusion, Scorer
from minitorch.interpret.units import Units
from minitorch.ops._typing import Tensor

__all__ = ["METHODS", "class_number", "make_scorer"]

METHODS: dict[str, Callable[..., Scorer]] = {
    scorer.name: scorer
    for scorer in (
        CDScorer,
        Occlusion,
        BuildUp,
        GradientTimesInput,
        IntegratedGradients,
        ShapleySampling,
    )
}


def make_scorer(
    method: str, model: Callable[..., Any], input: Tensor, units: Units, **options: Any
) -> Scorer:
    """Return the scorer of this name for a model and one input.

    Raises
    ------
    ValueError
        If there is no such method.
    TypeError
        If it does not have an option.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; there are: {', '.join(METHODS)}")
    known = list(inspect.signature(METHODS[method]).parameters)[3:]
    for name in options:
        if name not in known:
            others = ", ".join(known) or "none"
            raise TypeError(f"the method {method!r} has no option {name!r}; it has: {others}")
    return METHODS[method](model, input, units, **options)


def class_number(target: Any, logits: np.ndarray) -> int:
    """Return the number of the class to explain, from 0; the predicted one for None.

    Raises
    ------
    TypeError
        If `target` is no integer.
    ValueError
        If the model has no such class.
    """
    if target is None:
        return int(logits.argmax())
    try:
        number = operator.index(target)
    except TypeError:
        raise TypeError(f"target must be the number of a class, not {target!r}") from None
    if not -logits.size <= number < logits.size:
        raise ValueError(f"target {number} is not one of {logits.size} classes")
    return number % logits.size
