"""Warnings about gradients that stay local although the model is wrapped. PyTorch says nothing.

Each is given once per wrapper, costs no communication, and says what to do:

* a gradient arrives in a backward that no forward of the wrapper has armed: a second backward, or
  a forward of ``ddp.module``;
* ``autograd.grad`` returns gradients of managed parameters;
* a parameter is frozen or unfrozen after it was wrapped (all of them frozen is fine);
* backward ran with ``create_graph=True``.

Not a reason: a backward whose forward ran under ``no_sync``, a gradient that another wrapper of the
same module is about to average, a forward that was dropped, models that are trained in turn.
"""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

from minitorch.autograd.engine import queue_callback
from minitorch.autograd.grad_mode import mode

from .step_check import open_passes
from .weak import weak_method, when_backward_enters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minitorch.tensor import Tensor

    from .reducer import GradientReducer


class Watch:
    """Looks after one reducer.

    Parameters
    ----------
    reducer
        Referred to weakly, since it owns this.
    parameters
        All named parameters of the module that are not ignored, trainable or not.
    """

    def __init__(self, reducer: GradientReducer, parameters: Sequence[tuple[str, Tensor]]) -> None:
        self._reducer = weakref.ref(reducer)
        self._names = [name for name, _ in parameters]
        self._parameters = [parameter for _, parameter in parameters]
        self._trainable = [parameter._requires_grad for parameter in self._parameters]
        self._said: set[str] = set()
        self._local_task: Any = None  # the running backward that is to stay local
        self.in_no_sync = False
        # Outputs of a no_sync forward in which no tensor was found: whose backward it is that
        # comes next cannot be told.
        self._blind = False

    # -- told by the wrapper ---------------------------------------------------------------------

    def before_forward(self) -> None:
        """A forward with gradients begins: is what requires grad still what was wrapped?"""
        self._leave_local()
        now = [parameter._requires_grad for parameter in self._parameters]
        if now == self._trainable:
            return
        reducer = self._reducer()
        assert reducer is not None
        frozen = self._where(now, was=True)
        # With everything frozen no backward begins here, and nothing waits: so a generator is
        # trained through a discriminator.
        waits = any(parameter._requires_grad for parameter in reducer.parameters)
        if frozen and waits and not (reducer.find_unused_parameters and not reducer.static_graph):
            self._once(
                "freeze",
                f"{frozen} required grad when DistributedDataParallel was built and does not any "
                "longer. Backward will wait for its gradient in vain, which ends in an error: wrap "
                "the module again after freezing, or pass find_unused_parameters=True.",
            )
        thawed = self._where(now, was=False)
        if thawed:
            self._once(
                "unfreeze",
                f"{thawed} did not require grad when DistributedDataParallel was built and does "
                "so now. Its gradient is not averaged, so the replicas drift apart: wrap the "
                "module again after unfreezing.",
            )

    def after_local_forward(self, outputs: Sequence[Tensor]) -> None:
        """A forward under no_sync is over: the backward of ``outputs`` is to stay local."""
        self._blind = not when_backward_enters(outputs, weak_method(self, "_enter_local"))

    def _where(self, now: list[bool], *, was: bool) -> str:
        names = [
            name
            for name, before, after in zip(self._names, self._trainable, now, strict=True)
            if before is was and after is not was
        ]
        return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

    # -- told by the reducer ---------------------------------------------------------------------

    def _enter_local(self) -> None:
        if self._local_task is mode.task:
            return
        self._local_task = mode.task
        reducer = self._reducer()
        if reducer is not None:
            open_passes.local.add(reducer)
        queue_callback(self._leave_local)

    def _leave_local(self) -> None:
        self._local_task = None
        reducer = self._reducer()
        if reducer is not None:
            open_passes.local.discard(reducer)

    def unarmed_gradient(self, index: int) -> None:
        """A gradient has arrived while the reducer is not armed."""
        if "unarmed" in self._said or self.in_no_sync or self._blind:
            return
        reducer = self._reducer()
        assert reducer is not None
        parameter = reducer.parameters[index]
        if any(each.manages(parameter) for each in (*open_passes.local, *open_passes.reducers)):
            return
        self._once(
            "unarmed",
            f"the gradient of {reducer.names[index]} arrived in a backward that "
            "DistributedDataParallel does not average: no forward of the wrapper came before it, "
            "or its one backward is over. Gradients stay local and the replicas drift apart. Call "
            "the wrapper, ddp(x) and not ddp.module(x); do one backward per forward, for example "
            "of the sum of the losses; or accumulate under ddp.no_sync() and call ddp.sync() "
            "before the optimizer's step.",
        )

    def captured(self, task: Any) -> None:
        """``autograd.grad`` went through this wrapper's outputs; it is over."""
        reducer = self._reducer()
        assert reducer is not None
        names = [
            name
            for name, node in zip(reducer.names, reducer.accumulators, strict=True)
            if (node, 0) in task.captured
        ]
        if names and not self.in_no_sync:
            self._once(
                "grad",
                f"autograd.grad returned this rank's own gradient of {', '.join(names[:5])}: "
                "DistributedDataParallel averages what backward() accumulates in .grad, and "
                "nothing else. Call backward(), or average the returned gradients with "
                "dist.all_reduce.",
            )

    def differentiable_gradient(self) -> None:
        """A gradient has a history of its own."""
        self._once(
            "create_graph",
            "Using DistributedDataParallel with create_graph=True is not well-supported. The "
            "values of the gradients are averaged, their history is not: a higher-order gradient "
            "stays local, and does not flow through the all-reduce. Average it with "
            "dist.all_reduce before you use it.",
        )

    def _once(self, reason: str, text: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            warnings.warn(text, stacklevel=5)
