"""Tensors drawn by parameters that are tensors: ``normal``, ``bernoulli``, ``multinomial``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.graph import TensorBase, record, wrap
from ..dtypes import from_numpy_dtype, get_default_dtype, type_word
from . import picks, streams
from ._arguments import finish, new_like, new_or_out, shape_of
from .generator import Generator, stream_of
from .inplace import bernoulli_, check_probabilities, normal_

__all__ = ["bernoulli", "multinomial", "normal"]


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Normally distributed values.

    Parameters
    ----------
    mean, std : float or Tensor
        If one is a tensor, each value has its own; both are broadcast.
    size : sequence of int
        The shape, if both are numbers.
    """
    tensors: list[Any] = [value for value in (mean, std) if isinstance(value, TensorBase)]
    if not tensors:
        if size is None:
            raise TypeError(
                "normal() received an invalid combination of arguments: two numbers need a size"
            )
        x = new_or_out(
            shape_of("normal", (size,)),
            dtype,
            get_default_dtype(),
            out,
            device,
            layout,
            requires_grad,
        )
        return finish(normal_(x, mean, std, generator=generator), requires_grad)
    means, stds = (getattr(value, "_array", value) for value in (mean, std))
    if not np.all(stds >= 0):
        if stds is std:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        raise RuntimeError("normal expects all elements of std >= 0.0")
    try:
        shape = np.broadcast_shapes(np.shape(means), np.shape(stds))
    except ValueError:
        raise RuntimeError(
            f"normal: mean {list(np.shape(means))} and std {list(np.shape(stds))} cannot be "
            "broadcast to one shape"
        ) from None
    x = new_or_out(
        shape, from_numpy_dtype(tensors[0]._array.dtype), None, out, device, layout, requires_grad
    )
    normal_(x, generator=generator)
    x._array *= stds
    x._array += means
    return finish(x, requires_grad)


def bernoulli_backward(node: Any, grad: Any) -> tuple[Any]:
    """Draws do not depend smoothly on the probabilities: the gradient is zero."""
    return (grad * 0,)


def bernoulli(
    input: Any, p: float | None = None, *, generator: Generator | None = None, out: Any = None
) -> Any:
    """Ones with the probabilities in ``input``, else zeros.

    With ``p``, every element has that probability and ``input`` gives only shape and dtype.
    """
    array = input._array
    if p is not None:
        return bernoulli_(new_like(input, None, None, None), p, generator=generator)
    ones = streams.bernoulli(stream_of(generator), check_probabilities(array))
    values = ones.astype(array.dtype)
    if out is not None:
        target = new_or_out(array.shape, None, None, out, None, None)
        target._array[...] = values
        return target
    return record(values, bernoulli_backward, (input,))


def multinomial(
    input: Any,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Any = None,
) -> Any:
    """Indices drawn with probability proportional to ``input`` along its last dimension.

    Parameters
    ----------
    input : Tensor, shape (categories,) or (rows, categories)
        Non-negative weights; they need not add up to one.
    num_samples : int
        Draws per row.
    replacement : bool, default False
        Whether an index may be drawn again.

    Returns
    -------
    Tensor
        int64, shape (num_samples,) or (rows, num_samples).
    """
    weights = input._array
    if weights.dtype.kind not in "fV":
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{type_word(weights.dtype)}"
        )
    picks.check_weights(weights, num_samples, replacement)
    picked = picks.multinomial(stream_of(generator), weights, num_samples, replacement)
    if out is None:
        return wrap(picked)
    target = new_or_out(picked.shape, None, None, out, None, None)
    target._array[...] = picked
    return target
