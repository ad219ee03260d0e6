"""The Python half of the reducer: gradients in and out; the state machine itself is
``csrc/reducer``.

    leaf's gradient accumulated -> ``_gradient_ready`` -> core: copy into the bucket, launch what is
                                   full
    end of backward             -> ``_end_of_backward`` -> core: wait in order -> ``.grad`` handed
                                   back

With ``gradient_as_bucket_view`` a gradient *is* its slot in the bucket: the local gradient is
copied in once and dropped, ``.grad`` becomes the view, and there is nothing to copy back. A
``.grad`` that was kept (zeroed, not set to None) is accumulated into right there, and not copied at
all.

Cost per step and parameter: one hook call (about a microsecond), its bytes once through memory
(twice without views), and its share of one all-reduce per bucket.

Next rooms: ``ddp.py`` (when to arm), ``csrc/reducer/reducer.hpp`` (the states), ``_ddp/slots.py``
(where gradients live), ``_ddp/flush.py`` (passes without a backward), ``_ddp/sparse.py`` (gradients
of some rows), ``_ddp/watch.py`` (gradients that stay local), ``_ddp/hooks.py`` (other ways to
send).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.engine import queue_callback
from minitorch.autograd.grad_mode import mode
from minitorch.autograd.graph import accumulator_of, bump_version, wrap

from .._native import core
from . import flush
from .bucketing import first_assignment
from .graph import UnusedSearch
from .slots import Slots
from .sparse import SparseGradients
from .step_check import open_passes
from .watch import Watch
from .weak import weak_method, when_backward_enters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minitorch.nn import Parameter
    from minitorch.tensor import Tensor

    from ..futures import Future
    from ..process_group import ProcessGroup
    from .hooks import BucketHook


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
    always_bounded
        Whether the limits hold in the first iteration too.
    sparse
        Names of the parameters whose gradients hold some rows only.
    watched
        All named parameters whose trainability must not change; default: the managed ones.
    find_unused_parameters, gradient_as_bucket_view, static_graph, skip_all_reduce_unused_params
        As in DistributedDataParallel.
    """

    def __init__(
        self,
        process_group: ProcessGroup,
        named_parameters: Sequence[tuple[str, Parameter]],
        bucket_limits: Sequence[int],
        *,
        always_bounded: bool = False,
        sparse: Iterable[str] = (),
        watched: Sequence[tuple[str, Tensor]] | None = None,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        self.process_group = process_group
        self.names = [name for name, _ in named_parameters]
        self.parameters = [parameter for _, parameter in named_parameters]
        self._managed_ids = {id(parameter) for parameter in self.parameters}
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self.bucket_limits = list(bucket_limits)
        sparse_names = set(sparse)
        is_sparse = [name in sparse_names for name in self.names]

        self._core = core().Reducer(
            process_group._group,
            self.names,
            [p._array.dtype for p in self.parameters],
            [p._array.size for p in self.parameters],
            is_sparse,
            *first_assignment(
                self.parameters,
                self.bucket_limits,
                bounded=always_bounded or (find_unused_parameters and not static_graph),
                sparse=is_sparse,
            ),
            rebuild_limits=self.bucket_limits,
            find_unused_parameters=find_unused_parameters,
            skip_unused_buckets=skip_all_reduce_unused_params,
        )
        self.first_bucket_sizes = self._core.bucket_sizes
        self.hook: BucketHook | None = None  # in place of the all-reduce
        self._slots = Slots(self._core, self.parameters)
        self._sparse = SparseGradients(self, is_sparse)
        self._watch = Watch(self, named_parameters if watched is None else watched)
        self._unused: list[int] = []  # marked at the first hook of the pass
        self._kept: dict[int, np.ndarray] = {}
        self._pass: Any = None  # the running backward (autograd's task), whose end will call back
        self._futures: list[Future] = []  # to wait for at the end of backward
        # Referring to the accumulators keeps them, and the hooks on them, alive.
        self.accumulators = [accumulator_of(p) for p in self.parameters]
        self._search = UnusedSearch(self.accumulators)
        self._handles = [
            node.register_hook(weak_method(self, "_gradient_ready", index))
            for index, node in enumerate(self.accumulators)
        ]
        open_passes.at_work.add(self)
        if static_graph:
            self.set_static_graph()

    @property
    def bucket_indices(self) -> list[list[int]]:
        """By bucket: its parameters."""
        return self._slots.members

    @property
    def bucket_tensors(self) -> list[Any]:
        """By bucket: its memory, flat; of a sparse bucket, the gradient that is on its way."""
        return self._slots.flat

    @property
    def can_set_static_graph(self) -> bool:
        """Whether the search for unused parameters found the same ones in every iteration."""
        return self._search.always_the_same

    def manages(self, parameter: Tensor) -> bool:
        """Whether this reducer averages the gradient of ``parameter``."""
        return id(parameter) in self._managed_ids

    def set_static_graph(self) -> None:
        """Learn in the first backward which parameters take part and how often; then rely on it.

        Raises
        ------
        RuntimeError
            If training has begun.
        """
        self._core.set_static_graph()
        self.static_graph = True

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
        self._watch.before_forward()
        if not self._core.rebuild_buckets():
            return False
        self._slots.lay_out()
        return True

    def mark_forward_start(self) -> None:
        """Start the step's clock."""
        self._core.mark_forward_start()

    def prepare_for_backward(self, outputs: Sequence[Tensor] = ()) -> None:
        """Arm for the next backward, that of ``outputs``."""
        self._unused = []
        if self.static_graph:
            self._unused = [] if self._core.learning else self._core.never_fired
        elif self.find_unused_parameters:
            self._unused = self._search.unused(outputs)
        self._core.prepare_for_backward()
        self._pass = None
        when_backward_enters(outputs, weak_method(self, "_enter_backward"))

    def expect_local_backward(self, outputs: Sequence[Tensor]) -> None:
        """The backward of ``outputs`` is to accumulate locally (a forward under no_sync)."""
        self._watch.after_local_forward(outputs)

    def set_no_sync(self, on: bool) -> None:
        """Whether the wrapper is inside ``no_sync``, where local gradients are what is wanted."""
        self._watch.in_no_sync = on

    # -- during backward ---------------------------------------------------------------------------

    def _enter_backward(self) -> None:
        """Backward has reached what forward returned: its clock starts, and its end will call back.

        The end is to be known even if the last bucket is never launched: that tells a backward that
        raised from one that left parameters out. Backwards inside this one (checkpointing) do not
        count.
        """
        task = mode.task
        if self._pass is task or not self._core.armed:
            return
        if task.captures:  # autograd.grad: nothing is going to arrive here
            self._pass = task
            queue_callback(lambda: self._end_of_capture(task))
            return
        self._core.mark_backward_start()
        self._pass = task
        open_passes.reducers.add(self)
        queue_callback(self._end_of_backward)

    def _end_of_capture(self, task: Any) -> None:
        self._pass = None
        self._watch.captured(task)

    def _gradient_ready(self, index: int) -> None:
        reducer = self._core
        gradient = self.parameters[index]._grad
        if gradient is not None and (self.find_unused_parameters or self.static_graph):
            reducer.mark_used(index)
        if not reducer.armed:
            self._watch.unarmed_gradient(index)
            return
        if self._pass is None:  # no output of forward has a grad_fn: this is where backward begins
            self._enter_backward()
        if not reducer.started:
            for unused in self._unused:
                self._mark_unused(unused)
        if self.static_graph and not reducer.mark_fired(index):
            return
        if gradient is not None and gradient._node is not None:
            self._watch.differentiable_gradient()
        self._mark_ready(index)

    def _mark_ready(self, index: int, *, unused: bool = False) -> None:
        """Contribute what `.grad` holds, or zeros."""
        parameter = self.parameters[index]
        gradient = parameter._grad
        if index in self._sparse:
            self._sparse.take(index, gradient)
            self._core.mark_ready(index, None, unused)
        elif gradient is None:
            self._core.mark_ready(index, None, unused)
        elif gradient.is_sparse:
            raise RuntimeError(
                f"Encountered a sparse gradient of {self.names[index]}, whose place in the buckets "
                "is dense. DistributedDataParallel expects sparse gradients for the weights of "
                "nn.Embedding(..., sparse=True) only."
            )
        else:
            self._core.mark_ready(index, gradient._array, unused)
            if self.gradient_as_bucket_view and not unused and gradient is not self._slots[index]:
                parameter._grad = self._slots[index]  # frees the local gradient at once

    def _mark_unused(self, index: int) -> None:
        """Contribute what `.grad` holds (accumulated under no_sync), or zeros."""
        gradient = self.parameters[index]._grad
        if gradient is not None and gradient is self._slots[index]:
            # Should no rank use it, then `.grad` is to stay as it is, and here the bucket is about
            # to overwrite it.
            self._kept[index] = gradient._array.copy()
        self._mark_ready(index, unused=gradient is None)

    # -- end of backward ---------------------------------------------------------------------------

    def _others_may_wait(self) -> bool:
        """Whether the other ranks may count on this backward, even if it came by no parameter here.

        Not if it was for some inputs only, or the whole module is frozen.
        """
        task: Any = mode.task
        return self._core.started or (
            not task.has_targets and any(p._requires_grad for p in self.parameters)
        )

    def _end_of_backward(self) -> None:
        self._pass = None
        reducer = self._core
        if reducer.learning:
            # Nothing was sent so far: which gradients there are, and when each of them is complete,
            # is known only now.
            never_fired = set(reducer.never_fired)
            for index in reducer.missing:
                self._mark_unused(index) if index in never_fired else self._mark_ready(index)
        elif self._others_may_wait():
            if not reducer.started:  # no hook has fired, and so nobody has marked them
                for index in self._unused:
                    self._mark_unused(index)
            if self.find_unused_parameters and not self.static_graph:
                # Reached by the graph, but not by this backward: an output was left out of the
                # loss.
                for index in reducer.missing:
                    self._mark_unused(index)
        if not reducer.all_launched:
            reducer.mark_pass_ended()
            return
        self._drain()

    def _drain(self) -> None:
        """Wait for the buckets in order and hand the averages back."""
        reducer = self._core
        reducer.begin_draining()
        unused_here = set(reducer.unused_here)
        for bucket, members in enumerate(self.bucket_indices):
            reducer.wait_bucket(bucket)
            if not self._sparse.owns_bucket(members):
                bump_version(self._slots.flat[bucket])
            copied = [self._hand_back(index) for index in members if index not in unused_here]
            reducer.note_handed_back(bucket, sum(copied))
        for index in unused_here:
            if reducer.used_anywhere(index):
                self._hand_back(index)
            elif index in self._kept:
                self._slots[index]._array[...] = self._kept[index]
        self._kept.clear()
        self._sparse.clear()
        reducer.finish()
        open_passes.reducers.discard(self)
        futures, self._futures = self._futures, []
        for future in futures:
            future.wait()

    def _hand_back(self, index: int) -> int:
        """Let `.grad` be the average; return how many bytes were copied for that."""
        parameter = self.parameters[index]
        if index in self._sparse:
            parameter._grad = self._sparse.result(index)
            return 0
        slot = self._slots[index]
        if self.gradient_as_bucket_view:
            if parameter._grad is not slot:
                parameter._grad = slot
            return 0
        if parameter._grad is None:
            parameter._grad = wrap(slot._array.copy())
        else:
            parameter._grad._array[...] = slot._array
            bump_version(parameter._grad)
        return slot._array.nbytes

    # -- in place of a backward: _ddp/flush.py -----------------------------------------------------

    def divide_by(self, ranks: int | None) -> None:
        """Divide the sum of gradients by ``ranks`` from here on; None: by the size of the group."""
        self._core.divide_by(ranks or self.process_group.size())

    def flush(self) -> None:
        """Average what has accumulated in ``.grad``, without a forward or backward."""
        flush.flush(self)

    def shadow_backward(self) -> None:
        """Take part in a backward that other ranks run, contributing zeros."""
        flush.shadow_backward(self)

    # -- the rest ----------------------------------------------------------------------------------

    def register_hook(self, hook: BucketHook) -> None:
        """Replace the all-reduce; once only."""
        self._core.register_hook(hook)
        self.hook = hook

    def remove_hooks(self) -> None:
        """Let go of the parameters: their gradients are no longer reduced."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        open_passes.at_work.discard(self)
        open_passes.reducers.discard(self)

    def wait_after_backward(self, futures: Iterable[Future]) -> None:
        """Wait for ``futures`` too before the coming backward ends."""
        self._futures.extend(futures)

    def unfinished(self) -> str:
        """Return the complaint about a backward that was left unreduced; empty if there is none."""
        return self._core.unfinished()
