"""PyTorch's long path to what DistributedDataParallel takes: its dtypes, where buffer hooks run.

Loaded on first use, as in ``minitorch.nn.parallel``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.distributed.ddp import DistributedDataParallel

__all__ = ["DistributedDataParallel"]

_HOME = {
    "DistributedDataParallel": ("ddp", "DistributedDataParallel"),
    "_BufferCommHook": ("_ddp.buffer_sync", "_BufferCommHook"),
    "_BufferCommHookLocation": ("_ddp.buffer_sync", "_BufferCommHookLocation"),
    "_MixedPrecision": ("_ddp.mixed_precision", "_MixedPrecision"),
    "_find_tensors": ("_ddp.graph", "find_tensors"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room, attribute = _HOME[name]
    return getattr(importlib.import_module(f"minitorch.distributed.{room}"), attribute)
