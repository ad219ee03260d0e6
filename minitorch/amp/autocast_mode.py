"""``autocast``: a per-thread switch, and what ops do when it is on.

An op that takes part begins with ::

    if active.dtype is not None:
        x, w = cast_inputs("lower", x, w)

so that it costs one thread-local read while autocast is off. The policies, by PyTorch's lists for
the CPU:

=============  ==================================================================================
``"lower"``    matmul, mm, bmm, addmm, linear, convolutions, attention, recurrent cells: low type
``"float32"``  losses, softmax, norms, products: float32
``"widest"``   cat, stack: the widest type among the inputs
=============  ==================================================================================

Only float32 and 16-bit tensors are cast: float64 stays as it is. Casts are recorded, so gradients
come back in the type of the original.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.graph import TensorBase, version_of
from ..dtypes import bfloat16, dtype, float16

__all__ = [
    "active",
    "autocast",
    "cast_inputs",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]

_FLOAT32 = np.dtype(np.float32)
_SUPPORTED = (bfloat16, float16)


class _Active(threading.local):
    """The calling thread's state.

    Attributes
    ----------
    dtype : numpy.dtype or None
        The low type; None while autocast is off.
    preferred : dtype
        What ``autocast("cpu")`` without a dtype means.
    cache : dict or None
        Casts of parameters, kept while the outermost autocast lasts.
    depth : int
        How many autocasts are open.
    """

    def __init__(self) -> None:
        self.dtype: np.dtype | None = None
        self.preferred = bfloat16
        self.cache: dict[Any, tuple[TensorBase, int, TensorBase]] | None = None
        self.depth = 0


active = _Active()


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether ops run in mixed precision in this thread."""
    return device_type == "cpu" and active.dtype is not None


def is_autocast_available(device_type: str) -> bool:
    """Whether a device has autocast: the CPU has."""
    return device_type == "cpu"


def get_autocast_dtype(device_type: str = "cpu") -> dtype:
    """The low type in use, or the one an autocast without a dtype would use."""
    if device_type != "cpu":
        raise RuntimeError(f"unsupported scalar type for device {device_type!r}: only cpu is")
    if active.dtype is None:
        return active.preferred
    return next(each for each in _SUPPORTED if each.name == active.dtype.name)


class autocast:
    """Context manager and decorator that runs ops in mixed precision.

    Parameters
    ----------
    device_type : str
        ``"cpu"``. Another device switches autocast off, with a warning, as PyTorch does where
        that device is missing.
    dtype : dtype, optional
        bfloat16 (the default) or float16.
    enabled : bool, default True
        False switches mixed precision off inside an enabled region.
    cache_enabled : bool, optional
        Whether a parameter used several times is cast once (the default).

    Examples
    --------
    >>> import minitorch
    >>> x = minitorch.ones(2, 2)
    >>> with minitorch.autocast("cpu"):
    ...     (x @ x).dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = active.preferred if dtype is None else dtype
        if device_type != "cpu" and enabled:
            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type.upper()} is not "
                "available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled and self.fast_dtype not in _SUPPORTED:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtype of "
                f"{', '.join(map(str, _SUPPORTED))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        self._saved: list[tuple[np.dtype | None, Any]] = []

    def __enter__(self) -> autocast:
        self._saved.append((active.dtype, active.cache))
        if self.device == "cpu":
            active.dtype = self.fast_dtype.numpy if self._enabled else None
            if not self._cache_enabled:
                active.cache = None
            elif active.cache is None:
                active.cache = {}
        active.depth += 1
        return self

    def __exit__(self, *exc_info: object) -> None:
        active.depth -= 1
        active.dtype, active.cache = self._saved.pop()
        if active.depth == 0:
            active.cache = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


def cast_inputs(policy: str, *tensors: Any) -> tuple[Any, ...]:
    """The tensors in the type that ``policy`` wants them in; others pass through.

    Parameters
    ----------
    policy : {"lower", "float32", "widest"}
        See the head of this file.
    *tensors : Tensor or anything
        What is no floating tensor of at most 32 bits is returned as it is.
    """
    low = active.dtype
    if low is None:
        return tensors
    if policy == "lower":
        wanted = low
    elif policy == "float32":
        wanted = _FLOAT32
    elif policy == "widest":
        wanted = _FLOAT32 if any(_dtype(t) == _FLOAT32 for t in tensors) else low
    else:
        raise ValueError(f"unknown autocast policy {policy!r}")
    return tuple([_cast(tensor, wanted) for tensor in tensors])


def _dtype(tensor: Any) -> np.dtype | None:
    array = tensor._array if isinstance(tensor, TensorBase) else None
    return None if array is None else array.dtype


def _cast(tensor: Any, wanted: np.dtype) -> Any:
    kind = _dtype(tensor)
    if kind is None or kind == wanted or kind.kind not in "fV" or kind.itemsize > 4:
        return tensor
    from ..ops.casting import cast  # ops stand above this file and ask it

    cache = active.cache
    if cache is None or not tensor._requires_grad or tensor._node is not None:
        return cast(tensor, wanted)
    # Parameters are cast once per region. A cast made without recording must not be found by
    # code that records, and an updated parameter is cast anew.
    key = (id(tensor), wanted, is_grad_enabled())
    version = version_of(tensor)
    found = cache.get(key)
    if found is not None and found[1] == version:
        return found[2]
    result = cast(tensor, wanted)
    cache[key] = (tensor, version, result)  # the tensor too: its id stays taken
    return result
