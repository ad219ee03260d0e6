"""Batch norm over the batches of all ranks together: what ``nn.SyncBatchNorm`` computes.

The statistics are those of one process with the whole batch, whatever share of it each rank holds
(none at all, if need be): counts, means and sums of squared deviations are gathered, and combined
by the formula of Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The
American Statistician 37(3) (1983), in float64 and in the order of ranks, so that all ranks hold the
same bits. The gradient with respect to the input needs two sums over the whole batch. Gradients of
weight and bias are this rank's share, as for any other layer: averaging them is
DistributedDataParallel's business.

Cost, of C channels and W ranks: forward one all-gather of 8 (2 C + 1) bytes per rank, backward one
all-reduce of 16 C bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd import Function, Node, record
from minitorch.autograd.graph import wrap
from minitorch.ops._arguments import quiet, widen
from minitorch.ops._composed import composed_gradients
from minitorch.ops.norm import _batch_statistics, _blend, _channel_sums, _per_channel

from .collectives import all_gather_into_tensor, all_reduce

if TYPE_CHECKING:
    from collections.abc import Callable

    from minitorch.tensor import Tensor

    from .process_group import ProcessGroup


@quiet
def sync_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    eps: float,
    momentum: float,
    process_group: ProcessGroup,
) -> Tensor:
    """Normalise each channel of ``(N, C, *)`` over the inputs of all ranks; a collective.

    Backward is a collective too (an all-reduce), if the input requires a gradient: on all ranks
    alike.

    Parameters
    ----------
    input
        This rank's share; N may differ between ranks, and be 0.
    weight, bias, running_mean, running_var
        ``(C,)`` or None. The running statistics move towards those of the whole batch.

    Raises
    ------
    ValueError
        On all ranks, if there is only one value per channel on all of them together.
    """
    shape = input.shape
    x = widen(input._array).reshape(*shape[:2], math.prod(shape[2:]))
    mean, var, count = _global_statistics(x, process_group)
    if count <= 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shape!r} on "
            f"this rank and {count:.0f} values per channel on all ranks of the group"
        )
    inverse = 1 / np.sqrt(var + eps)
    scale = inverse if weight is None else inverse * weight._array
    shift = -mean * scale if bias is None else bias._array - mean * scale
    out = x * _per_channel(scale, x.dtype)
    out += _per_channel(shift, x.dtype)
    if running_mean is not None:
        _blend(running_mean, mean, momentum)
    if running_var is not None:
        _blend(running_var, var * (count / (count - 1)), momentum)
    return record(
        out.reshape(shape).astype(input._array.dtype, copy=False),
        sync_batch_norm_backward,
        (input, weight, bias),
        (input, weight),
        (mean, inverse, count, eps, process_group),
    )


def _global_statistics(
    x: np.ndarray, process_group: ProcessGroup
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and biased variance per channel, and the number of values, over all ranks."""
    channels, here = x.shape[1], x.shape[0] * x.shape[2]
    row = np.zeros(2 * channels + 1)
    if here:
        mean, var = _batch_statistics(x)
        row[:channels], row[channels:-1], row[-1] = mean, var * here, here
    table = np.empty((process_group.size(), row.size))
    all_gather_into_tensor(wrap(table), wrap(row), group=process_group)
    means, squares, counts = table[:, :channels], table[:, channels:-1], table[:, -1:]
    count = float(counts.sum())
    if count == 0:
        return row[:channels], row[channels:-1], 0.0
    mean = (counts * means).sum(0) / count
    var = (squares.sum(0) + (counts * (means - mean) ** 2).sum(0)) / count
    return mean, var, count


@quiet
def sync_batch_norm_backward(node: Node, grad: Any) -> tuple:
    x, weight = node.saved
    mean, inverse, count, eps, process_group = node.ctx
    need_x, need_weight, need_bias = node.needs_input_grad
    if type(grad) is not np.ndarray:
        found = composed_gradients(
            _composed(eps, count, process_group), (x, weight), grad, (need_x, need_weight)
        )
        return (*found, grad.sum((0, *range(2, grad.dim()))) if need_bias else None)
    shape, dtype = x.shape, x.dtype
    grad, x = (widen(a).reshape(*shape[:2], math.prod(shape[2:])) for a in (grad, x))
    centered = x - _per_channel(mean, x.dtype)
    sums = np.stack([_channel_sums(grad), _channel_sums(grad, centered) * inverse])
    here_grad, here_product = sums if not need_x else sums.copy()
    out = None
    if need_x:
        all_reduce(wrap(sums), group=process_group)
        sum_grad, sum_product = sums
        scale = inverse if weight is None else inverse * weight
        out = np.multiply(
            centered, _per_channel(-scale * inverse * sum_product / count, x.dtype), out=centered
        )
        out += grad * _per_channel(scale, x.dtype)
        out -= _per_channel(scale * sum_grad / count, x.dtype)
        out = out.reshape(shape).astype(dtype, copy=False)
    return (
        out,
        here_product.astype(weight.dtype) if need_weight else None,
        here_grad.astype(dtype if weight is None else weight.dtype) if need_bias else None,
    )


class _SumOverRanks(Function):
    """An all-reduce whose gradient is one as well: every rank's result depends on every input."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, process_group: ProcessGroup) -> Tensor:
        ctx.process_group = process_group
        total = tensor.clone()
        all_reduce(total, group=process_group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _SumOverRanks.apply(grad, ctx.process_group), None


def _composed(eps: float, count: float, process_group: ProcessGroup) -> Callable:
    """The same in elementary ops, for gradients that shall be differentiable themselves."""

    def mean_over_ranks(values: Any) -> Any:
        axes = (0, *range(2, values.dim()))
        return _SumOverRanks.apply(values.sum(axes, keepdim=True), process_group) / count

    def composition(x: Any, weight: Any) -> Any:
        centered = x - mean_over_ranks(x)
        out = centered * (mean_over_ranks(centered * centered) + eps) ** -0.5
        return out if weight is None else out * weight.reshape(-1, *(1,) * (x.dim() - 2))

    return composition
