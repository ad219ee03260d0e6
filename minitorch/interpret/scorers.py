"""Scores of groups, whatever the method: ``scorer(groups) -> (groups, classes)``.

========================  ==========================================================================
name                      a group's score for each class
========================  ==========================================================================
``cd``                    the relevant logits of contextual decomposition
``occlusion``             the logits' drop when the group is replaced by the baseline
``build_up``              the logits when everything but the group is replaced by the baseline
``gradient_x_input``      gradient times (input - baseline), added up over the group
``integrated_gradients``  the same with the gradient averaged along the way from the baseline
``shapley``               Shapley values of the units by sampling orders, added up over the group
========================  ==========================================================================

The last three score units, and a group is the sum of its units; the first three see the group as
one. All groups of a call go through the model together, in chunks that fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minitorch.autograd import no_grad, wrap
from minitorch.interpret.borrowed import evaluating
from minitorch.interpret.decompose import Decomposer
from minitorch.interpret.units import Units
from minitorch.ops._typing import Tensor

__all__ = ["Additive", "BuildUp", "CDScorer", "Occlusion", "Scorer", "batch_axis", "repeated"]

# Bytes that the widest value of one chunk may take, all its masks together.
CHUNK_BYTES = 1 << 24


class Scorer:
    """What all scorers share.

    Attributes
    ----------
    name : str
    logits : numpy.ndarray
        ``(classes,)``: the prediction for the whole input.
    """

    name = ""
    units: Units
    logits: np.ndarray

    def __call__(self, groups: np.ndarray) -> np.ndarray:
        """Return scores ``(groups, classes)`` of groups, bool ``(groups, units)``."""
        raise NotImplementedError


def chunks(count: int, size: int) -> Iterator[slice]:
    """Cut `count` items into slices of at most `size`."""
    size = max(size, 1)
    return (slice(start, start + size) for start in range(0, count, size))


class CDScorer(Scorer):
    """Contextual decomposition: one recorded pass, and all groups of a call in one propagation."""

    name = "cd"

    def __init__(
        self,
        model: Callable[..., Any],
        input: Tensor,
        units: Units,
        bias: str = "exact",
        lstm_bias: str = "words",
    ) -> None:
        self.units = units
        self._decomposer = Decomposer(model, input, bias=bias, lstm_bias=lstm_bias)
        self.logits = one_row(self._decomposer.logits)
        self._ndim = input.dim()
        sizes = [
            int(np.prod(shape)) for call in self._decomposer.trace.calls for shape in call.shapes
        ]
        self._chunk = CHUNK_BYTES // (input._array.itemsize * max([input.numel(), *sizes]))

    def __call__(self, groups: np.ndarray) -> np.ndarray:
        out = np.empty((len(groups), self.logits.size), self.logits.dtype)
        missing = self._ndim - self.units.layout.ndim
        for part in chunks(len(groups), self._chunk):
            masks = self.units.masks(groups[part])
            masks = masks.reshape(len(masks), *(1,) * missing, *masks.shape[1:])
            relevant, _ = self._decomposer(masks)
            out[part] = relevant.reshape(len(masks), self.logits.size)
        return out


def one_row(logits: np.ndarray) -> np.ndarray:
    """Return the logits of a single sample as a vector.

    Raises
    ------
    ValueError
        If the model returned more than one row.
    """
    if logits.ndim > 2 or (logits.ndim == 2 and logits.shape[0] != 1):
        raise ValueError(
            f"expected the logits (classes,) or (1, classes) of one sample, got {logits.shape}"
        )
    return logits.reshape(-1)


# -- methods that change the input ---------------------------------------------------------------


def batch_axis(input: Tensor, units: Units) -> int | None:
    """Return the axis of length 1 along which copies of an input can be stacked, if there is one.

    It is the first axis of length 1 in which no unit lies; for a text of one word the first axis.
    """
    layout = units.layout
    lengths = (1,) * (input.dim() - layout.ndim) + layout.shape
    for axis, (size, length) in enumerate(zip(input.shape, lengths, strict=True)):
        if size == 1 and length == 1:
            return axis
    return None


def repeated(input: np.ndarray, axis: int, choices: np.ndarray, baseline: Any) -> np.ndarray:
    """Stack copies of `input` along `axis`, each kept where its choice is True, else `baseline`.

    `choices` is ``(copies, *input.shape)``, broadcasting.
    """
    copies = np.where(choices, input, np.asarray(baseline, input.dtype))
    return np.concatenate(list(copies), axis=axis) if len(copies) != 1 else copies[0]


class Perturbation(Scorer):
    """Runs the model on copies of the input, parts of them replaced by a baseline.

    Parameters
    ----------
    baseline : number or array_like
        What stands for "nothing": a value that broadcasts over the input, a token id for texts.
    """

    def __init__(
        self, model: Callable[..., Any], input: Tensor, units: Units, baseline: Any = 0
    ) -> None:
        self.model, self.units = model, units
        self.input = input._array
        self.baseline = np.asarray(getattr(baseline, "_array", baseline))
        self._axis = batch_axis(input, units)
        self._ndim = input.dim()
        self._chunk = max(CHUNK_BYTES // (8 * max(input._array.nbytes, 1)), 1)
        self.logits = self.predict(np.ones((1, units.count), bool))[0]

    def predict(self, kept: np.ndarray) -> np.ndarray:
        """Return the logits ``(groups, classes)`` with only the units in `kept` left."""
        rows = []
        missing = self._ndim - self.units.layout.ndim
        size = 1 if self._axis is None else self._chunk
        with evaluating(self.model), no_grad():
            for part in chunks(len(kept), size):
                choices = self.units.masks(kept[part])
                choices = choices.reshape(len(choices), *(1,) * missing, *choices.shape[1:])
                if self._axis is None:
                    copies = np.where(
                        choices[0], self.input, self.baseline.astype(self.input.dtype)
                    )
                else:
                    copies = repeated(self.input, self._axis, choices, self.baseline)
                rows.append(logits_of(self.model, wrap(copies)).reshape(len(choices), -1))
        return np.concatenate(rows)


def logits_of(model: Callable[..., Any], input: Tensor) -> np.ndarray:
    """Run a model and return its first output as an array."""
    output = model(input)
    while isinstance(output, (tuple, list)):
        output = output[0]
    return output._array


class Occlusion(Perturbation):
    """What the prediction loses without the group.

    Parameters
    ----------
    difference : bool
        False gives the negated logits without the group, which the published code has for images.
    """

    name = "occlusion"

    def __init__(
        self,
        model: Callable[..., Any],
        input: Tensor,
        units: Units,
        baseline: Any = 0,
        difference: bool = True,
    ) -> None:
        super().__init__(model, input, units, baseline)
        self._whole: Any = self.logits if difference else 0.0

    def __call__(self, groups: np.ndarray) -> np.ndarray:
        return self._whole - self.predict(~groups)


class BuildUp(Perturbation):
    """What the group predicts alone."""

    name = "build_up"

    def __call__(self, groups: np.ndarray) -> np.ndarray:
        return self.predict(groups)


# -- methods that score units --------------------------------------------------------------------


class Additive(Scorer):
    """Scores of units ``(units, classes)``; a group is the sum of its units."""

    def __init__(self, name: str, units: Units, scores: np.ndarray, logits: np.ndarray) -> None:
        self.name, self.units, self.scores, self.logits = name, units, scores, logits

    def __call__(self, groups: np.ndarray) -> np.ndarray:
        return groups.astype(self.scores.dtype) @ self.scores
