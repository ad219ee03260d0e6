"""How a wrapper puts its parts together: the reducer, and what some arguments add to it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, cast

from ..optim.in_backward import take_over
from ..process_group import outsider
from .delayed import DelayedAllReduce
from .hook_registration import HookRegistration
from .mixed_precision import LowPrecision, _MixedPrecision
from .module import WrappedModule, member_of
from .reducer import GradientReducer
from .sparse import sparse_parameters
from .step_check import guard_optimizers

if TYPE_CHECKING:
    from minitorch.nn import Parameter

    from ..ddp import DistributedDataParallel


class Building(WrappedModule, HookRegistration):
    """The part of DistributedDataParallel that runs at construction, and anew for every copy."""

    broadcast_buffers: bool
    find_unused_parameters: bool
    gradient_as_bucket_view: bool
    mixed_precision: _MixedPrecision | None
    skip_all_reduce_unused_params: bool
    static_graph: bool
    _bucket_limits: list[int]
    _always_bounded: bool
    _delayed_names: list[str]
    _param_to_hook_all_reduce: Parameter | None

    def _options(self) -> dict[str, object]:
        """Arguments that decide which collectives are issued."""
        return {
            "broadcast_buffers": self.broadcast_buffers,
            "find_unused_parameters": self.find_unused_parameters,
            "static_graph": self.static_graph,
            "skip_all_reduce_unused_params": self.skip_all_reduce_unused_params,
            "bucket_limits": self._bucket_limits,
            "bucket_limits_from_the_start": self._always_bounded,
            "delay_all_reduce_named_params": self._delayed_names,
            "mixed_precision": self.mixed_precision,
        }

    def _build_reducer(self) -> None:
        parameters = list(self._named_parameters())
        self.reducer = GradientReducer(
            self.process_group,
            [(n, p) for n, p in parameters if p.requires_grad and n not in self._delayed_names],
            self._bucket_limits,
            always_bounded=self._always_bounded,
            sparse=sparse_parameters(self.module),
            watched=parameters,
            find_unused_parameters=self.find_unused_parameters,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
            static_graph=self.static_graph,
            skip_all_reduce_unused_params=self.skip_all_reduce_unused_params,
        )
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._has_rebuilt_buckets = False
        self._delayed: DelayedAllReduce | None = None
        if (hooked := self._param_to_hook_all_reduce) is not None:
            delayed = [(n, p) for n, p in parameters if n in self._delayed_names]
            name = next((n for n, p in self.module.named_parameters() if p is hooked), "")
            self._delayed = DelayedAllReduce(self.process_group, delayed, hooked, name)
        self._low_precision: LowPrecision | None = None
        if self.mixed_precision is not None:
            self._low_precision = LowPrecision(
                self.mixed_precision, self.module, self.parameters_to_ignore
            )
            if (hook := self._low_precision.hook) is not None:
                self.register_comm_hook(self.process_group, hook)
        guard_optimizers()
        take_over(cast("DistributedDataParallel", self), self.reducer.parameters)

    def _remove_autograd_hooks(self) -> None:
        """Stop reducing gradients; the module can be wrapped again."""
        self.reducer.remove_hooks()
        if self._delayed is not None:
            self._delayed.remove_hooks()

    def _update_process_group(self, new_process_group: Any) -> None:
        """Go on over another group, such as the ranks that are left, with buckets laid out anew.

        Every rank of the new group calls it between two iterations; nothing is verified or
        broadcast. A rank outside of it keeps what it has. A communication hook stays registered;
        one whose state is the old group gets the new one, any other looks after itself.
        """
        if outsider(new_process_group):
            return
        before, old_group = self.reducer, self.process_group
        self.process_group = member_of(new_process_group)
        self._remove_autograd_hooks()
        self._build_reducer()
        if before.hook is not None and self.reducer.hook is None:
            self.reducer.register_hook(before.hook.over(self.reducer, old_group))

    def _set_static_graph(self) -> None:
        """Turn on ``static_graph`` after construction, before training.

        Raises
        ------
        RuntimeError
            If training has begun.
        """
        if self.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to set it again.", stacklevel=2
            )
            return
        self.reducer.set_static_graph()
        self.static_graph = True
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel; "
                "`_set_static_graph` detects unused parameters by itself, and relies on it that "
                "they do not change. Leave out find_unused_parameters.",
                stacklevel=2,
            )
