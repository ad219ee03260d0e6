"""``delay_all_reduce_named_params``: parameters that stay out of the buckets, and are reduced
together when the gradient of one chosen parameter arrives.

Meant for parameters that are used in many places, whose gradient is complete only late in backward.
Theirs live in one flat buffer, to which ``.grad`` points; the chosen parameter is one whose
gradient comes after all of them.

Cost: one all-reduce of these gradients' bytes per backward, hidden under what is left of backward.
PyTorch starts it in the chosen parameter's hook and relies on the device's stream order; here the
end of backward waits for it, and a gradient that arrives after the start is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.engine import queue_callback
from minitorch.autograd.grad_mode import mode
from minitorch.autograd.graph import accumulator_of, bump_version, wrap

from .step_check import open_passes
from .weak import weak_method, when_backward_enters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minitorch.nn import Module, Parameter
    from minitorch.tensor import Tensor

    from ..process_group import ProcessGroup


def check_delayed(
    module: Module, named_params: Iterable[tuple[str, Parameter]] | None, hooked: Parameter | None
) -> list[str]:
    """Check the two arguments against the module; return the delayed parameters' names.

    Raises
    ------
    TypeError
        If there is anything but pairs in the first.
    ValueError
        If only one is given, a name or parameter is not the module's, dtypes differ, or nothing
        would be left for the buckets.
    """
    if (named_params is None) != (hooked is None):
        raise ValueError(
            "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the "
            "same time."
        )
    if named_params is None:
        return []
    pairs = list(named_params)
    own = dict(module.named_parameters())
    if not pairs:
        raise ValueError("delay_all_reduce_named_params is empty; leave it out")
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(
                "delay_all_reduce_named_params must hold pairs (name, parameter), as "
                f"module.named_parameters() gives them, got {pair!r}"
            )
        name, parameter = pair
        if own.get(name) is not parameter:
            raise ValueError(
                f"delay_all_reduce_named_params: {name!r} with this tensor is not a parameter of "
                "the module. Take pairs of module.named_parameters()."
            )
        if not parameter.requires_grad:
            raise ValueError(f"delay_all_reduce_named_params: {name!r} does not require grad")
    if len({str(parameter.dtype) for _, parameter in pairs}) > 1:
        raise ValueError("delay_all_reduce_named_params: all must have the same dtype")
    if not any(parameter is hooked for parameter in own.values()) or not hooked.requires_grad:  # type: ignore[union-attr]
        raise ValueError(
            "param_to_hook_all_reduce must be a parameter of the module that requires grad"
        )
    names = [name for name, _ in pairs]
    if all(name in names for name, parameter in own.items() if parameter.requires_grad):
        raise ValueError(
            "delay_all_reduce_named_params names every parameter, and nothing is left for the "
            "buckets. Leave at least one out; to reduce everything at the end of backward, pass a "
            "bucket_cap_mb larger than the model."
        )
    return names


class DelayedAllReduce:
    """Averages some parameters' gradients in one all-reduce.

    Parameters
    ----------
    named_parameters
        Those that are averaged; of one dtype.
    hooked, hooked_name
        The parameter whose gradient's arrival starts the all-reduce.
    """

    def __init__(
        self,
        process_group: ProcessGroup,
        named_parameters: Sequence[tuple[str, Parameter]],
        hooked: Parameter,
        hooked_name: str,
    ) -> None:
        self._group, self._hooked_name = process_group, hooked_name
        self._names = [name for name, _ in named_parameters]
        self.parameters = [parameter for _, parameter in named_parameters]
        total = sum(parameter.numel() for parameter in self.parameters)
        self._flat = np.zeros(total, self.parameters[0]._array.dtype)
        self._views, start = [], 0
        for parameter in self.parameters:
            stop = start + parameter.numel()
            self._views.append(wrap(self._flat[start:stop].reshape(parameter._array.shape)))
            start = stop
        self._armed = False
        self._open = False  # backward has begun, and its average has not been handed back
        self._task: Any = None
        self._work: Any = None
        self._nodes = [accumulator_of(parameter) for parameter in self.parameters]
        self._hooked_node = accumulator_of(hooked)
        self._handles = [
            node.register_hook(weak_method(self, "_arrived", name))
            for node, name in zip(self._nodes, self._names, strict=True)
        ]
        # Registered last: when a delayed parameter is the hooked one, it has arrived by then.
        self._handles.append(self._hooked_node.register_hook(weak_method(self, "_start")))

    def manages(self, parameter: Tensor) -> bool:
        """Whether the gradient of ``parameter`` is averaged here."""
        return any(parameter is each for each in self.parameters)

    def ensure_finished(self) -> None:
        """Complain about a backward that raised with its all-reduce under way.

        One that raised before is forgotten: no other rank has seen anything of it.

        Raises
        ------
        RuntimeError
            "Expected to have finished reduction in the prior iteration ..."
        """
        if self._open and self._work is not None:
            raise RuntimeError(self.unfinished())
        self._close()

    def unfinished(self) -> str:
        """Return the complaint about a backward that was left unreduced; empty if there is none."""
        if not self._open:
            return ""
        text = (
            "Expected to have finished reduction in the prior iteration before starting a new "
            f"one. The gradients of delay_all_reduce_named_params ({', '.join(self._names[:5])}) "
            "were not averaged: "
        )
        if self._work is None:
            return text + "backward ended without, or raised. Leave out this step."
        return text + (
            "backward raised after their all-reduce had begun, so the ranks may have seen "
            "different numbers of collectives. Restart from a checkpoint, or build "
            "DistributedDataParallel anew on all ranks."
        )

    def arm(self, outputs: Sequence[Tensor]) -> None:
        """Expect the backward of ``outputs``; from here on ``.grad`` lives in the flat buffer."""
        self._armed, self._task, self._work = True, None, None
        self._move_in()
        when_backward_enters(outputs, weak_method(self, "_enter"))

    def reduce_now(self) -> None:
        """Average what has accumulated, without a backward."""
        if text := self.unfinished():
            raise RuntimeError(text)
        self._move_in()
        self._launch()
        self._finish()

    def remove_hooks(self) -> None:
        """Let go of the parameters."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _move_in(self) -> None:
        for parameter, view in zip(self.parameters, self._views, strict=True):
            held = parameter._grad
            if held is not view:
                view._array[...] = 0 if held is None else held._array
                parameter._grad = view

    def _enter(self) -> None:
        if self._armed and self._task is None and not mode.task.captures:
            self._task = mode.task
            self._open = True
            open_passes.reducers.add(self)
            queue_callback(self._end)

    def _arrived(self, name: str) -> None:
        if self._work is not None:
            raise RuntimeError(
                f"delay_all_reduce_named_params: the gradient of {name} arrived after that of "
                f"{self._hooked_name}, which had started the all-reduce. Pass a parameter as "
                "param_to_hook_all_reduce whose gradient comes later, such as one of the first "
                "layer."
            )
        if self._armed:
            self._enter()

    def _start(self) -> None:
        if self._armed and self._work is None:
            self._enter()
            self._launch()

    def _launch(self) -> None:
        self._flat *= self._flat.dtype.type(1.0 / self._group.size())
        label = f"delayed all-reduce of {len(self._names)} gradients"
        self._work = self._group._group.all_reduce(self._flat, label=label)

    def _finish(self) -> None:
        self._work.wait()
        self._work = None
        self._close()
        for view in self._views:
            bump_version(view)

    def _close(self) -> None:
        self._open = False
        open_passes.reducers.discard(self)

    def _end(self) -> None:
        self._armed, self._task = False, None
        if self._work is None:
            raise RuntimeError(
                f"delay_all_reduce_named_params: backward ended without a gradient for "
                f"{self._hooked_name}, which was to start the all-reduce of "
                f"{', '.join(self._names[:5])}; their gradients were not averaged. Pass a "
                "parameter as param_to_hook_all_reduce that every backward reaches."
            )
        self._finish()
