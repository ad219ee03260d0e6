"""The forward pass as a list of calls, so that it can be followed again with something else.

:func:`trace` runs a model once while every recorded op of this thread is watched
(``autograd.graph.watch``). It keeps those calls whose inputs depend on the model's inputs, in
forward order: methods, functionals and modules alike, since all of them end in the same ``record``.
A module whose class has a rule of its own (``registry.py``) is kept as one call.

Everything else in the pass (weights, masks, zeros, comparisons, indices) is a *constant*. What
cannot be seen is refused: a tensor whose history contains an op that was not recorded (a custom
``autograd.Function``), a ``detach()`` on the way, a constant that was overwritten after its use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch.autograd import TensorBase, enable_grad, wrap
from minitorch.autograd.graph import watch
from minitorch.interpret.borrowed import differentiable, evaluating, in_this_thread
from minitorch.interpret.recorder import Call, Recorder
from minitorch.nn.modules.module import Module

__all__ = ["Call", "Trace", "trace"]


@dataclass
class Trace:
    """A recorded forward pass.

    Attributes
    ----------
    inputs : tuple of Tensor
        The model's tensor inputs, before the pass; they are values ``0 ... n-1``.
    calls : list of Call
        In forward order.
    output : Tensor
        The model's output, or what a final softmax or log-softmax was applied to.
    result : int
        The number of the output's value.
    """

    inputs: tuple
    calls: list[Call] = field(default_factory=list)
    output: Any = None
    result: int = -1


def trace(
    model: Callable[..., Any], inputs: Sequence[Any], has_rule: Callable[[Module], bool]
) -> Trace:
    """Run `model` on `inputs` in evaluation mode and return the recorded pass.

    Parameters
    ----------
    model : Module or callable
        Modules are run in evaluation mode and get their own mode back.
    inputs : sequence of Tensor
        Floating tensors, or token ids.
    has_rule : callable
        Whether a module is to be kept as one call.

    Raises
    ------
    NotImplementedError
        If the pass contains something that cannot be followed.
    TypeError
        If the model does not return one tensor (or a tuple that starts with it).
    """
    # The model may write into what it is given; the decomposition starts from what it was.
    given = tuple([wrap(np.array(tensor._array, copy=True)) for tensor in inputs])
    fresh = tuple([_fresh(tensor) for tensor in given])
    recorder = Recorder(fresh)
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        stack.enter_context(differentiable(model))
        for module in model.modules() if isinstance(model, Module) else ():
            if has_rule(module):
                pre = module.register_forward_pre_hook(
                    in_this_thread(recorder.enter), with_kwargs=True
                )
                post = module.register_forward_hook(
                    in_this_thread(recorder.leave), with_kwargs=True
                )
                stack.callback(pre.remove)
                stack.callback(post.remove)
        stack.enter_context(enable_grad())
        stack.enter_context(watch(recorder))
        output = model(*fresh)
        while isinstance(output, (tuple, list)) and output:
            output = output[0]
        if not isinstance(output, TensorBase):
            raise TypeError(
                "contextual decomposition: the model must return a tensor of logits (or a tuple "
                f"that starts with it), not {type(output).__name__}"
            )
        result = recorder.source(output)
    recorder.check_constants()
    if result is None:
        raise ValueError(
            "contextual decomposition: the model's output does not depend on the input through "
            "recorded ops; comparisons, argmax, one_hot and .numpy() cut the way"
        )
    made = Trace(given, recorder.calls, output, result)
    _drop_final_softmax(made)
    _keep_what_matters(made)
    return made


def _fresh(tensor: Any) -> Any:
    """Return a copy that may be written in place by the model; floating ones require grad."""
    if tensor._array.dtype.kind not in "fV":
        return wrap(tensor._array.copy())
    leaf = wrap(tensor._array)
    leaf._requires_grad = True
    with enable_grad():
        return leaf.clone()


def _drop_final_softmax(made: Trace) -> None:
    """Scores are on logits: step back over a softmax that the model ends with."""
    makers = {call.targets[0]: call for call in made.calls if len(call.targets) == 1}
    while True:
        maker = makers.get(made.result)
        if maker is None or maker.name not in ("SoftmaxBackward0", "LogSoftmaxBackward0"):
            return
        (source,) = maker.sources
        assert source is not None
        made.output, made.result = maker.inputs[0], source


def _keep_what_matters(made: Trace) -> None:
    """Drop calls that do not lead to the output, and note when each value is used last."""
    needed, kept = {made.result}, []
    for call in reversed(made.calls):
        if needed.isdisjoint(call.targets):
            continue
        sources = {source for source in call.sources if source is not None}
        call.last_uses = tuple(sources - needed)
        needed |= sources
        kept.append(call)
    made.calls = kept[::-1]
