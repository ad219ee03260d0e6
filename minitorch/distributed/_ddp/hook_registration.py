"""How a wrapper gets another way of sending its gradients: the methods of DistributedDataParallel.

Next rooms: ``_ddp/hooks.py`` (what a hook sees), ``algorithms/ddp_comm_hooks`` (hooks that are
there), ``compression`` (how they send less).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..optim.in_backward import _hook_then_optimizer, _OptimizerHookState, as_functional_optim
from .builtin_hooks import allreduce_hook
from .hooks import BucketHook, check_hook

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..process_group import ProcessGroup
    from .builtin_hooks import BuiltinCommHookType
    from .reducer import GradientReducer


class HookRegistration:
    """The part of DistributedDataParallel that takes communication hooks; one per wrapper."""

    process_group: ProcessGroup
    reducer: GradientReducer

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Replace the all-reduce of a bucket by ``hook(state, bucket) -> Future[Tensor]``.

        The bucket holds this rank's gradients, not divided by the number of ranks. The future's
        value, a tensor of the bucket's shape, becomes the result.

        Raises
        ------
        TypeError, ValueError
            If the hook is not callable, or its signature or annotations do not fit.
        RuntimeError
            If a hook is registered already.
        """
        check_hook(hook)
        self.reducer.register_hook(BucketHook(self.reducer, state, hook))

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Register one of the hooks that PyTorch has in C++, over this wrapper's group."""
        name = f"builtin_hook: {comm_hook_type.name}"
        hook = BucketHook(self.reducer, self.process_group, comm_hook_type.hook, name)
        self.reducer.register_hook(hook)

    def _register_fused_optim(
        self, optim: type, *args: Any, optim_params: Any = None, **kwargs: Any
    ) -> None:
        """Step parameters inside backward, as soon as their gradients have been averaged.

        Parameters
        ----------
        optim : type
            An optimizer class; ``args`` and ``kwargs`` are its arguments after ``params``.
        optim_params : iterable of Tensor, optional
            Which parameters; by default all.
        """
        state = _OptimizerHookState(as_functional_optim(optim, *args, **kwargs), optim_params)
        self.register_comm_hook(self.process_group, _hook_then_optimizer(allreduce_hook, state))
