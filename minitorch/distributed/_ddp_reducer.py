"""The Python half of the reducer: gradients in and out; the state machine itself is
``csrc/reducer``.

    leaf's gradient accumulated -> ``_gradient_ready`` -> core: copy into the bucket, launch what is
    full end of backward             -> ``_end_of_backward`` -> core: wait in order -> ``.grad``
    handed back

With ``gradient_as_bucket_view`` a gradient *is* its slot in the bucket: the local gradient is
copied in once and dropped, ``.grad`` becomes the view, and there is nothing to copy back. A
``.grad`` that was kept (zeroed, not set to None) is accumulated into right there, and not copied at
all.

Cost per step and parameter: one hook call (about a microsecond), its bytes once through memory
(twice without views), and its share of one all-reduce per bucket. Next rooms: ``ddp.py`` (when to
arm), ``csrc/reducer/reducer.hpp`` (the states), ``comm_hooks`` (other ways to send).
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.engine import queue_callback
from minitorch.autograd.grad_mode import enable_grad, mode
from minitorch.autograd.graph import accumulator_of, bump_version, wrap

from ._ddp_bucketing import first_assignment
from ._ddp_graph import find_unreached
from ._ddp_step_check import open_passes
from ._native import core

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minitorch.nn import Parameter
    from minitorch.tensor import Tensor

    from ._ddp_hooks import BucketHook
    from .process_group import ProcessGroup


class GradientReducer:
    """Averages the gradients of some parameters over a process group while backward computes them.

    Parameters
    ----------
    process_group
        Whose ranks all build the same reducer.
    named_parameters
        Managed parameters in registration order, without duplicates; each requires grad.
    bucket_limits
        Bytes at which a bucket closes: the first bucket's limit, the second's, ...; the last one
        repeats.
    find_unused_parameters, gradient_as_bucket_view
        As in DistributedDataParallel.
    """

    def __init__(
        self,
        process_group: ProcessGroup,
        named_parameters: Sequence[tuple[str, Parameter]],
        bucket_limits: Sequence[int],
        *,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
    ) -> None:
        self.process_group = process_group
        self.names = [name for name, _ in named_parameters]
        self.parameters = [parameter for _, parameter in named_parameters]
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.bucket_limits = list(bucket_limits)

        self._core = core().Reducer(
            process_group._group,
            self.names,
            [p._array.dtype for p in self.parameters],
            [p._array.size for p in self.parameters],
            *first_assignment(self.parameters, self.bucket_limits, final=find_unused_parameters),
            rebuild_limits=self.bucket_limits,
            find_unused_parameters=find_unused_parameters,
        )
        self.first_bucket_sizes = self._core.bucket_sizes
        self.hook_name = "builtin_hook: ALLREDUCE"
        self.bucket_indices: list[list[int]] = []  # by bucket: its parameters
        self.bucket_tensors: list[Tensor] = []  # by bucket: its memory, flat
        self._slots: list[Tensor] = []  # by parameter: its place in a bucket
        self._lay_out_views()
        self._unused: list[int] = []  # found after forward, marked at the first hook
        self._kept: dict[int, np.ndarray] = {}
        self._pass: Any = None  # the running backward (autograd's task), whose end will call back
        self._warned_nothing_unused = False
        # Referring to the accumulators keeps them, and the hooks on them, alive.
        self.accumulators = [accumulator_of(p) for p in self.parameters]
        self._handles = [
            node.register_hook(_hook(weakref.ref(self), index))
            for index, node in enumerate(self.accumulators)
        ]

    # -- before and after forward ------------------------------------------------------------------

    def before_forward(self) -> bool:
        """Complain about an unfinished backward, rebuild once; return whether buckets were rebuilt.

        Raises
        ------
        RuntimeError
            "Expected to have finished reduction in the prior iteration ...", naming the parameters.
        """
        self._core.ensure_finished()
        open_passes.reducers.discard(self)
        if not self._core.rebuild_buckets():
            return False
        self._lay_out_views()
        return True

    def mark_forward_start(self) -> None:
        """Start the step's clock."""
        self._core.mark_forward_start()

    def prepare_for_backward(self, outputs: Sequence[Tensor] = ()) -> None:
        """Arm for the next backward; ``outputs`` matter with find_unused_parameters only."""
        self._unused = []
        if self.find_unused_parameters:
            self._unused = find_unreached(outputs, self.accumulators)
            if not self._unused and not self._warned_nothing_unused:
                self._warned_nothing_unused = True
                warnings.warn(
                    "find_unused_parameters=True was specified in DDP constructor, but did not "
                    "find any unused parameters in the forward pass. The flag costs a walk over "
                    "the graph in every iteration and keeps buckets from being rebuilt; drop it if "
                    "your model always uses every parameter.",
                    stacklevel=4,
                )
        self._core.prepare_for_backward()
        self._pass = None
        enter = _entry_hook(weakref.ref(self))
        for node in {id(t.grad_fn): t.grad_fn for t in outputs if t.grad_fn is not None}.values():
            node.register_prehook(enter)

    # -- during backward ---------------------------------------------------------------------------

    def _enter_backward(self) -> None:
        """Backward has reached what forward returned: its clock starts, and its end will call back.

        The end is to be known even if the last bucket is never launched: that tells a backward that
        raised from one that left parameters out. Backwards inside this one (checkpointing) do not
        count.
        """
        if self._pass is mode.task or not self._core.armed:
            return
        self._core.mark_backward_start()
        self._pass = mode.task
        open_passes.reducers.add(self)
        queue_callback(self._end_of_backward)

    def _gradient_ready(self, index: int) -> None:
        reducer = self._core
        parameter = self.parameters[index]
        gradient = parameter._grad
        if self.find_unused_parameters and gradient is not None:
            reducer.mark_used(index)
        if not reducer.armed:
            return
        if self._pass is None:  # no output of forward has a grad_fn: this is where backward begins
            self._enter_backward()
        if not reducer.started:
            for unused in self._unused:
                self._mark_unused(unused)
        if gradient is None:
            reducer.mark_ready(index, None)
            return
        reducer.mark_ready(index, gradient._array)
        if self.gradient_as_bucket_view and gradient is not self._slots[index]:
            parameter._grad = self._slots[index]  # frees the local gradient at once

    def _mark_unused(self, index: int) -> None:
        """Contribute what `.grad` holds (accumulated under no_sync), or zeros."""
        gradient = self.parameters[index]._grad
        if gradient is None:
            self._core.mark_ready(index, None)
            return
        if gradient is self._slots[index]:
            # Should no rank use it, then `.grad` is to stay as it is, and here the bucket is about
            # to overwrite it.
            self._kept[index] = gradient._array.copy()
        self._core.mark_ready(index, gradient._array)

    # -- end of backward ---------------------------------------------------------------------------

    def _end_of_backward(self) -> None:
        self._pass = None
        reducer = self._core
        if self.find_unused_parameters and reducer.started:
            # Reached by the graph, but not by this backward: an output was left out of the loss.
            for index in reducer.missing:
                self._mark_unused(index)
        if not reducer.all_launched:
            reducer.mark_pass_ended()
            return
        reducer.begin_draining()
        for bucket, members in enumerate(self.bucket_indices):
            reducer.wait_bucket(bucket)
            bump_version(self.bucket_tensors[bucket])
            for index in members:
                self._hand_back(index)
        self._kept.clear()
        reducer.finish()
        open_passes.reducers.discard(self)

    def _hand_back(self, index: int) -> None:
        parameter, slot = self.parameters[index], self._slots[index]
        if self.find_unused_parameters and not self._core.used_anywhere(index):
            if index in self._kept:
                slot._array[...] = self._kept[index]
            return
        if self.gradient_as_bucket_view:
            if parameter._grad is not slot:
                parameter._grad = slot
        elif parameter._grad is None:
            parameter._grad = wrap(slot._array.copy())
        else:
            parameter._grad._array[...] = slot._array
            bump_version(parameter._grad)

    # -- layout ------------------------------------------------------------------------------------

    def _lay_out_views(self) -> None:
        """Make one Tensor per parameter over its slot; move gradients out of the old buckets."""
        old = self._slots
        slots: list[Any] = [None] * len(self.parameters)
        self.bucket_indices = self._core.bucket_indices
        self.bucket_tensors = []
        for bucket, members in enumerate(self.bucket_indices):
            dtype = self.parameters[members[0]]._array.dtype
            flat = wrap(self._core.bucket_memory(bucket).view(dtype))
            self.bucket_tensors.append(flat)
            start = 0
            for index in members:
                parameter = self.parameters[index]
                stop = start + parameter._array.size
                with enable_grad():  # an ordinary view, on which detach_() raises as it must
                    slots[index] = flat[start:stop].view(parameter._array.shape)
                start = stop
        for index, slot in enumerate(old):
            if self.parameters[index]._grad is slot:
                slots[index]._array[...] = slot._array
                self.parameters[index]._grad = slots[index]
        self._slots = slots

    # -- the rest ----------------------------------------------------------------------------------

    def register_hook(self, hook: BucketHook) -> None:
        """Replace the all-reduce; once only."""
        self._core.register_hook(hook)
        self.hook_name = hook.name

    def remove_hooks(self) -> None:
        """Let go of the parameters: their gradients are no longer reduced."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def unfinished(self) -> str:
        """Return the complaint about a backward that was left unreduced; empty if there is none."""
        return self._core.unfinished()


def _hook(reducer: weakref.ref[GradientReducer], index: int) -> Callable:
    # Weak: a hook lives as long as the parameter, and must not keep a dropped wrapper at work.
    def gradient_ready(_grad_inputs: object, _grad_outputs: object) -> None:
        this = reducer()
        if this is not None:
            this._gradient_ready(index)

    return gradient_ready


def _entry_hook(reducer: weakref.ref[GradientReducer]) -> Callable:
    def enter(_gradients: object) -> None:
        this = reducer()
        if this is not None:
            this._enter_backward()

    return enter
