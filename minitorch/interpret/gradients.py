"""Gradient times input, and integrated gradients.

Both look at how the logits change along a straight way from a baseline to the input. For token ids
the way leads through the embeddings: whatever the model's embedding layers return is replaced.

Sources: Sundararajan, Taly, Yan, "Axiomatic attribution for deep networks" (ICML 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minitorch.autograd import enable_grad, grad, no_grad, wrap
from minitorch.interpret.borrowed import evaluating, in_this_thread
from minitorch.interpret.scorers import CHUNK_BYTES, Additive, batch_axis, chunks, one_row
from minitorch.interpret.units import Units
from minitorch.nn.modules.module import Module
from minitorch.nn.modules.sparse import Embedding
from minitorch.ops._typing import Tensor
from minitorch.ops.softmax import softmax

__all__ = ["GradientTimesInput", "IntegratedGradients"]


class Front:
    """The floating values a prediction starts from: the input itself, or its embeddings.

    Parameters
    ----------
    model, input, units
        As everywhere.

    Attributes
    ----------
    values : list of numpy.ndarray
        The input, or for ids what each embedding layer returns for it.
    axis : int or None
        Along which copies are stacked.
    """

    def __init__(self, model: Callable[..., Any], input: Tensor, units: Units) -> None:
        self.model, self.input, self.units = model, input, units
        self.axis = batch_axis(input, units)
        self.ids = input._array.dtype.kind in "iub"
        self.layers: list[Embedding] = []
        self.values = [input._array]
        if self.ids:
            self.values = self._embedded(input._array)

    def _embedded(self, ids: np.ndarray) -> list[np.ndarray]:
        """Run the model on ids and return what its embedding layers made of them."""
        if not isinstance(self.model, Module):
            raise TypeError(
                "gradients for token ids need a Module: its embedding layers are where they begin"
            )
        found: list[tuple[Embedding, np.ndarray]] = []

        def note(module: Any, args: tuple, output: Any) -> None:
            if np.array_equal(args[0]._array.ravel(), ids.ravel()):
                found.append((module, output._array.copy()))

        handles = [
            module.register_forward_hook(in_this_thread(note))
            for module in self.model.modules()
            if isinstance(module, Embedding)
        ]
        try:
            with evaluating(self.model), no_grad():
                self.model(wrap(ids))
        finally:
            for handle in handles:
                handle.remove()
        if not found:
            raise ValueError(
                "gradients for token ids: no nn.Embedding of the model reads the ids as they are"
            )
        self.layers = [layer for layer, _ in found]
        return [output for _, output in found]

    def baseline(self, value: Any) -> list[np.ndarray]:
        """Return what stands for "nothing"; for ids a token, or None for zero vectors."""
        if self.ids:
            if value is None:
                return [np.zeros_like(each) for each in self.values]
            ids = np.broadcast_to(np.asarray(value), self.input.shape)
            return self._embedded(ids.astype(self.input._array.dtype))
        filled = np.broadcast_to(np.asarray(0 if value is None else value), self.input.shape)
        return [filled.astype(self.values[0].dtype)]

    @contextmanager
    def _replaced(self, leaves: list[Tensor]) -> Iterator[None]:
        queue: dict[int, list[Tensor]] = {}
        for layer, leaf in zip(self.layers, leaves, strict=True):
            queue.setdefault(id(layer), []).append(leaf)
        replace = in_this_thread(lambda module, args, output: queue[id(module)].pop(0))
        handles = [layer.register_forward_hook(replace) for layer in dict.fromkeys(self.layers)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def gradients(
        self, points: np.ndarray, baseline: list[np.ndarray], probability: bool
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return gradients on the way from the baseline to the input, and the outputs there.

        Parameters
        ----------
        points : numpy.ndarray
            ``(points,)``: how far along the way, 0 the baseline and 1 the input.

        Returns
        -------
        list of numpy.ndarray
            For each value ``(classes, points, *value.shape)``.
        numpy.ndarray
            ``(points, classes)``.
        """
        axis = 0 if self.axis is None else self.axis
        widths = [value.shape[axis] for value in self.values]
        leaves = []
        for value, start in zip(self.values, baseline, strict=True):
            steps = points.astype(value.dtype).reshape(-1, *(1,) * value.ndim)
            way = start + steps * (value - start)
            leaf = wrap(np.concatenate(list(way), axis=axis) if self.axis is not None else way[0])
            leaf._requires_grad = True
            leaves.append(leaf)
        with evaluating(self.model), enable_grad():
            if self.ids:
                ids = self.input._array
                copies = np.concatenate([ids] * len(points), axis) if len(points) > 1 else ids
                with self._replaced(leaves):
                    output = self.model(wrap(copies))
            else:
                output = self.model(leaves[0])
            while isinstance(output, (tuple, list)):
                output = output[0]
            output = output.reshape(len(points), -1)
            if probability:
                output = softmax(output, -1)
            found: list[list[np.ndarray]] = [[] for _ in leaves]
            for number in range(output.shape[1]):
                total = output[:, number].sum()
                made = grad(total, leaves, retain_graph=True, allow_unused=True)
                for each, leaf, width, into in zip(made, leaves, widths, found, strict=True):
                    array = np.zeros_like(leaf._array) if each is None else each._array
                    pieces = (
                        [array]
                        if self.axis is None
                        else [
                            np.take(array, range(at * width, (at + 1) * width), axis)
                            for at in range(len(points))
                        ]
                    )
                    into.append(np.stack(pieces))
        return [np.stack(each) for each in found], output._array

    def per_unit(self, contributions: list[np.ndarray]) -> np.ndarray:
        """Add up contributions ``(classes, *value.shape)`` over each unit: ``(units, classes)``."""
        total: Any = 0.0
        for each in contributions:
            extra = each.ndim - 1 - self.input.dim() if self.ids else 0
            total = total + (each.sum(axis=tuple(range(-extra, 0))) if extra else each)
        layout = np.broadcast_to(self.units.layout, self.input.shape).ravel()
        return np.stack(
            [np.bincount(layout, row.ravel(), self.units.count) for row in total], axis=1
        )


