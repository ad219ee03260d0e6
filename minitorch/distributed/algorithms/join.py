"""PyTorch's long path to ``minitorch/distributed/join.py``."""

from __future__ import annotations

from minitorch.distributed.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
