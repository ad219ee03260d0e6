"""PyTorch's path ``torch.futures``: a thin face on ``minitorch.distributed.futures``."""

from __future__ import annotations

from minitorch.distributed.futures import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
