"""Linear layers, convolutions and matrix products.

A linear map acts on each part alone; the bias is shared between the results in proportion to their
sizes (Singh et al. 2019, section 3.1). With the golden conventions a unit that gets nothing from
either part halves its bias, and after an LSTM there is no bias at all.
"""

from __future__ import annotations

from typing import Any

from minitorch.interpret.parts import Parts, lift, share_bias
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import register_rule
from minitorch.nn import functional as F
from minitorch.ops import conv


def _only_input(call: Call, *others: Any) -> None:
    if any(isinstance(each, Parts) for each in others):
        raise NotImplementedError(
            f"contextual decomposition: the weight or bias of {call.name} depends on the input "
            f"({call.where}); there is a rule for its input only"
        )


def _with_bias(call: Call, parts: Parts, bias: Any) -> Parts:
    if bias is None or (call.run.golden and call.run.after_lstm):
        return parts
    return share_bias(parts.rel, parts.irr, bias, call.run, half=True)


@register_rule("AddmmBackward0")
def linear(call: Call, *inputs: Any) -> Parts:
    """``x @ w.T + b``."""
    bias, x, weight = inputs if len(inputs) == 3 else (None, *inputs)
    _only_input(call, weight, bias)
    return _with_bias(call, x.map(lambda part: F.linear(part, weight)), bias)


@register_rule("ConvolutionBackward0")
def convolution(call: Call, x: Parts, weight: Any, bias: Any) -> Parts:
    """Convolutions in one and two dimensions: the masks join the batch."""
    _only_input(call, weight, bias)
    shape = call.shapes[0]

    def convolve(part: Any) -> Any:
        folded = part.reshape(-1, *part.shape[2:])
        return conv._conv(folded, weight, None, call.ctx).reshape(part.shape[0], *shape)

    per_channel = None if bias is None else bias.reshape(-1, *(1,) * (len(shape) - 2))
    return _with_bias(call, x.map(convolve), per_channel)


@register_rule("ConvolutionTransposeBackward0")
def transposed_convolution(call: Call, x: Parts, weight: Any) -> Parts:
    """Transposed convolutions; their bias is added by an op of its own."""
    _only_input(call, weight)
    batch, *rest = call.shapes[0]

    def convolve(part: Any) -> Any:
        folded = part.reshape(-1, *part.shape[2:])
        whole = (part.shape[0] * batch, *rest)
        return conv._conv_input(folded, weight, whole, call.ctx).reshape(-1, batch, *rest)

    return x.map(convolve)


@register_rule("MmBackward0", "BmmBackward0")
def matrix_product(call: Call, a: Any, b: Any) -> Parts:
    """With a constant factor linear; of two decomposed factors the product of the relevant parts.

    Attention is such a product: its weights come from a softmax and are constants here.
    """
    ndim = len(call.shapes[0])
    if not isinstance(b, Parts):
        return a.map(lambda part: lift(part, ndim) @ b)
    if not isinstance(a, Parts):
        return b.map(lambda part: a @ lift(part, ndim))
    relevant = lift(a.rel, ndim) @ lift(b.rel, ndim)
    return Parts(relevant, lift(a.total, ndim) @ lift(b.total, ndim) - relevant)


@register_rule("DotBackward0")
def inner_product(call: Call, a: Any, b: Any) -> Parts:
    """Two vectors; see :func:`matrix_product`."""
    if not isinstance(b, Parts):
        return a.map(lambda part: (part * b).sum(-1))
    if not isinstance(a, Parts):
        return b.map(lambda part: (part * a).sum(-1))
    relevant = (a.rel * b.rel).sum(-1)
    return Parts(relevant, (a.total * b.total).sum(-1) - relevant)
