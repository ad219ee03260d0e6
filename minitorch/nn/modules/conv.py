"""Convolutional layers in one and two dimensions, and their transposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import minitorch
from minitorch.nn import functional as F
from minitorch.nn import init
from minitorch.nn.modules.module import Module
from minitorch.nn.parameter import Parameter
from minitorch.ops._typing import Tensor

Size = int | Sequence[int]


def _tuple(value: Size, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


class _ConvNd(Module):
    dims: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Size | str,
        dilation: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
        output_padding: Size = 0,
    ) -> None:
        super().__init__()
        dims = self.dims
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _tuple(kernel_size, dims)
        self.stride = _tuple(stride, dims)
        self.dilation = _tuple(dilation, dims)
        self.output_padding = _tuple(output_padding, dims)
        self.groups = groups
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
            self.padding: Any = padding
        else:
            self.padding = _tuple(padding, dims)
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(
                f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'"
            )
        self.padding_mode = padding_mode
        outer, inner = in_channels, out_channels // groups
        if not self.transposed:
            outer, inner = out_channels, in_channels // groups
        self.weight = Parameter(minitorch.empty(outer, inner, *self.kernel_size, dtype=dtype))
        if bias:
            self.bias = Parameter(minitorch.empty(out_channels, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: uniform, bounded by one over the square root of the fan-in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _convolve(self, input: Tensor, convolution: Any) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._frame(), mode=self.padding_mode)
            padding = 0
        return convolution(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _frame(self) -> list[int]:
        """How far to pad each side, last dimension first, as `F.pad` takes it."""
        frame = []
        for axis in reversed(range(self.dims)):
            if self.padding == "valid":
                frame += [0, 0]
            elif self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                frame += [total // 2, total - total // 2]
            else:
                frame += [self.padding[axis]] * 2
        return frame

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        if self.padding != (0,) * self.dims:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self.dims:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self.dims:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_ConvNd):
    """Convolve ``(N, C_in, L)`` to ``(N, C_out, L_out)``; see `functional.conv1d`."""

    dims = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(input, F.conv1d)


class Conv2d(_ConvNd):
    """Convolve ``(N, C_in, H, W)`` to ``(N, C_out, H_out, W_out)``; see `functional.conv2d`."""

    dims = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._convolve(input, F.conv2d)


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            dtype,
            output_padding,
        )

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> Any:
        """The output padding that gives `output_size`, or the layer's own."""
        if output_size is None:
            return self.output_padding
        dims = self.dims
        wanted = list(output_size)[-dims:]
        smallest = [
            (input.size(i - dims) - 1) * self.stride[i]
            - 2 * self.padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(dims)
        ]
        largest = [low + step - 1 for low, step in zip(smallest, self.stride, strict=True)]
        fits = [lo <= n <= hi for lo, n, hi in zip(smallest, wanted, largest, strict=True)]
        if not all(fits):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {smallest} to "
                f"{largest} (for an input of {list(input.shape[2:])})"
            )
        return tuple(n - low for n, low in zip(wanted, smallest, strict=True))

    def _transpose(
        self, input: Tensor, output_size: Sequence[int] | None, convolution: Any
    ) -> Tensor:
        return convolution(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of ``(N, C_in, L)``; see `functional.conv_transpose1d`."""

    dims = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._transpose(input, output_size, F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of ``(N, C_in, H, W)``; see `functional.conv_transpose2d`."""

    dims = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._transpose(input, output_size, F.conv_transpose2d)
