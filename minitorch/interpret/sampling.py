"""Shapley values of units by sampling orders (Castro, Gomez, Tejada 2009; the way of SHAP).

Units join one by one in a random order, and each is credited with what the prediction gains when it
does. Every order's credits add up to the whole difference between input and baseline, so their mean
does too. Orders come in pairs, one the other's reverse, which halves the variance or better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.interpret.scorers import Additive, Perturbation
from minitorch.interpret.units import Units
from minitorch.ops._typing import Tensor
from minitorch.random.addressed import addressed_permutation

__all__ = ["ShapleySampling"]


class ShapleySampling(Additive):
    """Sampled Shapley values of the logits.

    Parameters
    ----------
    baseline : number, array_like or token id
        What stands for a missing unit.
    samples : int
        Orders; an odd number is rounded up. The model runs ``samples * (units + 1)`` times.
    seed : int
        Which orders; the global generator is not touched.
    """

    name = "shapley"

    def __init__(
        self,
        model: Callable[..., Any],
        input: Tensor,
        units: Units,
        baseline: Any = 0,
        samples: int = 20,
        seed: int = 0,
    ) -> None:
        if samples < 1:
            raise ValueError(f"shapley: samples must be at least 1, not {samples}")
        game = Perturbation(model, input, units, baseline)
        n = units.count
        total = np.zeros((n, game.logits.size), game.logits.dtype)
        pairs = (samples + 1) // 2
        # Row i: who is there after i units have joined, by place in the order.
        joined = np.tri(n + 1, n, -1, dtype=bool)
        for number in range(pairs):
            order = addressed_permutation(seed, number, 0, n)
            for each in (order, order[::-1]):
                kept = np.zeros((n + 1, n), bool)
                kept[:, each] = joined
                total[each] += np.diff(game.predict(kept), axis=0)
        super().__init__(self.name, units, total / (2 * pairs), game.logits)
