"""Views and in-place writes: who shares memory with whom, and how a write rewrites history.

A view remembers its *base* (the tensor that was not a view) and how to be made from it again. An
in-place write to a view is recorded as a new history of the base,

    base' = copy_slices(base, value):   base with the viewed part replaced by value,

and every other view of that base, when it is used next, notices that the base has a new node and
is made again from it (:meth:`Alias.sync`). So base and views have right gradients afterwards, or
the write raises, as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.autograd.grad_mode import enable_grad, mode, no_grad
from minitorch.autograd.graph import (
    Node,
    Rule,
    TensorBase,
    bump_version,
    memory_owner,
    record,
    short_name,
    wrap,
)
from minitorch.autograd.overlap import refuse_repeats


class Alias:
    """What a tensor that shares memory knows about it.

    Attributes
    ----------
    owner : TensorBase
        Whose write log counts (shared also by ``detach``).
    base : TensorBase or None
        The tensor this one is a differentiable view of; None for a detached alias.
    steps : tuple or None
        The last step from the base to this view: (steps before, op, args). A linked list, so that a
        long chain of views costs no more per view than a short one.
    origin : str
        "default", "no_grad" (made without recording) or "multi" (by an op with several views):
        the latter two cannot be written with recording on.
    """

    __slots__ = ("base", "base_seq", "origin", "owner", "steps")

    def __init__(
        self, owner: TensorBase, base: TensorBase | None, steps: tuple | None, origin: str
    ) -> None:
        self.owner = owner
        self.base = base
        self.steps = steps
        self.origin = origin
        self.base_seq = _node_age(base)

    def sync(self, view: TensorBase) -> None:
        """Give `view` a new history if its base got one since."""
        base = self.base
        if base is None or self.origin == "no_grad":
            return
        node = base._node
        if (-1 if node is None else node._seq) == self.base_seq:
            return
        with enable_grad():
            again = self.replay(base)
        self.base_seq = _node_age(base)
        _move_history(view, again)

    def replay(self, base: Any) -> Any:
        """Apply this view's steps to another tensor of the base's shape."""
        chain = []
        steps = self.steps
        while steps is not None:
            steps, op, args = steps
            chain.append((op, args))
        for op, args in reversed(chain):
            base = op(base, *args)
        return base


def _node_age(base: TensorBase | None) -> int:
    return -1 if base is None or base._node is None else base._node._seq


def record_view(
    array: np.ndarray, rule: Rule, x: Any, ctx: Any, op: Callable, args: tuple, multi: bool = False
) -> Any:
    """Like ``record`` for a one-input op whose result shares memory with `x`.

    ``op(x, *args)`` must make the same view of any tensor with the shape of `x`.
    """
    out = record(array, rule, (x,), (), ctx)
    alias_of(out, x, op, args, multi)
    return out


def alias_of(out: Any, x: Any, op: Callable, args: tuple, multi: bool = False) -> None:
    """Mark `out` as the view ``op(x, *args)`` of `x`."""
    origin = "multi" if multi else "default" if mode.grad_enabled else "no_grad"
    above = x._alias
    if above is None:
        out._alias = Alias(x, x, (None, op, args), origin)
    elif above.base is None:
        out._alias = Alias(above.owner, x, (None, op, args), origin)
    else:
        if above.origin != "default":
            origin = above.origin
        out._alias = Alias(above.owner, above.base, (above.steps, op, args), origin)


def detached(x: TensorBase) -> Any:
    """Return a tensor that shares memory and writes with `x` but no history."""
    out = wrap(x._array)
    out._alias = Alias(memory_owner(x), None, None, "default")
    return out


# -- writing -------------------------------------------------------------------------------------


def check_inplace(x: TensorBase, recorded: bool) -> None:
    """Raise, in PyTorch's words, where a recorded write to `x` would give wrong gradients."""
    if not mode.grad_enabled:
        return
    alias = x._alias
    if alias is not None and alias.origin == "no_grad" and alias.base._requires_grad:
        _refuse_view(x, alias.origin)
    if not recorded:
        return
    if alias is not None and alias.base is not None:
        alias.sync(x)
        if alias.origin != "default":
            _refuse_view(x, alias.origin)
        if x._requires_grad and alias.base._node is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
    if x._requires_grad and x._node is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def _refuse_view(x: TensorBase, origin: str) -> None:
    maker = "" if x._node is None else short_name(x._node)
    if origin == "multi":
        raise RuntimeError(
            f"Output {x._output_nr} of {maker} is a view and is being modified inplace. This view "
            "is the output of a function that returns multiple views. Such functions do not allow "
            "the output views to be modified inplace. You should replace the inplace operation by "
            "an out-of-place one."
        )
    raise RuntimeError(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the no_grad block "
        "(if you don't want the inplace to be tracked) or both outside (if you want the inplace "
        "to be tracked)."
    )


