"""PyTorch's long path to process groups: a thin face on ``minitorch.distributed``."""

from __future__ import annotations

from minitorch.distributed import *  # noqa: F403
from minitorch.distributed.process_group import _get_default_group

__all__ = ["_get_default_group"]
