"""Padding layers."""

from __future__ import annotations

from collections.abc import Sequence

from minitorch.nn import functional as F
from minitorch.nn.modules.module import Module
from minitorch.ops._typing import Tensor


class _PadNd(Module):
    dims: int
    mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        sides = 2 * self.dims
        self.padding = (padding,) * sides if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_PadNd):
    """Pad the last dimension with zeros: ``(left, right)``."""

    dims = 1


class ZeroPad2d(_PadNd):
    """Pad the last two dimensions with zeros: ``(left, right, top, bottom)``."""

    dims = 2


class ReflectionPad1d(_PadNd):
    """Pad the last dimension with its mirror image."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pad the last two dimensions with their mirror image."""

    dims, mode = 2, "reflect"


class ReplicationPad1d(_PadNd):
    """Pad the last dimension with its border."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pad the last two dimensions with their border."""

    dims, mode = 2, "replicate"


class ConstantPad1d(_PadNd):
    """Pad the last dimension with a constant."""

    dims = 1

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """Pad the last two dimensions with a constant."""

    dims = 2
