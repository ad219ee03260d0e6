"""Convolutions in one and two dimensions, and their transposes.

A convolution is a matrix product in disguise: each window of the padded image becomes a column,
the kernels are the rows of a matrix, and BLAS does the rest ("im2col"). Three bilinear maps share
that trick, and each one's gradients are the other two, so derivatives of every order come free:

====================  =====================================  ============================
map                   what it computes                       gradients
====================  =====================================  ============================
``_conv(x, w)``       the convolution                        ``_conv_input, _conv_weight``
``_conv_input(g, w)`` gradient for x = transposed conv       ``_conv, _conv_weight``
``_conv_weight(g,x)`` gradient for w                         ``_conv, _conv_input``
====================  =====================================  ============================

How it is made fast is told in `_conv_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.amp.autocast_mode import cast_inputs
from minitorch.autograd import Node, record
from minitorch.ops._conv_checks import check_conv, cross
from minitorch.ops._conv_kernels import ConvSpec, conv_array, conv_input_array, conv_weight_array
from minitorch.ops._typing import Tensor
from minitorch.ops._windows import Pads, pair
from minitorch.ops.generic import total

# ------------------------------------------------------------------------- differentiable maps


def _array(x: Tensor | None) -> np.ndarray | None:
    return None if x is None else x._array


def _conv(x: Tensor, w: Tensor, bias: Tensor | None, spec: ConvSpec) -> Tensor:
    out = conv_array(x._array, w._array, _array(bias), spec)
    return record(out, convolution_backward, (x, w, bias), (x, w), spec)


def _conv_input(g: Tensor, w: Tensor, shape: tuple, spec: ConvSpec) -> Tensor:
    out = conv_input_array(g._array, w._array, shape, spec)
    return record(out, convolution_transpose_backward, (g, w), (g, w), spec)


def _conv_weight(g: Tensor, x: Tensor, shape: tuple, spec: ConvSpec) -> Tensor:
    out = conv_weight_array(g._array, x._array, shape, spec)
    return record(out, convolution_weight_backward, (g, x), (g, x), spec)


_ARRAY_MAPS = (conv_array, conv_input_array, conv_weight_array)
_TENSOR_MAPS = (_conv, _conv_input, _conv_weight)


def _maps(grad: Any) -> tuple:
    return _ARRAY_MAPS if type(grad) is np.ndarray else _TENSOR_MAPS


def convolution_backward(node: Node, grad: Any) -> tuple:
    _, to_input, to_weight = _maps(grad)
    x, w = node.saved
    need_x, need_w, need_bias = node.needs_input_grad
    bias_axes = (0, *range(2, len(x.shape)))
    return (
        to_input(grad, w, tuple(x.shape), node.ctx) if need_x else None,
        to_weight(grad, x, tuple(w.shape), node.ctx) if need_w else None,
        total(grad, bias_axes) if need_bias else None,
    )


def convolution_transpose_backward(node: Node, grad: Any) -> tuple:
    forward, _, to_weight = _maps(grad)
    g, w = node.saved
    need_g, need_w = node.needs_input_grad
    return (
        forward(grad, w, None, node.ctx) if need_g else None,
        to_weight(g, grad, tuple(w.shape), node.ctx) if need_w else None,
    )


def convolution_weight_backward(node: Node, grad: Any) -> tuple:
    forward, to_input, _ = _maps(grad)
    g, x = node.saved
    need_g, need_x = node.needs_input_grad
    return (
        forward(x, grad, None, node.ctx) if need_g else None,
        to_input(g, grad, tuple(x.shape), node.ctx) if need_x else None,
    )


# ------------------------------------------------------------------------------- public functions


def _pads(
    padding: str | int | Sequence[int],
    kernel: Sequence[int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    dims: int,
) -> Pads:
    if not isinstance(padding, str):
        vertical, horizontal = pair(padding, "padding", dims)
        return (vertical, vertical), (horizontal, horizontal)
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if max(stride) > 1:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    sizes = (1, *kernel) if dims == 1 else tuple(kernel)
    high, wide = (d * (k - 1) for d, k in zip(dilation, sizes, strict=True))
    # An odd total puts the extra element at the end.
    return (high // 2, high - high // 2), (wide // 2, wide - wide // 2)


def _convolve(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    dims: int,
    name: str,
) -> Tensor:
    x, w, bias = cast_inputs("lower", x, w, bias)
    batched = x.dim() != dims + 1
    stride, dilation = pair(stride, "stride", dims), pair(dilation, "dilation", dims)
    pads = _pads(padding, w.shape[2:], stride, dilation, dims)
    spec = ConvSpec(stride, pads, dilation, groups)
    x = x if batched else x.unsqueeze(0)
    check_conv(x, w, bias, dims, spec, name)
    out = _conv(x, w, bias, spec)
    return out if batched else out.squeeze(0)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve signals ``(N, C, L)`` or ``(C, L)`` with kernels ``(O, C/groups, k)``.

    Returns ``(N, O, L_out)`` with ``L_out = (L + 2*padding - dilation*(k-1) - 1)//stride + 1``.
    `padding` may be ``"valid"`` (none) or ``"same"`` (``L_out == L``; stride 1 only).

    Raises
    ------
    RuntimeError
        If shapes, dtypes or options do not fit together.
    """
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 1, "conv1d")


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: str | int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve images ``(N, C, H, W)`` or ``(C, H, W)`` with kernels ``(O, C/groups, kh, kw)``.

    Options are ints or pairs, as in `conv1d`. Returns ``(N, O, H_out, W_out)``.

    Raises
    ------
    RuntimeError
        If shapes, dtypes or options do not fit together.
    """
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 2, "conv2d")


def _convolve_transposed(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
    dims: int,
    name: str,
) -> Tensor:
    x, w, bias = cast_inputs("lower", x, w, bias)
    batched = x.dim() != dims + 1
    x = x if batched else x.unsqueeze(0)
    stride, dilation = pair(stride, "stride", dims), pair(dilation, "dilation", dims)
    extra = pair(output_padding, "output_padding", dims)
    spec = ConvSpec(stride, _pads(padding, (), stride, dilation, dims), dilation, groups)
    check_conv(x, w, bias, dims, spec, name, transposed=True)
    axes = range(2 - dims, 2)
    if any(extra[a] >= max(stride[a], dilation[a]) or extra[a] < 0 for a in axes):
        details = " ".join(
            f"{what}_{side}: {value[a]}"
            for what, value in (
                ("output_padding", extra),
                ("stride", stride),
                ("dilation", dilation),
            )
            for a, side in ((0, "height"), (1, "width"))
        )
        raise RuntimeError(
            f"output padding must be smaller than either stride or dilation, but got {details}"
        )
    sizes = tuple(
        (x.shape[a + dims] - 1) * stride[a]
        - sum(spec.pads[a])
        + extra[a]
        + 1
        + dilation[a] * (w.shape[a + dims] - 1)
        for a in axes
    )
    if min(sizes) <= 0:
        raise RuntimeError(
            f"Given input size per channel: ({cross(x.shape[2:])}). Calculated "
            f"output size per channel: ({cross(sizes)}). Output size is too small"
        )
    out = _conv_input(x, w, (x.shape[0], w.shape[1] * groups, *sizes), spec)
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * dims)
    return out if batched else out.squeeze(0)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution (the gradient of `conv1d` for its input) of ``(N, C, L)``.

    `weight` has the shape ``(C, O/groups, k)``.
    """
    return _convolve_transposed(
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        1,
        "conv_transpose1d",
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution (the gradient of `conv2d` for its input) of ``(N, C, H, W)``.

    `weight` has the shape ``(C, O/groups, kh, kw)``.
    """
    return _convolve_transposed(
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        2,
        "conv_transpose2d",
    )
