"""Contextual decomposition: what a chosen part of the input contributes to the prediction.

The input is split by a mask into a relevant part ``mask * x`` and the irrelevant rest. Both travel
through the network side by side, rule by rule in forward order, so that at every point their sum is
what the network computes; at the end they are two vectors of logits. The interaction of the two
parts is shared by the rules (``rules/``), which are the method.

Sources: Murdoch, Liu, Yu, "Beyond word importance" (ICLR 2018), for recurrent networks; Singh,
Murdoch, Yu, "Hierarchical interpretations for neural network predictions" (ICLR 2019), for
convolutional ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitorch.autograd import TensorBase, no_grad, wrap
from minitorch.interpret.parts import Parts, Run
from minitorch.interpret.registry import find_rule, has_module_rule, moves_elements
from minitorch.interpret.trace import Call, Trace, trace
from minitorch.ops._typing import Tensor

__all__ = ["Decomposer", "cd"]

BIAS = ("exact", "golden")
LSTM_BIAS = ("words", "irrelevant", "all_but_last")


def cd(
    model: Callable[..., Any],
    inputs: Any,
    mask: Any,
    *,
    bias: str = "exact",
    lstm_bias: str = "words",
) -> tuple[np.ndarray, np.ndarray]:
    """Split a model's logits into what the masked part of the input contributes, and the rest.

    Parameters
    ----------
    model : Module or callable
        Run in evaluation mode; made of ops and modules that have rules.
    inputs : Tensor, or tuple of Tensor
        Floating values, or integer token ids (which only embeddings and rearranging ops read).
    mask : array_like, or tuple of array_like and None
        1 (or True) where the input is relevant, 0 elsewhere; broadcast over the input, for token
        ids over positions. Fractions split a value (not an id). One more leading axis than the
        input has asks about many masks at once. With several inputs one mask each; None leaves an
        input whole, as a constant.
    bias : {"exact", "golden"}
        "exact": relevant + irrelevant = logits to rounding; the bias of a unit that gets nothing
        from either side is irrelevant. "golden": the published code's conventions: it is halved
        (linear and convolution layers), and after an LSTM the output layer's bias is left out.
    lstm_bias : {"words", "irrelevant", "all_but_last"}
        Where the product of input gate's and candidate's bias goes: to the relevant part for
        relevant words (so that a whole sentence's score is the prediction), always to the
        irrelevant part (the paper's equation 32), or as for "words" except for the last relevant
        word (published code of the ACD paper's `propagate_lstm`).

    Returns
    -------
    relevant, irrelevant : numpy.ndarray
        Shaped like the logits ``(batch, classes)``; with many masks ``(masks, batch, classes)``. A
        softmax or log-softmax at the model's end is left out: scores are on logits.

    Raises
    ------
    NotImplementedError
        If an op has no rule; the message names it (see :func:`register_rule`).
    ValueError
        If mask and input do not fit, or an option is unknown.

    Examples
    --------
    >>> import minitorch
    >>> from minitorch import interpret, nn
    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = model.weight.data.copy_(minitorch.tensor([[2.0, -3.0]]))
    >>> relevant, irrelevant = interpret.cd(model, minitorch.ones(1, 2), [1, 0])
    >>> relevant.tolist(), irrelevant.tolist()
    ([[2.0]], [[-3.0]])
    """
    return Decomposer(model, inputs, bias=bias, lstm_bias=lstm_bias)(mask)


class Decomposer:
    """One model and one input, recorded once and asked about many masks.

    Parameters
    ----------
    model, inputs, bias, lstm_bias
        As in :func:`cd`.

    Attributes
    ----------
    trace : Trace
    logits : numpy.ndarray
    """

    def __init__(
        self,
        model: Callable[..., Any],
        inputs: Any,
        *,
        bias: str = "exact",
        lstm_bias: str = "words",
    ) -> None:
        for name, value, known in (("bias", bias, BIAS), ("lstm_bias", lstm_bias, LSTM_BIAS)):
            if value not in known:
                raise ValueError(f"cd: {name} must be one of {', '.join(known)}, not {value!r}")
        tensors = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        for tensor in tensors:
            if not isinstance(tensor, TensorBase):
                raise TypeError(f"cd: inputs must be Tensors, not {type(tensor).__name__}")
        self.bias, self.lstm_bias = bias, lstm_bias
        self.trace: Trace = trace(model, tensors, has_module_rule)
        self.logits: np.ndarray = self.trace.output._array.copy()

    def __call__(self, mask: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return (relevant, irrelevant) for a mask, or many; see :func:`cd`."""
        arrays, many = self._masks(mask)
        parts = self.propagate(arrays)
        relevant, irrelevant = parts.rel._array, parts.irr._array
        return (relevant, irrelevant) if many else (relevant[0], irrelevant[0])

    # -- masks -----------------------------------------------------------------------------------

    def _masks(self, mask: Any) -> tuple[list[np.ndarray | None], bool]:
        """Return for each input a mask ``(masks, *shape)`` or None, and whether there are many."""
        tensors = self.trace.inputs
        masks = mask if isinstance(mask, tuple) or len(tensors) > 1 else (mask,)
        if len(masks) != len(tensors):
            raise ValueError(f"cd: {len(tensors)} inputs need as many masks, not {len(masks)}")
        arrays = [None if each is None else _checked(each) for each in masks]
        given = [
            (array, tensor.dim())
            for array, tensor in zip(arrays, tensors, strict=True)
            if array is not None
        ]
        if not given:
            raise ValueError("cd: every mask is None; give one for the input that is asked about")
        many = any(array.ndim > ndim for array, ndim in given)
        count = max(array.shape[0] for array, ndim in given if array.ndim > ndim) if many else 1
        if not count:
            raise ValueError("cd: there are no masks; the leading axis of many masks is empty")
        result: list[np.ndarray | None] = []
        for array, tensor in zip(arrays, tensors, strict=True):
            if array is None:
                result.append(None)
                continue
            shape = tuple(tensor.shape)
            lead = array if array.ndim > len(shape) else array[None]
            missing = len(shape) + 1 - lead.ndim
            lead = lead.reshape(lead.shape[0], *(1,) * missing, *lead.shape[1:])
            try:
                result.append(np.broadcast_to(lead, (count, *shape)))
            except ValueError:
                raise ValueError(
                    f"cd: a mask of shape {array.shape} does not broadcast over the input's shape "
                    f"{shape}"
                ) from None
        return result, many

    # -- propagation -----------------------------------------------------------------------------

    def propagate(self, masks: Sequence[np.ndarray | None], until: int | None = None) -> Parts:
        """Follow the decomposition for ``(masks, *input shape)`` and return the output's parts.

        With `until` stop after that many recorded calls and return the last one's output.
        """
        run = Run(self.bias, self.lstm_bias)
        values: dict[int, Parts] = {}
        for number, (tensor, mask) in enumerate(zip(self.trace.inputs, masks, strict=True)):
            if mask is not None:
                values[number] = _split(tensor, mask)
        count = next(mask.shape[0] for mask in masks if mask is not None)
        last: Parts | None = values.get(self.trace.result)
        with no_grad():
            for call in self.trace.calls[:until]:
                made = _apply(call, values, run, count)
                last = made[0] if made and made[0] is not None else last
                values.update(
                    (target, parts)
                    for target, parts in zip(call.targets, made, strict=True)
                    if parts is not None
                )
                for used in call.last_uses:
                    values.pop(used, None)
        if until is not None:
            assert last is not None
            return last
        result = values.get(self.trace.result)
        if result is None:
            raise ValueError(
                "contextual decomposition: the model's output is a gate, a statistic or a softmax, "
                "which stay whole; explain the logits instead"
            )
        if not run.golden:
            self._check(result, count)
        return result

    def _check(self, result: Parts, count: int) -> None:
        """Raise if the parts do not add up to the logits: then some rule is wrong."""
        total = result.rel._array + result.irr._array
        if not _close(total, self.logits, result.rel._array, result.irr._array):
            raise RuntimeError(
                "contextual decomposition: relevant + irrelevant differ from the logits by up to "
                f"{np.abs(total - self.logits).max():.3g}; the rule of one of these does not keep "
                f"the sum: {', '.join(dict.fromkeys(call.name for call in self.trace.calls))}"
            )


def _checked(mask: Any) -> np.ndarray:
    """Return a mask as an array of numbers."""
    array = np.asarray(getattr(mask, "_array", mask))
    if array.dtype.kind not in "biufV":
        raise ValueError(f"cd: a mask holds numbers, not {array.dtype}")
    if array.dtype.kind in "iu" and not ((array == 0) | (array == 1)).all():
        raise ValueError(
            "cd: a mask of integers is 1 where the input is relevant and 0 elsewhere, but this one "
            f"goes from {array.min()} to {array.max()}; a value is split by a floating mask"
        )
    if array.dtype.kind in "fV" and not np.isfinite(array).all():
        raise ValueError("cd: the mask holds nan or inf")
    return array


def _close(total: np.ndarray, wanted: np.ndarray, *parts: np.ndarray) -> bool:
    """Whether the sum is right to the rounding that its (maybe much larger) parts allow."""
    size = max(
        [
            1.0,
            float(np.abs(wanted).max(initial=0)),
            *(float(np.abs(p).max(initial=0)) for p in parts),
        ]
    )
    tolerance = 1e6 * float(np.finfo(total.dtype).eps) * size if total.dtype.kind == "f" else np.inf
    difference = np.abs(total - wanted)
    # Where the model itself overflowed there is nothing to compare.
    return bool((difference[np.isfinite(difference)] <= tolerance).all())


def _split(tensor: Tensor, mask: np.ndarray) -> Parts:
    """Return the input's two parts."""
    array = tensor._array
    if array.dtype.kind not in "fV":
        if not ((mask == 0) | (mask == 1)).all():
            raise ValueError("cd: a mask over token ids must be 0 or 1 everywhere")
        dtype = np.dtype(np.float32)
        chosen = mask.astype(dtype)
        return Parts(wrap(chosen), wrap(dtype.type(1) - chosen), ids=True)
    chosen = mask.astype(array.dtype)
    return Parts(wrap(chosen * array), wrap((array.dtype.type(1) - chosen) * array))


def _apply(call: Call, values: dict[int, Parts], run: Run, count: int) -> tuple:
    """Apply the rule of one call; return the parts of each of its outputs, None where whole."""
    inputs: list[Any] = []
    for tensor, source in zip(call.inputs, call.sources, strict=True):
        parts = None if source is None else values.get(source)
        inputs.append(tensor if parts is None else parts)
    if not any(isinstance(each, Parts) for each in inputs):
        return (None,) * len(call.targets)
    rule = find_rule(call)
    ids = any(isinstance(each, Parts) and each.ids for each in inputs)
    if ids and not moves_elements(rule):
        raise NotImplementedError(
            f"contextual decomposition: {call.name} computes with token ids ({call.where}); only "
            "embeddings and ops that rearrange can read ids"
        )
    made = rule(dataclasses.replace(call, run=run), *inputs)
    made = made if isinstance(made, tuple) and not isinstance(made, Parts) else (made,)
    if len(made) != len(call.targets):
        raise RuntimeError(
            f"the rule for {call.name} returned {len(made)} parts for {len(call.targets)} outputs"
        )
    for parts, shape in zip(made, call.shapes, strict=True):
        if parts is not None and tuple(parts.rel.shape) != (count, *shape):
            raise RuntimeError(
                f"the rule for {call.name} returned parts of shape {list(parts.rel.shape)} where "
                f"(masks, *output) is {[count, *shape]}"
            )
    return made
