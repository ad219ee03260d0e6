"""Flat scores: one number per unit, by any method, behind one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.interpret.methods import class_number, make_scorer
from minitorch.interpret.units import Units, units_of
from minitorch.ops._typing import Tensor

__all__ = ["Attribution", "attribute"]


@dataclass(frozen=True)
class Attribution:
    """What each unit of one input contributes.

    Attributes
    ----------
    scores : numpy.ndarray
        ``(units,)``: for the explained class.
    all_scores : numpy.ndarray
        ``(units, classes)``.
    target : int
    logits : numpy.ndarray
        ``(classes,)``.
    method : str
    units : Units
    convergence_delta : float or None
        Integrated gradients only: what the scores' sum lacks to the difference of the outputs.
    """

    scores: np.ndarray
    all_scores: np.ndarray
    target: int
    logits: np.ndarray
    method: str
    units: Units
    convergence_delta: float | None = None

    def map(self) -> np.ndarray:
        """Return the scores laid out over the input's positions, such as ``(H, W)``."""
        return self.scores[self.units.layout]


def attribute(
    model: Callable[..., Any],
    inputs: Tensor,
    target: int | None = None,
    *,
    method: str = "cd",
    units: Any = None,
    block: int = 1,
    contrast: bool = False,
    **options: Any,
) -> Attribution:
    """Score every word, time step or pixel of one input.

    Parameters
    ----------
    model, inputs, target, method, units, block, **options
        As in :func:`minitorch.interpret.agglomerate`.
    contrast : bool
        Of two classes, score the target's logit minus the other's.

    Returns
    -------
    Attribution

    Examples
    --------
    >>> import minitorch
    >>> from minitorch import interpret, nn
    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = model.weight.data.copy_(minitorch.tensor([[2.0, -3.0]]))
    >>> x = minitorch.tensor([[1.0, 2.0]])
    >>> for method in ("cd", "occlusion", "integrated_gradients"):
    ...     interpret.attribute(model, x, 0, method=method).scores.round(6).tolist()
    [2.0, -6.0]
    [2.0, -6.0]
    [2.0, -6.0]
    """
    found = units_of(inputs, units, block)
    scorer = make_scorer(method, model, inputs, found, **options)
    classes = scorer.logits.size
    target = class_number(target, scorer.logits)
    if contrast and classes != 2:
        raise ValueError(f"attribute: contrast needs two classes, the model has {classes}")
    every = scorer(np.eye(found.count, dtype=bool))
    delta = getattr(scorer, "convergence_delta", None)

    def value(scores: np.ndarray) -> np.ndarray:
        picked = scores[..., target]
        return picked - scores[..., 1 - target] if contrast else picked

    return Attribution(
        value(every),
        every,
        target,
        scorer.logits,
        scorer.name,
        found,
        None if delta is None else float(value(delta)),
    )
