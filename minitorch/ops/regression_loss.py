"""Losses between tensors of equal shape: squared, absolute, Huber, binary cross-entropy, KL.

All but binary cross-entropy are spelled out in elementary ops, and 16-bit floats are computed in
float32 from the errors to the reduced loss. The classification losses are in `nll.py`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from minitorch.amp.autocast_mode import cast_inputs
from minitorch.autograd import Node, record
from minitorch.ops._composed import composed_gradients
from minitorch.ops._typing import Tensor
from minitorch.ops.activation import logsigmoid
from minitorch.ops.generic import where
from minitorch.ops.precision import computed_in_float32


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction that PyTorch's two old flags mean; warn if they are used."""
    if size_average is not None or reduce is not None:
        mean = size_average is None or size_average
        wanted = reduce is None or reduce
        reduction = ("mean" if mean else "sum") if wanted else "none"
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _warn_sizes(x: Tensor, target: Tensor) -> None:
    if x.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape!r}) that is different to the input size "
            f"({x.shape!r}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _weighted_and_reduced(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Weighted losses are averaged over the sum of the weights, as PyTorch does."""
    if weight is None:
        return _reduced(loss, reduction)
    if tuple(weight.shape) != tuple(loss.shape):
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared error ``(input - target)**2``, reduced by "mean", "sum" or "none"."""
    input, target = cast_inputs("float32", input, target)
    _warn_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _squared(input, target, weight, reduction)


@computed_in_float32
def _squared(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    error = input - target
    return _weighted_and_reduced(error * error, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute error ``|input - target|``, reduced by "mean", "sum" or "none"."""
    input, target = cast_inputs("float32", input, target)
    _warn_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _absolute(input, target, weight, reduction)


@computed_in_float32
def _absolute(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    return _weighted_and_reduced((input - target).abs(), weight, reduction)


def _huber_curve(error: Tensor, delta: float) -> Tensor:
    size = error.abs()
    near = size < delta
    quadratic = error * error * 0.5
    return where(near, quadratic, (size - 0.5 * delta) * delta)


@computed_in_float32
def _huber(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, delta: float
) -> Tensor:
    return _weighted_and_reduced(_huber_curve(input - target, delta), weight, reduction)


@computed_in_float32
def _smooth_l1(input: Tensor, target: Tensor, reduction: str, beta: float) -> Tensor:
    error = input - target
    return _reduced(error.abs() if beta == 0 else _huber_curve(error, beta) / beta, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squared error (halved) below `delta`, ``delta * (|error| - delta/2)`` beyond."""
    input, target = cast_inputs("float32", input, target)
    _warn_sizes(input, target)
    reduction = legacy_reduction(None, None, reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return _huber(input, target, weight, reduction, delta)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The Huber loss divided by its threshold `beta`; with ``beta=0`` the absolute error."""
    input, target = cast_inputs("float32", input, target)
    _warn_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return _smooth_l1(input, target, reduction, beta)


# ------------------------------------------------------------------------- binary cross-entropy


def _composed_bce(x: Tensor, target: Tensor) -> Tensor:
    # PyTorch bounds the logarithm from below, and the gradient's denominator by 1e-12.
    log_x, log_rest = x.log().clamp(min=-100), (1 - x).log().clamp(min=-100)
    return (target - 1) * log_rest - target * log_x


def binary_cross_entropy_backward(node: Node, grad: Any) -> tuple:
    x, target = node.saved
    if type(grad) is not np.ndarray:
        return composed_gradients(_composed_bce, (x, target), grad, node.needs_input_grad)
    need_x, need_target = node.needs_input_grad
    for_x = for_target = None
    if need_x:
        for_x = grad * (x - target) / np.maximum((1 - x) * x, 1e-12)
    if need_target:
        with np.errstate(divide="ignore"):
            for_target = grad * (np.maximum(np.log1p(-x), -100) - np.maximum(np.log(x), -100))
    return for_x, for_target


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy between probabilities in [0, 1] and targets of the same shape.

    `weight` broadcasts against the loss, which is then averaged over its number of elements.

    Raises
    ------
    RuntimeError
        If an element of `input` is outside [0, 1].
    """
    input, target = cast_inputs("float32", input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape!r}) that is different to the input size "
            f"({input.shape!r}) is deprecated. Please ensure they have the same size."
        )
    x = input._array
    if not ((x >= 0) & (x <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    return _binary_cross_entropy(input, target, weight, reduction)


@computed_in_float32
def _binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    x, t = input._array, target._array
    with np.errstate(divide="ignore"):
        loss = (t - 1) * np.maximum(np.log1p(-x), -100) - t * np.maximum(np.log(x), -100)
    out = record(loss, binary_cross_entropy_backward, (input, target), (input, target))
    return _reduced(out if weight is None else out * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of ``sigmoid(input)``, computed without overflow or cancellation.

    `pos_weight` scales the positive examples' part and broadcasts, often with shape ``(C,)``.
    """
    input, target = cast_inputs("float32", input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Target size ({target.shape!r}) must be the same as input size ({input.shape!r})"
        )
    return _with_logits(input, target, weight, reduction, pos_weight)


@computed_in_float32
def _with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    pos_weight: Tensor | None,
) -> Tensor:
    log_p = logsigmoid(input)
    if pos_weight is None:
        loss = (1 - target) * input - log_p
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * log_p
    return _reduced(loss if weight is None else loss * weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Pointwise Kullback-Leibler divergence ``target * (log(target) - input)``.

    `input` holds log-probabilities; so does `target` if `log_target` is set. "batchmean" divides
    the sum by the batch size, which is the mathematical definition; "mean" divides by the number
    of elements.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size. 'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.",
            stacklevel=2,
        )
    input, target = cast_inputs("float32", input, target)
    batchmean = reduction == "batchmean"
    reduction = "sum" if batchmean else legacy_reduction(size_average, reduce, reduction)
    loss = _divergence(input, target, log_target, reduction)
    return loss / input.shape[0] if batchmean and input.dim() else loss


@computed_in_float32
def _divergence(input: Tensor, target: Tensor, log_target: bool, reduction: str) -> Tensor:
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # xlogy: where the target is 0 its logarithm does not matter.
        safe = target.masked_fill(target == 0, 1.0)
        loss = target * safe.log() - target * input
    return _reduced(loss, reduction)