class GradientTimesInput(Additive):
    """The gradient at the input times how far the input is from the baseline.

    Parameters
    ----------
    baseline : number, array_like or token id, optional
        Zeros by default (zero vectors for token ids).
    """

    name = "gradient_x_input"

    def __init__(
        self, model: Callable[..., Any], input: Tensor, units: Units, baseline: Any = None
    ) -> None:
        front = Front(model, input, units)
        start = front.baseline(baseline)
        found, output = front.gradients(np.ones(1), start, False)
        contributions = [
            each[:, 0] * (value - begin)
            for each, value, begin in zip(found, front.values, start, strict=True)
        ]
        super().__init__(self.name, units, front.per_unit(contributions), one_row(output))


class IntegratedGradients(Additive):
    """Gradients averaged along the way from the baseline, times the whole way.

    Parameters
    ----------
    baseline : number, array_like or token id, optional
        Zeros by default (zero vectors for token ids).
    steps : int
        Points on the way.
    quadrature : {"gauss", "mean"}
        Gauss-Legendre, or the plain mean over equally spaced points with both ends, as in the
        published code.
    output : {"logit", "probability"}
        What is explained.

    Attributes
    ----------
    convergence_delta : numpy.ndarray
        ``(classes,)``: what the scores of all units lack to make up the whole difference between
        the outputs at the input and at the baseline; near zero if there are enough steps.
    """

    name = "integrated_gradients"

    def __init__(
        self,
        model: Callable[..., Any],
        input: Tensor,
        units: Units,
        baseline: Any = None,
        steps: int = 50,
        quadrature: str = "gauss",
        output: str = "logit",
    ) -> None:
        if steps < 1:
            raise ValueError(f"integrated gradients: steps must be at least 1, not {steps}")
        if quadrature not in ("gauss", "mean"):
            raise ValueError(f'quadrature must be "gauss" or "mean", not {quadrature!r}')
        if output not in ("logit", "probability"):
            raise ValueError(f'output must be "logit" or "probability", not {output!r}')
        probability = output == "probability"
        front = Front(model, input, units)
        start = front.baseline(baseline)
        if quadrature == "gauss":
            places, weights = np.polynomial.legendre.leggauss(steps)
            places, weights = (places + 1) / 2, weights / 2
        else:
            places, weights = np.linspace(0, 1, steps), np.full(steps, 1 / steps)
        size = sum(value.nbytes for value in front.values)
        room = 1 if front.axis is None else max(CHUNK_BYTES // (64 * max(size, 1)), 1)
        averages: list[Any] = [0.0] * len(front.values)
        for part in chunks(steps, room):
            found, _ = front.gradients(places[part], start, probability)
            averages = [
                average + np.tensordot(weights[part], each, axes=(0, 1))
                for average, each in zip(averages, found, strict=True)
            ]
        contributions = [
            average * (value - begin)
            for average, value, begin in zip(averages, front.values, start, strict=True)
        ]
        scores = front.per_unit(contributions)
        _, first = front.gradients(np.zeros(1), start, probability)
        _, last = front.gradients(np.ones(1), start, probability)
        self.convergence_delta = scores.sum(axis=0) - (last - first)[0]
        super().__init__(self.name, units, scores, one_row(last))
