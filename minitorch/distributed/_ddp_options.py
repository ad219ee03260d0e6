"""Constructor arguments of DistributedDataParallel that are refused, by name."""

from __future__ import annotations

from typing import Any

# Argument -> (the value that asks for nothing, why any other is refused).
_NOT_SUPPORTED = {
    "dim": (0, "it scatters a batch over several devices, and there is one"),
    "static_graph": (
        False,
        "use find_unused_parameters=True where parameters may stay unused, else leave it out",
    ),
    "delay_all_reduce_named_params": (
        None,
        "leave these parameters out of the wrapped module, and all-reduce their gradients by hand",
    ),
    "param_to_hook_all_reduce": (None, "it belongs to delay_all_reduce_named_params"),
    "mixed_precision": (
        None,
        "it needs a device with streams; use minitorch.autocast('cpu') for computing in bfloat16",
    ),
    "device_mesh": (None, "pass process_group"),
    "skip_all_reduce_unused_params": (False, "unused parameters are reduced as zeros"),
    "batched_grad_copy": (
        False,
        "it saves kernel launches on a GPU; gradient_as_bucket_view=True saves the copy",
    ),
}


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
