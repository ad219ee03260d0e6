"""What can be wrong with the arguments of a convolution, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Sequence

from minitorch.ops._arguments import scalar_name
from minitorch.ops._conv_kernels import ConvSpec
from minitorch.ops._typing import Tensor


def check_conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    dims: int,
    spec: ConvSpec,
    name: str,
    transposed: bool = False,
) -> None:
    """Raise unless shapes, dtypes and options of a (transposed) convolution fit together."""
    weight_size, given_size = list(w.shape), list(x.shape)
    if len(given_size) != dims + 2:
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
            f"{name}, but got input of size: {given_size}"
        )
    if len(weight_size) != dims + 2:
        raise RuntimeError(
            f"expected a {dims + 2}-dimensional weight for {name}, but got weight of size "
            f"{weight_size}"
        )
    if spec.groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if min(spec.stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(spec.dilation) <= 0:
        raise RuntimeError("dilation should be greater than zero")
    if min(spec.pads[0] + spec.pads[1]) < 0:
        raise RuntimeError("negative padding is not supported")
    for other in (w, bias):
        if other is not None and other._array.dtype != x._array.dtype:
            raise RuntimeError(
                f"expected scalar type {scalar_name(x)} but found {scalar_name(other)}"
            )
    if weight_size[0] % spec.groups:
        raise RuntimeError(
            f"Given groups={spec.groups}, expected weight to be divisible by "
            f"{spec.groups} at dimension 0, but got weight of size [{weight_size}] instead"
        )
    channels = weight_size[0] if transposed else weight_size[1] * spec.groups
    if given_size[1] != channels:
        given = "transposed=1" if transposed else f"groups={spec.groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {weight_size}, expected input{given_size} to "
            f"have {channels} channels, but got {given_size[1]} channels instead"
        )
    out_channels = weight_size[1] * spec.groups if transposed else weight_size[0]
    if bias is not None and tuple(bias.shape) != (out_channels,):
        given = "transposed=1, weight" if transposed else "weight"
        raise RuntimeError(
            f"Given {given} of size {weight_size}, expected bias to be 1-dimensional with "
            f"{out_channels} elements, but got bias of size {list(bias.shape)} "
            "instead"
        )
    if not transposed:
        pads, extents = spec.pads[2 - dims :], spec.dilation[2 - dims :]
        sizes = [n + p[0] + p[1] for n, p in zip(given_size[2:], pads, strict=True)]
        windows = [d * (k - 1) + 1 for d, k in zip(extents, weight_size[2:], strict=True)]
        if any(size < window for size, window in zip(sizes, windows, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({cross(sizes)}). "
                f"Kernel size: ({cross(windows)}). Kernel size can't be greater "
                "than actual input size"
            )


def cross(sizes: Sequence[int]) -> str:
    """Join sizes as in ``2 x 3``."""
    return " x ".join(str(size) for size in sizes)
