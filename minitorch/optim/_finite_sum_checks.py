"""Checks of what optimizers of finite sums are given: counts, sample numbers, constants, states."""

from __future__ import annotations

import math
import numbers
import operator
import warnings
from typing import Any

import numpy as np

from ..tensor import Tensor
from ._rules import plain

__all__ = ["constants", "count", "index", "keep_prox", "memory_limit", "saved", "weight_decay"]


def count(value: Any, name: str = "n_samples") -> int:
    """How many of something there are, at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, but got {type(value).__name__}") from None
    if isinstance(value, bool) or number < 1:
        raise ValueError(f"{name} must be at least 1, but got {value}")
    return number


def index(sample: Any, n_samples: int) -> int:
    """The number of one sample."""
    if isinstance(sample, Tensor) and sample._array.ndim == 0:
        sample = sample._array[()]
    if isinstance(sample, (bool, np.bool_)):
        raise TypeError("step(index) takes the number of a sample, but got a bool")
    several = getattr(sample, "ndim", 0) > 0  # an array of one element is still a list
    try:
        number = None if several else operator.index(sample)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(
            f"step(index) takes the number of one sample, but got {type(sample).__name__}. A "
            "gradient of several samples fills no row: step on one after the other, or number "
            "fixed mini-batches (n_samples = how many there are) and give that number"
        )
    if not 0 <= number < n_samples:
        raise IndexError(f"sample {number} is out of range: there are {n_samples}, counted from 0")
    return number


def constants(L: Any, mu: Any) -> tuple[float | None, float | None]:
    """Smoothness and strong convexity of every sample's loss, where they are given."""
    L, mu = (None if x is None else _float(n, x) for n, x in (("L", L), ("mu", mu)))
    if L is not None and not 0.0 < L < math.inf:
        raise ValueError(f"Invalid L value: {L} (the smoothness of each sample's loss)")
    if mu is not None and not 0.0 <= mu < math.inf:
        raise ValueError(f"Invalid mu value: {mu} (the strong convexity of each sample's loss)")
    return L, mu


def weight_decay(value: Any) -> float:
    """A finite number that is not negative."""
    number = _float("weight_decay", value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"Invalid weight_decay value: {value}")
    return number


def memory_limit(value: Any) -> int | None:
    """A number of bytes, or None for as many as there are."""
    return None if value is None else int(_float("memory_limit", value))


def _float(name: str, value: Any) -> float:
    """A hyperparameter as a float; a 1-element tensor is one too."""
    number = plain(value)
    if not isinstance(number, numbers.Real):
        raise TypeError(f"{name} must be a number, but got {type(value).__name__}")
    return float(number)


def saved(there: Any, own: dict[str, Any]) -> None:
    """Refuse a ``state["samples"]`` of a checkpoint that does not fit the optimizer's own."""
    kind = there.get("kind") if isinstance(there, dict) else None
    if kind != own["kind"]:
        raise ValueError(
            f"loaded state dict is not one of {own['kind']}"
            + (f" but of {kind}" if kind else ": it has no state['samples']")
        )
    for name, value in own.items():
        found = there.get(name)
        if isinstance(value, Tensor):
            expected, got = f"of shape {tuple(value.shape)}", _shape(found)
        else:
            expected, got = type(value).__name__, type(found).__name__
        if expected != got:
            raise ValueError(
                f"loaded state dict does not fit: state['samples'][{name!r}] should be {expected}, "
                f"but is {got}"
            )


def keep_prox(groups: list[dict[str, Any]], own: list[dict[str, Any]]) -> None:
    """Put the optimizer's own prox into loaded groups, which only name theirs."""
    for group, present in zip(groups, own, strict=True):
        named, group["prox"] = group.get("prox"), present["prox"]
        if named != repr(present["prox"]):
            warnings.warn(
                f"the state was saved with prox={named}; continuing with the present one, "
                f"{present['prox']!r}",
                stacklevel=5,
            )


def _shape(value: Any) -> str:
    return f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
