"""Passes through the reducer without a backward: ``DistributedDataParallel.sync`` and the shadow of
a rank that has run out of inputs.

Cost of each: what a backward costs, one all-reduce per bucket, hidden under nothing; a flush also
the map of used parameters (4 bytes each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minitorch.autograd.grad_mode import mode

if TYPE_CHECKING:
    from .reducer import GradientReducer


def flush(reducer: GradientReducer) -> None:
    """Average over the ranks what has accumulated in ``.grad``.

    A rank without a gradient contributes zeros; where no rank has one, ``.grad`` stays None. A
    forward whose backward is still to come stays armed.

    Raises
    ------
    RuntimeError
        Inside backward; or "Expected to have finished reduction ..." if the last backward did not.
    """
    if mode.task is not None:
        raise RuntimeError(
            "DistributedDataParallel.sync() was called inside backward. Call it after backward, "
            "before the optimizer's step."
        )
    if text := reducer.unfinished():
        raise RuntimeError(text)
    core = reducer._core
    was_armed = core.armed
    core.prepare_for_flush()
    # Last parameters first, as a backward would, so that buckets leave one after the other.
    for index in reversed(range(len(reducer.parameters))):
        if reducer.parameters[index]._grad is None:
            reducer._mark_unused(index)
        else:
            core.mark_used(index)
            reducer._mark_ready(index)
    reducer._drain()
    if was_armed:
        core.prepare_for_backward()


def shadow_backward(reducer: GradientReducer) -> None:
    """Issue what a backward issues, with zeros; ``.grad`` stays as it is, also where it is a view.

    See ``_ddp/join.py``.
    """
    core, slots = reducer._core, reducer._slots
    kept = []
    if reducer.gradient_as_bucket_view:
        views = [slots[index] for index in range(len(reducer.parameters))]
        kept = [(view, view._array.copy()) for view in views if view is not None]
    core.prepare_for_shadow()
    for index in reversed(core.missing):
        if index in reducer._sparse:
            reducer._sparse.take(index, None)
        core.mark_ready(index, None)
    core.begin_draining()
    for bucket in range(len(reducer.bucket_indices)):
        core.wait_bucket(bucket)
    for view, values in kept:
        view._array[...] = values
    reducer._sparse.clear()
    core.finish()
