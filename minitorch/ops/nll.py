"""Classification losses: negative log-likelihood and cross-entropy.

Choosing one log-probability per sample is a linear map, described by a :class:`Choice`. With class
indices and no label smoothing, cross-entropy is one fused node whose gradient is the famous
``softmax(x) - onehot(target)``; the other variants are built from log-softmax.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minitorch.amp.autocast_mode import cast_inputs
from minitorch.autograd import Node, record, wrap
from minitorch.ops._arguments import is_float, quiet, scalar_name, widen
from minitorch.ops._typing import Tensor
from minitorch.ops.generic import linear_pair
from minitorch.ops.precision import computed_in_float32
from minitorch.ops.regression_loss import legacy_reduction
from minitorch.ops.softmax import log_softmax, log_softmax_array


class Choice(NamedTuple):
    """Which class counts for each sample, and how much.

    Attributes
    ----------
    classes : ndarray of int64
        The target with a class axis of length one; 0 where the sample is ignored.
    factor : ndarray
        The sample's class weight, without the class axis; 0 where it is ignored.
    ignored : ndarray of bool or None
        Samples to leave out, or None if there are none.
    axis : int
        The class axis.
    shape : tuple of int
        The shape of the log-probabilities.
    reduction : str
        "none", "mean" or "sum".
    total : float
        What the sum is divided by for "mean": the sum of the factors.
    """

    classes: np.ndarray
    factor: np.ndarray
    ignored: np.ndarray | None
    axis: int
    shape: tuple[int, ...]
    reduction: str
    total: Any

    @quiet
    def pick(self, logp: np.ndarray) -> np.ndarray:
        """Return the loss: minus the chosen log-probabilities, weighted and reduced."""
        out = np.take_along_axis(logp, self.classes, self.axis).squeeze(self.axis)
        out = -out * self.factor
        if self.ignored is not None:
            # Not left to the zero factor: 0 * inf would be nan.
            out = np.where(self.ignored, out.dtype.type(0), out)
        if self.reduction == "none":
            return out
        return out.sum() / self.total if self.reduction == "mean" else out.sum()

    @quiet
    def share(self, grad: np.ndarray) -> np.ndarray:
        """Return each sample's part of the gradient of the loss, with the class axis."""
        if self.reduction == "mean":
            grad = grad / self.total
        out = grad * self.factor
        if self.ignored is not None:
            out = np.where(self.ignored, out.dtype.type(0), out)
        # For a mean or sum over unweighted samples it is one number so far.
        samples = self.classes.squeeze(self.axis).shape
        return np.expand_dims(np.broadcast_to(out, samples), self.axis)

    def spread(self, grad: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the log-probabilities: the transpose of `pick`."""
        share = self.share(grad)
        out = np.zeros(self.shape, share.dtype)
        np.put_along_axis(out, self.classes, -share, self.axis)
        return out


def _choice(
    shape: tuple[int, ...],
    dtype: np.dtype,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Choice:
    if target._array.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {scalar_name(target)}"
        )
    index, ndim = target._array, len(shape)
    axis = 0 if ndim == 1 else 1
    classes = shape[axis]
    if ndim == 1:
        if index.ndim:
            raise ValueError(
                f"Expected input batch_size ({shape[0]}) to match target batch_size "
                f"({index.shape[0]})."
            )
    elif index.ndim and shape[0] != index.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({index.shape[0]})."
        )
    elif index.shape != (shape[0], *shape[2:]):
        raise RuntimeError(
            f"Expected target size {[shape[0], *shape[2:]]}, got {list(index.shape)}"
        )
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight.shape)}"
        )
    wrong = (index < 0) | (index >= classes)
    ignored = None
    if 0 <= ignore_index < classes or wrong.any():
        ignored = index == ignore_index
        wrong &= ~ignored
        if wrong.any():
            raise IndexError(f"Target {int(index[wrong].flat[0])} is out of bounds.")
        index = np.where(ignored, 0, index)
    index = index.astype(np.int64, copy=False)
    if weight is None:
        factor = np.ones((), dtype) if ignored is None else (~ignored).astype(dtype)
        total = index.size if ignored is None else np.count_nonzero(~ignored)
    else:
        factor = weight._array.astype(dtype, copy=False)[index]
        factor = factor if ignored is None else np.where(ignored, dtype.type(0), factor)
        total = factor.sum()
    index = np.expand_dims(index, axis)
    return Choice(index, factor, ignored, axis, tuple(shape), reduction, np.asarray(total, dtype))


# ---------------------------------------------------------------------------- nll as a linear map


_pick, _spread = linear_pair(
    lambda logp, choice: choice.pick(widen(logp)).astype(logp.dtype, copy=False),
    lambda grad, choice: choice.spread(widen(grad)).astype(grad.dtype, copy=False),
    "NllLossBackward0",
)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of log-probabilities ``(N, C, *)`` or ``(C,)``.

    Parameters
    ----------
    target : Tensor of int64
        Class indices ``(N, *)`` or 0-d.
    weight : Tensor, optional
        ``(C,)``, a factor per class; "mean" then divides by the sum of the samples' factors.
    ignore_index : int
        Samples with this target contribute nothing.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    IndexError
        If a target is not a class.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if input.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.dim()})")
    input, weight = cast_inputs("float32", input, weight)
    dtype = widen(input._array[:0]).dtype
    choice = _choice(input.shape, dtype, target, weight, ignore_index, reduction)
    return _pick(input, choice)


# ---------------------------------------------------------------------------------- cross-entropy


def cross_entropy_backward(node: Node, grad: Any) -> tuple:
    x, logp = node.saved
    choice = node.ctx
    if type(grad) is not np.ndarray:
        # The choice's gradient, passed on through log-softmax.
        spread = _spread(grad, choice)
        total = spread.sum(choice.axis, keepdim=True)
        return (spread - log_softmax(x, choice.axis).exp() * total,)
    share = choice.share(widen(grad))
    out = np.exp(logp)
    out *= share
    if out.ndim == 2:
        out[np.arange(out.shape[0]), choice.classes[:, 0]] -= share[:, 0]
    else:
        chosen = np.take_along_axis(out, choice.classes, choice.axis) - share
        np.put_along_axis(out, choice.classes, chosen, choice.axis)
    return (out.astype(x.dtype, copy=False),)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy between logits ``(N, C, *)`` or ``(C,)`` and a target.

    Parameters
    ----------
    target : Tensor
        Class indices (int64) of shape ``(N, *)`` or 0-d, or class probabilities of the same shape
        as `input`.
    weight : Tensor, optional
        ``(C,)``, a factor per class.
    ignore_index : int
        Samples with this class index contribute nothing.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float
        How much of the target is replaced by the uniform distribution, in [0, 1].
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if input.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.dim()})")
    input, target, weight = cast_inputs("float32", input, target, weight)
    if tuple(input.shape) == tuple(target.shape):
        return _soft_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    dtype = widen(input._array[:0]).dtype
    choice = _choice(input.shape, dtype, target, weight, ignore_index, reduction)
    if label_smoothing:
        return _smoothed(input, choice, weight, label_smoothing)
    logp = log_softmax_array(widen(input._array), choice.axis)
    out = choice.pick(logp).astype(input._array.dtype, copy=False)
    return record(out, cross_entropy_backward, (input,), (input, logp), choice)


@computed_in_float32
def _smoothed(x: Tensor, choice: Choice, weight: Tensor | None, eps: float) -> Tensor:
    logp = log_softmax(x, choice.axis)
    classes = x.shape[choice.axis]
    smooth = -_weighted(logp, weight, choice.axis).sum(choice.axis)
    if choice.ignored is not None:
        smooth = smooth.masked_fill(wrap(choice.ignored), 0.0)
    if choice.reduction != "none":
        smooth = smooth.sum()
    if choice.reduction == "mean":
        smooth = smooth / float(choice.total)
    return _pick(logp, choice) * (1 - eps) + smooth * (eps / classes)


def _weighted(x: Tensor, weight: Tensor | None, axis: int) -> Tensor:
    return x if weight is None else x * weight.reshape(-1, *(1,) * (x.dim() - 1 - axis))


@computed_in_float32
def _soft_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, eps: float
) -> Tensor:
    if not is_float(target._array):
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{scalar_name(target)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = 0 if x.dim() == 1 else 1
    classes = x.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if eps:
        target = target * (1 - eps) + eps / classes
    loss = -(_weighted(log_softmax(x, axis), weight, axis) * target).sum(axis)
    if reduction == "none":
        return loss
    samples = x.numel() // max(classes, 1)
    return loss.sum() / samples if reduction == "mean" else loss.sum()
