"""DistributedDataParallel with uneven inputs: what an active rank announces, what a joined one
shadows.

    active rank, at the start of forward         joined rank, main_hook
    announces what this step will do      <----> agree: what do the active ranks do?
    rebuild buckets, if it is time        <----> the same
    broadcast buffers                     <----> the same; source: the highest active rank
    all-reduce of each bucket, used-map   <----> the same, of zeros
    and when all have joined: parameters and buffers of the highest of the last ranks, to all

Cost: beside ``join.py``'s count one all-reduce of 4 (W + 3) bytes per forward, and at the end one
broadcast of the model.

PyTorch asks in three separate collectives, and never whether the active ranks run under
``no_grad``: a joined rank then shadows a backward that never comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from minitorch.autograd import is_grad_enabled, no_grad
from minitorch.autograd.graph import wrap
from minitorch.device import device

from ..collectives import all_reduce
from ..join import Join, Joinable, JoinHook
from ..process_group import ReduceOp

if TYPE_CHECKING:
    from ..ddp import DistributedDataParallel
    from ..process_group import ProcessGroup


class _Step(NamedTuple):
    """What all active ranks do in this iteration, as every rank knows after the agreement."""

    active: list[int]  # group ranks
    grad_mode: bool
    synced: bool  # the backward reduces gradients
    buffers: bool  # forward broadcasts buffers

    @property
    def source(self) -> int:
        """Whose buffers count: the highest rank that still sees data."""
        return self.active[-1]


def begin_forward(ddp: DistributedDataParallel) -> int:
    """Tell joined ranks, if there may be any, what this forward will do.

    Returns
    -------
    int
        The group rank whose buffers count.

    Raises
    ------
    RuntimeError
        On all ranks, if the active ones are not about to do the same; and see
        ``Join.notify_join_context``.
    NotImplementedError
        Together with ``delay_all_reduce_named_params``.
    """
    if not ddp._join_config.enable:
        return 0
    if ddp._delayed is not None:
        raise NotImplementedError(
            "DistributedDataParallel.join: where in backward the parameters of "
            "delay_all_reduce_named_params are reduced depends on the graph, which a joined rank "
            "does not have. Leave the argument out, or deal the inputs out evenly."
        )
    count = Join.notify_join_context(ddp)
    grad_mode = is_grad_enabled()
    synced = grad_mode and ddp.require_backward_grad_sync
    step = _agree(ddp, [grad_mode, synced, ddp._will_sync_buffers()], active=True)
    if count is not None:
        count.wait()
    ddp.reducer.divide_by(None if ddp._divide_by_initial_world_size else len(step.active))
    return step.source


def _agree(ddp: DistributedDataParallel, plan: list[bool], *, active: bool) -> _Step:
    group = ddp.process_group
    table = np.zeros(len(plan) + group.size(), np.int32)
    table[: len(plan)] = plan
    table[len(plan) + group.rank()] = active
    all_reduce(wrap(table), group=group)
    ranks = np.flatnonzero(table[len(plan) :]).tolist()
    votes = table[: len(plan)].tolist()
    if any(count not in (0, len(ranks)) for count in votes):
        raise RuntimeError(
            f"DistributedDataParallel.join: of the {len(ranks)} ranks that still have inputs, "
            f"{votes[0]} run forward with gradients enabled, {votes[1]} are going to reduce "
            f"gradients (not under no_sync), {votes[2]} broadcast buffers. All of them must do "
            "the same in each iteration."
        )
    return _Step(ranks, *(count > 0 for count in votes))


class DDPJoinHook(JoinHook):
    """Shadows one wrapper.

    Parameters
    ----------
    ddp
        Whose iterations are shadowed.
    divide_by_initial_world_size
        Whether the sum of gradients is divided by all ranks, or by those that are still active.
    """

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self._ddp = ddp
        ddp._uses_join = True
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Shadow one forward and, if the active ranks will reduce gradients, its backward."""
        ddp = self._ddp
        step = _agree(ddp, [False] * 3, active=False)
        if step.grad_mode:
            ddp._before_reduced_forward()
        if step.buffers:
            with no_grad():  # a buffer hook's futures are waited for at once: no backward follows
                ddp._sync_buffers(step.source)
        ddp.require_forward_param_sync = step.synced
        if step.synced:
            ddp.reducer.shadow_backward()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over the model of a rank that has seen the most inputs."""
        ddp = self._ddp
        ddp.reducer.divide_by(None)
        last = wrap(np.full(1, ddp.process_group.rank() if is_last_joiner else -1, np.int32))
        all_reduce(last, op=ReduceOp.MAX, group=ddp.process_group)
        ddp._sync_module_states(with_buffers=ddp.broadcast_buffers, src=int(last._array[0]))


class UnevenInputs(Joinable):
    """What makes DistributedDataParallel joinable."""

    process_group: ProcessGroup

    def __init__(self) -> None:
        Joinable.__init__(self)
        self._uses_join = False
        self._divide_by_initial_world_size = True

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Return a context in which ranks may have different numbers of inputs.

        A rank that has run out of them shadows the collectives of the others, contributing zero
        gradients. When all have, every rank takes over parameters and buffers of the highest of the
        ranks with the most inputs.

        Parameters
        ----------
        divide_by_initial_world_size : bool
            Divide the sum of gradients by the size of the group: every sample of the epoch counts
            the same. With False, by the number of ranks that still have inputs: the last batches
            count more.
        enable, throw_on_early_termination : bool
            See :class:`Join`.

        Notes
        -----
        Gradients under a communication hook are not divided, here as elsewhere. Collectives of the
        loop's own (a metric's all-reduce, ``SyncBatchNorm``) are not shadowed: with those pass
        ``throw_on_early_termination=True``.

        Examples
        --------
        >>> with ddp.join():  # doctest: +SKIP
        ...     for x in inputs:  # as many as this rank has
        ...         optimizer.zero_grad()
        ...         ddp(x).sum().backward()
        ...         optimizer.step()
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> DDPJoinHook:
        """What shadows this wrapper; takes ``divide_by_initial_world_size`` from ``Join``."""
        wrapper = cast("DistributedDataParallel", self)
        return DDPJoinHook(wrapper, bool(kwargs.get("divide_by_initial_world_size", True)))

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return device("cpu")

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group over which gradients are averaged."""
        return self.process_group
