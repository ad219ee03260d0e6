"""PyTorch's long path to :class:`minitorch.distributed.ddp.DistributedDataParallel`.

Loaded on first use: ``import minitorch`` must not load the distributed part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.nn.parallel import distributed

if TYPE_CHECKING:
    from minitorch.distributed.ddp import DistributedDataParallel

__all__ = ["DistributedDataParallel", "distributed"]


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":
        from minitorch.distributed.ddp import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
