"""All parameters of an optimizer as one vector: a gradient becomes one row of a table.

The vector lists the groups in order, in each the parameters in order, each in C order. Methods that
keep a gradient per sample (``saga.py``) then work on whole rows, whatever the model looks like.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd.graph import bump_version
from ..tensor import Tensor
from ._rules import plain

__all__ = ["FlatParameters", "readable_bytes"]


class FlatParameters:
    """Where each parameter lies in the vector, and the ways in and out.

    Attributes
    ----------
    size : int
        Elements of all parameters together.
    dtype : numpy.dtype
        Of the vector: float64 if a parameter is, else float32.
    eps : float
        Its relative precision.
    """

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        self.entries: list[tuple[Tensor, dict[str, Any], slice]] = []
        self.size = 0
        for group in groups:
            for param in group["params"]:
                if not param.is_floating_point():
                    raise TypeError(
                        f"gradients are kept as rows of real numbers, but a parameter is "
                        f"{param.dtype}"
                    )
                end = self.size + param._array.size
                self.entries.append((param, group, slice(self.size, end)))
                self.size = end
        wide = any(param._array.dtype == np.float64 for param, _, _ in self.entries)
        self.dtype = np.dtype(np.float64 if wide else np.float32)
        self.eps = 2.0**-52 if wide else 2.0**-23

    def gradient(self, out: np.ndarray) -> bool:
        """Write the gradient of loss + weight_decay / 2 |x|^2; False if no parameter has one.

        The L2 term is left out where it is decoupled. A parameter without ``.grad`` did not take
        part in this sample's loss: its gradient is zero.
        """
        found = False
        for param, group, where in self.entries:
            grad = param.grad
            if param._array.size != where.stop - where.start:
                raise RuntimeError(
                    f"a parameter had {where.stop - where.start} elements when the optimizer was "
                    f"made and has shape {tuple(param.shape)}: make another optimizer"
                )
            if grad is None:
                out[where] = 0.0
            else:
                out[where] = grad._array.reshape(-1)
                found = True
            decay = plain(group["weight_decay"])
            if decay and not group["decoupled_weight_decay"]:
                out[where] += decay * param._array.reshape(-1)
        return found

    def values(self) -> np.ndarray:
        """The parameters, as a copy."""
        out = np.empty(self.size, self.dtype)
        for param, _, where in self.entries:
            out[where] = param._array.reshape(-1)
        return out

    def set_values(self, vector: np.ndarray) -> None:
        """Write the parameters."""
        for param, _, where in self.entries:
            param._array[...] = vector[where].reshape(param._array.shape)
            bump_version(param)

    def descend(self, direction: np.ndarray) -> None:
        """Step to prox_{lr h}((1 - lr decay) x - lr direction), using ``direction`` up."""
        for param, group, where in self.entries:
            lr, array = plain(group["lr"]), param._array
            if group["decoupled_weight_decay"] and group["weight_decay"]:
                array *= 1.0 - lr * plain(group["weight_decay"])
            move = direction[where]
            move *= lr
            array -= move.reshape(array.shape).astype(array.dtype, copy=False)
            if group["prox"] is not None and lr > 0.0:
                group["prox"].prox(array, lr, out=array)
            bump_version(param)


def readable_bytes(count: int) -> str:
    """1536 -> '1.5 KiB'."""
    power = min(int(math.log2(count)) // 10, 5) if count > 0 else 0
    text = f"{count / 1024**power:.1f}".removesuffix(".0") if power else str(count)
    return f"{text} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"
