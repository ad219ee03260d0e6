"""Constructor arguments of DistributedDataParallel that are refused, by name."""

from __future__ import annotations

from typing import Any

from minitorch.dtypes import dtype as DType
from minitorch.nn import Module

from .mixed_precision import _MixedPrecision

# Argument -> (the value that asks for nothing, why any other is refused).
_NOT_SUPPORTED = {
    "device_mesh": (None, "pass process_group"),
    "batched_grad_copy": (
        False,
        "it saves kernel launches on a GPU; gradient_as_bucket_view=True saves the copy",
    ),
}


def require_module(module: Any) -> None:
    """Raise a TypeError unless there is a module to wrap."""
    if not isinstance(module, Module):
        got = repr(module) if isinstance(module, type) else type(module).__name__
        raise TypeError(f"DistributedDataParallel: module must be an nn.Module, got {got}")


def refuse_unsupported(*, device_ids: Any, output_device: Any, **arguments: Any) -> None:
    """Raise for whatever would otherwise be ignored.

    Raises
    ------
    ValueError
        For device arguments, in PyTorch's words for a module on the CPU.
    NotImplementedError
        For any other argument that is set, by name and with what to do instead.
    """
    if device_ids or output_device is not None:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {{'cpu'}}."
        )
    for name, value in arguments.items():
        nothing, instead = _NOT_SUPPORTED[name]
        if value is not nothing and value != nothing:
            raise NotImplementedError(
                f"DistributedDataParallel: the argument {name}={value!r} is not supported: "
                f"{instead}."
            )


def check_mixed_precision(config: Any) -> None:
    """Refuse dtypes in which nothing can be computed.

    Raises
    ------
    TypeError, ValueError
        If it is not a ``_MixedPrecision``, or one of its dtypes is no dtype or not floating.
    """
    if config is None:
        return
    if not isinstance(config, _MixedPrecision):
        raise TypeError(
            "DistributedDataParallel: mixed_precision must be a "
            f"nn.parallel.distributed._MixedPrecision, got {type(config).__name__}"
        )
    for name in ("param_dtype", "reduce_dtype", "buffer_dtype"):
        dtype = getattr(config, name)
        if dtype is not None and not isinstance(dtype, DType):
            raise TypeError(f"mixed_precision: {name} must be a dtype, got {dtype!r}")
        if dtype is not None and not dtype.is_floating_point:
            raise ValueError(f"mixed_precision: {name} must be a floating dtype, got {dtype}")