def write(x: Any, value: Any, repeats: bool = False) -> Any:
    """Write the tensor `value` (same shape and dtype) into `x`, with its history.

    `value` may depend on `x` itself: ``x.mul_(y)`` is ``write(x, x * y)``. An `x` that holds an
    element twice is refused unless `repeats` says that all its values are then equal.
    """
    recorded = mode.grad_enabled and (requires_grad(x) or requires_grad(value))
    check_inplace(x, recorded)
    check_writable(x._array, repeats)
    if not recorded:
        x._array[...] = value._array
        bump_version(x)
        return x
    alias = x._alias
    if alias is None or alias.base is None:
        x._array[...] = value._array
        bump_version(x)
        # A plain leaf cannot hand its own history on, so a value without one ends it here.
        _move_history(x, value)
        return x
    base = alias.base
    new_base = record(
        base._array,
        copy_slices_backward,
        (base, value),
        (),
        alias.replay,
        "torch::autograd::CopySlices",
    )
    x._array[...] = value._array
    bump_version(x)
    _move_history(base, new_base)
    alias.sync(x)
    return x


def check_writable(array: np.ndarray, repeats: bool = False) -> None:
    """Raise if `array` may not be written, or holds an element twice and `repeats` is false."""
    if not repeats:
        refuse_repeats(array)
    if not array.flags.writeable:
        raise RuntimeError(
            "the tensor's memory is read-only (it was made from a read-only NumPy array, or its "
            "elements overlap); clone() it before writing"
        )


def copy_slices_backward(node: Node, grad: Any) -> tuple:
    """The viewed part of the gradient goes to what was written there, the rest to the old base."""
    replay = node.ctx
    for_base = for_value = None
    if isinstance(grad, TensorBase):
        if node._next[1] is not None:
            for_value = replay(grad)
        if node._next[0] is not None:
            for_base = grad.clone()
            part = replay(for_base)
            write(part, wrap(np.zeros_like(part._array)))
        return for_base, for_value
    with no_grad():
        if node._next[1] is not None:
            for_value = replay(wrap(grad))._array
        if node._next[0] is not None:
            base = wrap(grad.copy(order="K"))
            replay(base)._array[...] = 0
            for_base = base._array
    return for_base, for_value


def requires_grad(x: TensorBase) -> bool:
    """Whether `x` requires grad, after noticing writes to its base."""
    if x._alias is not None:
        x._alias.sync(x)
    return x._requires_grad


def forget_history(x: TensorBase) -> None:
    """Make `x` a leaf that does not require grad."""
    x._node, x._output_nr, x._requires_grad = None, 0, False


def _move_history(x: TensorBase, source: TensorBase) -> None:
    """Let `x` be what made `source`; a retained gradient follows to the new node."""
    old = x._node
    if x._extra is not None and x._extra.retains_grad and old is not None:
        reference = old.rare.retained.pop(x._output_nr, None)
        if reference is not None and source._node is not None:
            source._node.rare.retained[source._output_nr] = reference
    x._node, x._output_nr = source._node, source._output_nr
    x._requires_grad = source._requires_grad
