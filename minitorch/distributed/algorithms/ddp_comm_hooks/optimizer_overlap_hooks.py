"""PyTorch's long path to ``optim/in_backward.py``: optimizer steps beside the communication."""

from __future__ import annotations

from minitorch.distributed.optim.in_backward import (
    _apply_optim_in_backward_hook,
    _hook_then_optimizer,
    _OptimizerHookState,
)

__all__: list[str] = []
_NAMES = (_apply_optim_in_backward_hook, _hook_then_optimizer, _OptimizerHookState)
