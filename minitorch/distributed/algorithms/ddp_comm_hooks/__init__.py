"""Communication hooks by name, under PyTorch's path ``distributed.algorithms.ddp_comm_hooks``."""

from __future__ import annotations

import enum
from functools import partial
from typing import TYPE_CHECKING, Any

from . import debugging_hooks, default_hooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from minitorch.distributed.ddp import DistributedDataParallel

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _registering(comm_hook: Callable) -> Any:
    # A partial, since a plain function would become a method of the enumeration.
    def register(hook: Callable, model: DistributedDataParallel, state: object) -> None:
        model.register_comm_hook(state, hook)

    return partial(register, comm_hook)


class DDPCommHookType(enum.Enum):
    """Hooks by name; each value registers its hook: ``value(model=ddp, state=state)``."""

    ALLREDUCE = _registering(default_hooks.allreduce_hook)
    FP16_COMPRESS = _registering(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _registering(default_hooks.bf16_compress_hook)
    NOOP = _registering(debugging_hooks.noop_hook)


def register_ddp_comm_hook(
    comm_hook_type: DDPCommHookType, model: DistributedDataParallel, state: object = None
) -> None:
    """Register a hook by its name.

    Parameters
    ----------
    comm_hook_type : DDPCommHookType
        Which one.
    model : DistributedDataParallel
        On which wrapper.
    state
        The hook's state; for those of ``default_hooks`` a process group, or None for the default
        one.

    Examples
    --------
    >>> register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)  # doctest: +SKIP
    """
    comm_hook_type.value(model=model, state=state)
