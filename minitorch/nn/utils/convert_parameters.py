"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from minitorch.autograd import TensorBase
from minitorch.ops import joining
from minitorch.ops._typing import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate parameters, flattened, into one vector; recorded."""
    flat = [p.reshape(p.numel()) for p in parameters]
    if not flat:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return joining.cat(flat)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Take the parameters' values from consecutive pieces of a vector, sharing its memory."""
    if not isinstance(vec, TensorBase):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        piece = vec.narrow(0, start, count)
        parameter.data = piece.reshape(*parameter.shape).data
        start += count
