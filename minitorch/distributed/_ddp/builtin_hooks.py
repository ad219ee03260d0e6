"""Communication hooks that change nothing about what is sent, and hooks by name.

``allreduce_hook`` is DistributedDataParallel's own way, written as a hook: the starting point for
hooks of one's own. ``noop_hook`` sends nothing, which shows what a step costs without
communication; the replicas then drift apart.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from minitorch.autograd.graph import bump_version

from ..collectives import all_reduce
from ..futures import Future
from ..process_group import _get_default_group

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..process_group import ProcessGroup
    from .hooks import GradBucket


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average a bucket over ``process_group`` (None: the default group).

    Cost: one all-reduce of the bucket, and one pass over it for the division.
    """
    group = process_group if process_group is not None else _get_default_group()
    buffer = bucket.buffer()
    buffer._array *= buffer._array.dtype.type(1.0 / group.size())
    bump_version(buffer)
    work = all_reduce(buffer, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def noop_hook(_: object, bucket: GradBucket) -> Future:
    """Send nothing: every rank keeps its own gradients."""
    future: Future = Future()
    future.set_result(bucket.buffer())
    return future


class BuiltinCommHookType(enum.Enum):
    """What ``DistributedDataParallel._register_builtin_comm_hook`` takes."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1

    @property
    def hook(self) -> Callable[[ProcessGroup | None, GradBucket], Future]:
        """The hook of this name."""
        if self is BuiltinCommHookType.ALLREDUCE:
            return allreduce_hook
        from ..compression.half import fp16_compress_hook

        return fp16_compress_hook
