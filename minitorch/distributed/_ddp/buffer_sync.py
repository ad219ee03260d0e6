"""When buffers are synchronized, and by whom: by default rank 0's are broadcast before forward.

``_register_buffer_comm_hook`` puts something else in place of the broadcast, before or after
forward; average the statistics of a batch norm, say, with one all-reduce.

Cost per synchronized forward: one broadcast per dtype of the buffers' bytes, or what the hook does.
Next room: ``_ddp/buffers.py`` (the broadcast itself).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from minitorch.autograd import is_grad_enabled, no_grad

from .buffers import COALESCED_BYTES, broadcast_coalesced

if TYPE_CHECKING:
    from collections.abc import Callable

    from minitorch.tensor import Tensor

    from ..process_group import ProcessGroup
    from .reducer import GradientReducer


class _BufferCommHookLocation(Enum):
    """Where in a forward a buffer hook runs."""

    PRE_FORWARD = auto()
    POST_FORWARD = auto()


class _BufferCommHook(NamedTuple):
    buffer_comm_hook: Callable
    buffer_comm_hook_state: Any
    buffer_comm_hook_location: _BufferCommHookLocation


class BufferSync:
    """The part of DistributedDataParallel that deals with buffers."""

    process_group: ProcessGroup
    reducer: GradientReducer
    broadcast_buffers: bool
    require_backward_grad_sync: bool
    require_forward_param_sync: bool
    _named_buffers: Callable[[], list[tuple[str, Tensor]]]

    buffer_hook: _BufferCommHook | None = None

    def _register_buffer_comm_hook(
        self,
        state: Any,
        hook: Callable,
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:
        """Let ``hook(state, named_buffers)`` synchronize the buffers in place of the broadcast.

        Parameters
        ----------
        state
            Handed to the hook; PyTorch's convention is the wrapper itself.
        hook : callable
            Gets a dict from names to buffers, and changes them in place. It may return a list of
            futures, which are waited for at the end of backward, or at once if this forward has
            none.
        comm_hook_location
            Before or after forward.

        Raises
        ------
        TypeError
            If the hook is not callable.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self.buffer_hook = _BufferCommHook(hook, state, _BufferCommHookLocation(comm_hook_location))

    def _will_sync_buffers(self) -> bool:
        """Before every synced forward, and before the first other one after it.

        The latter may be evaluation, or the first forward of ``no_sync``. PyTorch looks at the
        forward before this one alone, so that its first synced forward after
        ``no_sync`` or after evaluation starts from buffers that have drifted apart.
        """
        synced = is_grad_enabled() and self.require_backward_grad_sync
        return self.broadcast_buffers and (synced or self.require_forward_param_sync)

    @property
    def _syncs_buffers_after_forward(self) -> bool:
        hook = self.buffer_hook
        return (
            hook is not None
            and hook.buffer_comm_hook_location is _BufferCommHookLocation.POST_FORWARD
        )

    def _sync_buffers(self, source: int = 0) -> None:
        """Broadcast from group rank ``source``, or whatever the hook does."""
        buffers = self._named_buffers()
        if not buffers:
            return
        with no_grad():
            if self.buffer_hook is None:
                tensors = [buffer for _, buffer in buffers]
                broadcast_coalesced(self.process_group, tensors, source, COALESCED_BYTES, "buffers")
                return
            hook = self.buffer_hook
            futures = hook.buffer_comm_hook(hook.buffer_comm_hook_state, dict(buffers))
        if futures is not None:
            self._wait_for_buffers(list(futures))

    def _wait_for_buffers(self, futures: list) -> None:
        if is_grad_enabled() and self.require_backward_grad_sync:
            self.reducer.wait_after_backward(futures)
            return
        for future in futures:
            future.wait()
