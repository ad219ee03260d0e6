"""All parameters of an optimizer as one vector: a gradient becomes one row of a table.

The vector lists the groups in order, in each the parameters in order, each in C order. Methods that
keep a gradient per sample (``saga.py``) then work on whole rows, whatever the model looks like.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..autograd.graph import bump_version
from ..dtypes import finfo
from ..tensor import Tensor
from ._rules import plain
from .prox import Prox

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
        Relative precision of the coarsest parameter: also that of a loss computed with it.
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
        self.eps = max((finfo(p.dtype).eps for p, _, _ in self.entries), default=2.0**-52)

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
                dense = grad.to_dense() if grad.is_sparse else grad
                out[where] = dense._array.reshape(-1)
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
        """Step to prox_{lr h}((1 - lr decay) x - lr direction), using ``direction`` up.

        Parameters with a prox come first and go through a copy: if a user's prox fails, all are
        still what they were.

        Raises
        ------
        ValueError, FloatingPointError
            If a prox returns another shape, or what is not finite.
        """
        done: list[tuple[Tensor, np.ndarray]] = []
        without_prox = []  # nothing can fail for these: they move when all others are done
        for param, group, where in self.entries:
            prox, lr = group["prox"], plain(group["lr"])
            if prox is None or not lr > 0.0:
                without_prox.append((param, group, where))
                continue
            array = param._array.copy()
            _move(array, group, direction[where])
            done.append((param, _shrunk(array, prox, lr)))
        for param, group, where in without_prox:
            _move(param._array, group, direction[where])
            bump_version(param)
        for param, array in done:
            param._array[...] = array
            bump_version(param)


def _move(array: np.ndarray, group: dict[str, Any], move: np.ndarray) -> None:
    """Take the step without the prox, in place; ``move`` is used up."""
    lr = plain(group["lr"])
    if group["decoupled_weight_decay"] and group["weight_decay"]:
        array *= 1.0 - lr * plain(group["weight_decay"])
    move *= lr
    array -= move.reshape(array.shape).astype(array.dtype, copy=False)


def _shrunk(array: np.ndarray, prox: Prox, lr: float) -> np.ndarray:
    """What a prox makes of an array, which it may overwrite; checked, for users write them too."""
    finite = bool(np.isfinite(array).all())
    result = prox.prox(array, lr, out=array)
    if np.shape(result) != array.shape:
        raise ValueError(
            f"{prox!r}: prox of an array of shape {array.shape} returned "
            f"{None if result is None else f'one of shape {np.shape(result)}'}"
        )
    if finite and not np.isfinite(result).all():
        raise FloatingPointError(
            f"{prox!r}: prox of finite numbers returned some that are not; nothing has been changed"
        )
    return result


def readable_bytes(count: int) -> str:
    """1536 -> '1.5 KiB'."""
    power = min(int(math.log2(count)) // 10, 5) if count > 0 else 0
    text = f"{count / 1024**power:.1f}".removesuffix(".0") if power else str(count)
    return f"{text} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"
