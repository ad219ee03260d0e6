"""Initial values for parameters, drawn as PyTorch draws them.

Every function fills a tensor in place, without recording, and returns it. With the same
``manual_seed`` the values equal PyTorch's.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import minitorch
from minitorch.autograd import no_grad
from minitorch.ops._typing import Tensor
from minitorch.random.factories import randperm

_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return by how much an activation shrinks its input, to be made up for by the weights.

    `param` is the negative slope for "leaky_relu" (0.01 by default).
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope: Any = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs feed one output of a weight, and how many outputs one input feeds."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the uniform distribution on ``[a, b)``."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a constant."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(minitorch.eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that the layer passes its channels on unchanged."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    outputs = tensor.shape[0] // groups
    center = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(outputs, tensor.shape[1])):
                tensor[(group * outputs + channel, channel, *center)] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill uniformly so that variances are kept forward and backward (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill normally so that variances are kept forward and backward (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill uniformly so that variances survive rectifiers (He et al. 2015).

    Parameters
    ----------
    a : float
        Negative slope of the rectifier that follows.
    mode : {"fan_in", "fan_out"}
        Keep variances in the forward or in the backward direction.
    nonlinearity : str
        As for `calculate_gain`.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill normally so that variances survive rectifiers (He et al. 2015)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain` (Saxe et al. 2013).

    Trailing dimensions are taken together. The matrix is the Q of a normal matrix's QR
    decomposition, with signs that make it uniformly distributed (Mezzadri 2006).
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        draws = minitorch.empty(rows, columns, dtype=tensor.dtype)
        draws = draws.normal_(0, 1, generator=generator)
        matrix = minitorch.autograd.wrap(_orthogonal(draws._array) * gain)
        return tensor.copy_(matrix.reshape(*tensor.shape))


def _orthogonal(draws: np.ndarray) -> np.ndarray:
    wide = draws.shape[0] < draws.shape[1]
    q, r = np.linalg.qr(draws.T if wide else draws)
    q *= np.sign(np.diag(r))
    return (q.T if wide else q).astype(draws.dtype, copy=False)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix normally, then set the fraction `sparsity` of every column to zero."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            order: Any = randperm(rows)
            tensor[order[:zeros], column] = 0
    return tensor


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with normal draws conditioned on lying in ``[a, b]``.

    Draws outside are replaced until none is left. When the interval is unlikely, uniform draws are
    accepted in proportion to the density instead.
    """

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    with no_grad():
        if below(b) - below(a) > 0.3:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _accept_by_density(tensor, mean, std, a, b, generator)


def _redraw_outside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    limit = tensor._array.dtype.type
    tensor.normal_(mean, std, generator=generator)
    values = tensor._array.copy()
    outside = (values < limit(a)) | (values > limit(b))
    while outside.any():
        # A whole new tensor is drawn each time, so that the stream advances as PyTorch's does.
        again = minitorch.empty(*tensor.shape, dtype=tensor.dtype)
        again.normal_(mean, std, generator=generator)
        values[outside] = again._array[outside]
        outside = (values < limit(a)) | (values > limit(b))
    return tensor.copy_(minitorch.autograd.wrap(values))


def _accept_by_density(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2

    def draw() -> tuple[Any, Any]:
        candidates: Any = minitorch.empty(*tensor.shape, dtype=tensor.dtype)
        candidates.uniform_(a, b, generator=generator)
        log_density = -0.5 * ((candidates - mean) / std) ** 2 - log_peak
        lots: Any = minitorch.empty(*tensor.shape, dtype=tensor.dtype)
        lots.uniform_(generator=generator)
        return candidates._array, (lots.log() > log_density)._array

    values, rejected = draw()
    values = values.copy()
    while rejected.any():
        candidates, refused = draw()
        values[rejected] = candidates[rejected]
        rejected &= refused
    return tensor.copy_(minitorch.autograd.wrap(values))
