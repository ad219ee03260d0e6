"""Agglomerative contextual decomposition: grow groups from units, best first, into a tree.

Every round asks for each group what one more neighbour would add to its score, and picks the best
candidates; what is picked and connected is a group. Algorithm 1 of Singh, Murdoch, Yu,
"Hierarchical interpretations for neural network predictions" (ICLR 2019). All candidates of a
round are scored in one call, hence in one pass through the network.

========  ===============================================================================
words     until every word is picked
images    for some rounds; then groups are joined two by two, the best pair first
========  ===============================================================================

``grow.py`` holds the rounds; ``reference.py`` what the published code does differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitorch.interpret.grow import Grower, grow
from minitorch.interpret.methods import class_number, make_scorer
from minitorch.interpret.reference import grow_grid, grow_line
from minitorch.interpret.scorers import Scorer
from minitorch.interpret.tree import Step, Tree, TreeBuilder
from minitorch.interpret.units import Units, units_of
from minitorch.ops._typing import Tensor

__all__ = ["agglomerate"]


def agglomerate(
    model: Callable[..., Any],
    inputs: Tensor,
    target: int | None = None,
    *,
    method: str | Scorer = "cd",
    units: Any = None,
    block: int = 1,
    percentile: float | None = None,
    top_k: int | None = None,
    num_iters: int | None = None,
    absolute: bool | None = None,
    contrast: bool | None = None,
    smooth: bool = True,
    mode: str = "paper",
    names: Sequence[str] | None = None,
    **options: Any,
) -> Tree:
    """Explain one prediction by a hierarchy of groups of words, time steps or pixels.

    Parameters
    ----------
    model : Module or callable
    inputs : Tensor
        One sample: token ids, an image, a sequence of vectors, or a row of features; see
        :func:`minitorch.interpret.units.units_of` for the shapes.
    target : int, optional
        The class to explain; by default the predicted one.
    method : str or Scorer
        "cd", "occlusion", "build_up", "gradient_x_input", "integrated_gradients" or "shapley".
    units : None, "words", "time", "pixels" or array of int
        What is never taken apart; an array gives segments, such as superpixels.
    block : int
        Side of a square of pixels, or number of words, that make one unit.
    percentile : float, optional
        Candidates at or above this percentile are picked in each round; 90 for texts and 95 for
        images by default, as in the paper.
    top_k : int, optional
        Pick this many candidates per round instead.
    num_iters : int, optional
        Rounds before groups are joined in pairs; by default until all is picked for texts, 5 for
        images and segments.
    absolute : bool, optional
        Whether the candidates' absolute values compete; by default for texts.
    contrast : bool, optional
        Score a class by its logit minus the other's; by default if there are two classes.
    smooth : bool
        On grids, also pick units with three or more picked neighbours out of four.
    mode : {"paper", "reference"}
        "reference" repeats the published code step by step, quirks included.
    names : sequence of str, optional
        What the units are called, for instance the words.
    **options
        For the method: `bias`, `lstm_bias` (cd), `baseline` (all others), `steps` (integrated
        gradients), `samples` and `seed` (shapley).

    Returns
    -------
    Tree
        Groups, scores, children, order, and the record of the rounds.

    Raises
    ------
    ValueError
        If the input holds more than one sample, an option is out of range, or a score is not
        finite.

    Examples
    --------
    >>> import minitorch
    >>> from minitorch import interpret, nn
    >>> model = nn.Linear(3, 2, bias=False)
    >>> weight = minitorch.tensor([[3.0, 1.0, -0.5], [0.0, 0.0, 0.0]])
    >>> _ = model.weight.data.copy_(weight)
    >>> tree = interpret.agglomerate(model, minitorch.ones(1, 3), 0)
    >>> [(group.members, group.score) for group in tree if group.size > 1]
    [((0, 1), 4.0), ((0, 1, 2), 3.5)]
    """
    found = units_of(inputs, units, block)
    if found.count == 0:
        raise ValueError("agglomerate: the input has no units")
    if mode not in ("paper", "reference"):
        raise ValueError(f'agglomerate: mode must be "paper" or "reference", not {mode!r}')
    if percentile is not None and not 0 <= percentile <= 100:
        raise ValueError(f"agglomerate: percentile must be between 0 and 100, not {percentile}")
    if top_k is not None and (top_k < 1 or top_k != int(top_k)):
        raise ValueError(f"agglomerate: top_k must be a whole number from 1, not {top_k}")
    if num_iters is not None and (num_iters < 0 or num_iters != int(num_iters)):
        raise ValueError(f"agglomerate: num_iters must be a whole number from 0, not {num_iters}")
    if names is not None and len(names) != found.count:
        raise ValueError(f"agglomerate: {len(names)} names for {found.count} units")
    in_line = found.grid is None and _is_line(found)
    if mode == "reference":
        options = {**_reference_options(method, in_line), **options}
    scorer = (
        method
        if isinstance(method, Scorer)
        else make_scorer(method, model, inputs, found, **options)
    )
    classes = scorer.logits.size
    target = class_number(target, scorer.logits)
    if contrast is None:
        contrast = classes == 2 and (mode == "paper" or in_line)
    if contrast and classes != 2:
        raise ValueError(f"agglomerate: contrast needs two classes, the model has {classes}")
    grower = Grower(
        scorer,
        found,
        target,
        percentile=percentile if percentile is not None else (90.0 if in_line else 95.0),
        top_k=None if top_k is None else int(top_k),
        num_iters=int(num_iters) if num_iters is not None else (found.count if in_line else 5),
        absolute=in_line if absolute is None else absolute,
        contrast=contrast,
        smooth=smooth and found.grid is not None,
        ahead=2 if in_line else 0,
    )
    if mode == "reference":
        if not in_line and found.grid is None:
            raise ValueError('agglomerate: mode="reference" knows words and square blocks only')
        steps = grow_line(grower) if in_line else grow_grid(grower)
    else:
        steps = grow(grower)
    settings = {
        "mode": mode,
        "percentile": grower.percentile,
        "top_k": top_k,
        "num_iters": grower.num_iters,
        "absolute": grower.absolute,
        "contrast": contrast,
        "smooth": grower.smooth,
        "block": block,
        **{name: value for name, value in options.items() if isinstance(value, (str, int, float))},
    }
    return _tree(grower, steps, list(names) if names is not None else None, settings)


def _reference_options(method: str | Scorer, in_line: bool) -> dict[str, Any]:
    """Return the conventions of the published code for a method."""
    if method == "cd":
        return {"bias": "golden"}
    return {"difference": False} if method == "occlusion" and not in_line else {}


def _is_line(units: Units) -> bool:
    numbers = np.arange(max(units.count - 1, 0))
    return units.edges.shape == (len(numbers), 2) and bool(
        (units.edges == np.stack([numbers, numbers + 1], axis=1)).all()
    )


def _tree(
    grower: Grower, steps: list[Step], names: list[str] | None, settings: dict[str, Any]
) -> Tree:
    """Read the groups off the record, and close the tree with the whole input."""
    builder = TreeBuilder(grower.leaf_scores, grower.value)
    for order, step in enumerate(steps[1:], 1):
        for name, scores in step.scores.items():
            builder.add(np.flatnonzero(step.labels == name).tolist(), scores, order)
    builder.add(range(grower.units.count), grower.full(), len(steps))
    return Tree(
        builder.groups,
        grower.units.layout,
        grower.target,
        grower.scorer.logits,
        grower.scorer.name,
        steps,
        names,
        settings,
    )
