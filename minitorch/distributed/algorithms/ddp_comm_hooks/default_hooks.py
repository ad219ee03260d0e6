"""PyTorch's long path to the all-reduce hook and to ``compression/half.py``."""

from __future__ import annotations

from minitorch.distributed._ddp.builtin_hooks import allreduce_hook
from minitorch.distributed.compression.half import (
    bf16_compress_hook,
    bf16_compress_wrapper,
    fp16_compress_hook,
    fp16_compress_wrapper,
)

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]
