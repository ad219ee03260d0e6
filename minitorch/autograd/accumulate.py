"""The end of the walk at a leaf: hooks, then ``grad`` is started or added to.

Rules: no two ``grad`` share memory; one that exists is added to in place, so that a gradient which
is a view of a communication bucket stays one; a fresh array is taken over without a copy if, by its
reference count, nobody else can see it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import AccumulateGrad, Extra, Node, TensorBase, bump_version, wrap
from minitorch.autograd.hook_calls import after_node, before_node, through_hooks
from minitorch.autograd.sparse import SparseGradient


def reach_leaf(
    task: Any,
    leaf: AccumulateGrad,
    buffers: dict[Node, Any],
    wanted: set[Node] | None,
    captures: set[tuple[Node, int]] | None,
) -> None:
    """Bring the leaf's finished gradient to where it belongs: ``grad``, or the captured ones."""
    if wanted is not None and leaf not in wanted:
        del buffers[leaf]
        return
    variable = leaf.variable
    extra = variable._extra or Extra()
    if extra.hooks:
        grad = through_hooks(extra.hooks, buffers.pop(leaf), task.create_graph)
        buffers[leaf] = grad
        del grad
    if captures is not None:
        task.captured[(leaf, 0)] = buffers.pop(leaf)
        return
    if leaf._rare is not None and leaf._rare.pre:
        buffers[leaf] = before_node(leaf, buffers.pop(leaf), task.create_graph)
    if task.create_graph:
        grad = buffers.pop(leaf)
        held = variable._grad
        variable._grad = grad if held is None else held + grad
    else:
        _accumulate(variable, buffers, leaf)
    _after_accumulation(leaf, variable._grad)


def reach_without_gradient(leaf: AccumulateGrad) -> None:
    """All paths to the leaf are walked, and no rule gave a gradient (each returned None).

    ``grad`` stays as it is; the hooks that come after accumulation run all the same, as in PyTorch:
    data-parallel training counts on hearing of every parameter in the graph.
    """
    _after_accumulation(leaf, None)


def _after_accumulation(leaf: AccumulateGrad, grad: TensorBase | None) -> None:
    # A user's hook before the node's own (data-parallel training's): it sees the local gradient.
    variable = leaf.variable
    if variable._extra is not None and variable._extra.post_accumulate_hooks:
        for hook in list(variable._extra.post_accumulate_hooks.values()):
            hook(variable)
    if leaf._rare is not None and leaf._rare.post:
        after_node(leaf, (), grad, True)


def _accumulate(variable: TensorBase, buffers: dict[Node, Any], leaf: AccumulateGrad) -> None:
    """Add to ``variable.grad`` in place, or start it with memory that nobody else holds."""
    array = variable._array
    incoming = buffers[leaf]
    if incoming.shape != array.shape or incoming.dtype != array.dtype:
        incoming = _fit(incoming, array)
        buffers[leaf] = incoming
    held = variable._grad
    if incoming.__class__ is SparseGradient or (held is not None and held.is_sparse):
        del buffers[leaf]
        variable._grad = _with_sparse(held, incoming)
        return
    if held is not None and not held._requires_grad:
        np.add(held._array, incoming, out=held._array)
        bump_version(held)
        del buffers[leaf]
        return
    if held is not None:
        variable._grad = wrap(held._array + incoming)
        del buffers[leaf]
        return
    del incoming
    variable._grad = wrap(_take(buffers, leaf, array))


def _with_sparse(held: Any, incoming: Any) -> Any:
    """Return the sum of what is held and what comes in, of which at least one is sparse."""
    if held is None:
        return wrap(incoming.copy())
    if held.is_sparse:
        return wrap(held._coo + incoming)
    if held._requires_grad:
        return wrap(held._array + incoming)
    incoming.add_to(held._array)  # in place: it may be a view of a communication bucket
    bump_version(held)
    return held


def _take(buffers: dict, key: Any, like: ndarray) -> ndarray:
    """Return the buffered gradient itself if nobody else can see its memory, else a copy."""
    grad = buffers.pop(key)
    if (
        sys.getrefcount(grad) <= _ALONE
        and grad.strides == like.strides
        and grad.base is None
        and grad.flags.owndata
        and grad.flags.writeable
    ):
        return grad
    copy = np.empty_like(like)
    copy[...] = grad
    return copy


def _count_alone() -> int:
    """How many references `_take` counts for an array that only its buffer holds."""
    counts = []

    def probe(buffers: dict, key: Any, like: ndarray) -> None:
        grad = buffers.pop(key)
        counts.append(sys.getrefcount(grad))

    probe({0: np.zeros(1)}, 0, np.zeros(1))
    return counts[0]


_ALONE = _count_alone()


def _fit(grad: Any, array: ndarray) -> Any:
    """Bring a rule's gradient to the leaf's shape and dtype, or raise."""
    if grad.__class__ is SparseGradient and grad.shape == array.shape:
        return grad.astype(array.dtype, copy=False)
    extra = len(grad.shape) - array.ndim
    if extra >= 0:
        axes = tuple(range(extra)) + tuple(
            extra + i for i, n in enumerate(array.shape) if n == 1 and grad.shape[extra + i] != 1
        )
        reduced = grad.sum(axis=axes).reshape(array.shape) if axes else grad
        if reduced.shape == array.shape:
            return reduced.astype(array.dtype, copy=False)
    raise RuntimeError(
        f"a backward rule returned an invalid gradient - got {list(grad.shape)} but expected "
        f"shape compatible with {list(array.shape)}"
    )
