"""Scorers by name: one call to make any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch.interpret.gradients import GradientTimesInput, IntegratedGradients
from minitorch.interpret.sampling import ShapleySampling
from minitorch.interpret.scorers import BuildUp, CDScorer, Occlusion, Scorer
from minitorch.interpret.units import Units
from minitorch.ops._typing import Tensor

__all__ = ["METHODS", "make_scorer"]

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
    return METHODS[method](model, input, units, **options)
