"""What can be combined with data-parallel training, under PyTorch's paths."""

from __future__ import annotations

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
