"""The backward walk.

1. Collect the nodes that can be reached from the roots, and count the edges into each leaf.
2. Sort them by falling sequence number: newest first. A node is younger than all it points to,
   so when its turn comes, every gradient it will ever get has arrived. No recursion: a chain of
   a million ops is a list of a million nodes.
3. Run each node's rule and hand the results on. A leaf accumulates as soon as its last gradient
   is there, so that data-parallel training can send it while the walk goes on.

Gradients are plain NumPy arrays, unless ``create_graph`` asks for Tensors whose own history is
recorded. A rule may run backward itself: each walk has its own :class:`GraphTask`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import asarray, ndarray

from minitorch.autograd.accumulate import reach_leaf, reach_without_gradient
from minitorch.autograd.grad_mode import mode
from minitorch.autograd.graph import AccumulateGrad, Node
from minitorch.autograd.hook_calls import after_node, before_node
from minitorch.autograd.sparse import SparseGradient

_age = operator.attrgetter("_seq")


class GraphTask:
    """One running backward: its end-of-backward callbacks and its settings."""

    __slots__ = ("callbacks", "captured", "captures", "create_graph", "has_targets", "keep_graph")

    def __init__(
        self, keep_graph: bool, create_graph: bool, has_targets: bool, captures: bool = False
    ) -> None:
        self.has_targets = has_targets
        self.captures = captures  # autograd.grad: gradients are returned, ``.grad`` is not touched
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.callbacks: list[Callable[[], None]] = []
        self.captured: dict[tuple[Node, int], Any] = {}


def queue_callback(callback: Callable[[], None]) -> None:
    """Run `callback` once when the backward that is now running ends.

    Call it from a hook or a rule. If the backward raises, its callbacks are dropped.

    Raises
    ------
    RuntimeError
        If no backward is running in this thread.
    """
    if mode.task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    mode.task.callbacks.append(callback)


def run_backward(
    roots: Sequence[tuple[Node, int, Any]],
    keep_graph: bool,
    create_graph: bool,
    targets: Sequence[tuple[Node, int]] | None = None,
    capture: bool = False,
) -> dict:
    """Walk the graph from `roots`.

    Parameters
    ----------
    roots
        (node, output number, gradient) triples; gradients are arrays, or Tensors if `create_graph`.
    targets
        If given, only paths that lead to these (node, output number) pairs are walked.
    capture
        Return the gradients of `targets` instead of accumulating leaves.
    """
    task = GraphTask(keep_graph, create_graph, targets is not None, capture)
    before = (mode.grad_enabled, mode.differentiable, mode.task)
    mode.grad_enabled = mode.differentiable = create_graph
    mode.task = task
    try:
        buffers: dict[Node, Any] = {}
        for node, number, grad in roots:
            _add(buffers, node, number, grad)
        order, pending = _plan([root[0] for root in roots])
        wanted = None if targets is None else _needed(order, targets)
        if wanted is not None:
            order = [node for node in order if node in wanted]
            pending = _count_leaf_edges(order)
        captures = set(targets) if capture and targets is not None else None
        _walk(task, order, pending, buffers, wanted, captures)
        # Callbacks may queue further ones.
        for callback in task.callbacks:
            callback()
    finally:
        mode.grad_enabled, mode.differentiable, mode.task = before
    return task.captured


def _plan(roots: list[Node]) -> tuple[list[Node], dict[Node, int]]:
    """Return the reachable inner nodes, newest first, and the number of edges into each leaf."""
    pending: dict[Node, int] = {}
    seen = set(roots)
    stack = []
    for node in seen:
        if node.__class__ is AccumulateGrad:
            pending[node] = pending.get(node, 0)
        else:
            stack.append(node)
    order = list(stack)
    while stack:
        for after in stack.pop()._next:
            if after is None:
                continue
            if after.__class__ is AccumulateGrad:
                pending[after] = pending.get(after, 0) + 1
            elif after not in seen:
                seen.add(after)
                stack.append(after)
                order.append(after)
    order.sort(key=_age, reverse=True)
    return order, pending


def _count_leaf_edges(order: list[Node]) -> dict[Node, int]:
    pending: dict[Node, int] = {}
    for node in order:
        for following in node._next:
            if following.__class__ is AccumulateGrad:
                pending[following] = pending.get(following, 0) + 1
    return pending


def _needed(order: list[Node], targets: Sequence[tuple[Node, int]]) -> set[Node]:
    """Return the nodes from which a target can be reached, and the targets."""
    needed = {node for node, _ in targets}
    for node in reversed(order):
        if node not in needed and any(following in needed for following in node._next):
            needed.add(node)
    return needed


def _walk(
    task: GraphTask,
    order: list[Node],
    pending: dict[Node, int],
    buffers: dict[Node, Any],
    wanted: set[Node] | None,
    captures: set[tuple[Node, int]] | None,
) -> None:
    """Run the nodes in order; `buffers` holds what has arrived at each node so far."""
    keep_graph, create_graph = task.keep_graph, task.create_graph
    # Nodes whose buffer is a sum made here, so that more can be added in place.
    sums: set[Node] = set()
    for leaf in [node for node in buffers if node.__class__ is AccumulateGrad]:
        if not pending.get(leaf):
            reach_leaf(task, leaf, buffers, wanted, captures)
    ready: list[Any] = []
    for node in order:
        grad = buffers.pop(node, None)
        if grad is None:
            _pass_by(node, pending, ready)
        else:
            if node._rare is not None:
                grad = before_node(node, grad, create_graph)
            if wanted is not None:
                if captures is not None:
                    _capture(task, node, grad, captures)
                if wanted.isdisjoint(node._next):
                    continue
            grads = node._rule(node, grad if node.arity is None else tuple(grad))
            if node._rare is not None and node._rare.post:
                grads = after_node(node, grads, grad, create_graph)
            if not keep_graph and node._saved:
                node._saved = None
            if node._next_nr is not None:
                _hand_to_outputs(node, grads, buffers, pending, ready, sums, create_graph)
            else:
                for after, g in zip(node._next, grads):
                    if after is None:
                        continue
                    if g is not None:
                        if g.__class__ is not ndarray and not create_graph:
                            g = _as_gradient(g)
                        if after.arity is not None:
                            _add(buffers, after, 0, g)
                        elif after not in buffers:
                            buffers[after] = g
                        elif after in sums and not create_graph:
                            buffers[after] += g
                        else:
                            # Others may hold the first gradient: never add to it in place.
                            buffers[after] = _sum(buffers[after], g)
                            sums.add(after)
                    if after in pending:
                        pending[after] = left = pending[after] - 1
                        if not left:
                            ready.append(after)
            # Nobody but the buffer may hold a leaf's gradient when it is taken over.
            grad = grads = g = None
        if ready:
            for leaf in ready:
                if leaf in buffers:
                    reach_leaf(task, leaf, buffers, wanted, captures)
                elif captures is None and (wanted is None or leaf in wanted):
                    reach_without_gradient(leaf)
            ready.clear()


def _pass_by(node: Node, pending: dict[Node, int], ready: list) -> None:
    """No gradient reached this node: its leaves need not wait for it."""
    for after in node._next:
        if after in pending:
            _count_down(after, pending, ready)


def _count_down(leaf: Node, pending: dict[Node, int], ready: list) -> None:
    left = pending[leaf] - 1
    pending[leaf] = left
    if left == 0:
        ready.append(leaf)


def _hand_to_outputs(
    node: Node,
    grads: Sequence,
    buffers: dict,
    pending: dict,
    ready: list,
    sums: set[Node],
    create_graph: bool,
) -> None:
    """Hand gradients on where some go to an output other than a node's first."""
    for after, number, g in zip(node._next, node._next_nr or (), grads, strict=True):
        if after is None:
            continue
        if g is not None:
            if after in sums and not create_graph:
                buffers[after] += _as_gradient(g)
            else:
                if after.arity is None and after in buffers:
                    sums.add(after)
                _add(buffers, after, number, g if create_graph else _as_gradient(g))
        if after in pending:
            _count_down(after, pending, ready)


def _as_gradient(g: Any) -> Any:
    return g if g.__class__ is SparseGradient else asarray(g)


def _add(buffers: dict[Node, Any], node: Node, number: int, grad: Any) -> None:
    """Add `grad` to what has arrived at an output; never in place, others may hold the array."""
    if node.arity is None:
        held = buffers.get(node)
        buffers[node] = grad if held is None else _sum(held, grad)
        return
    slots = buffers.get(node)
    if slots is None:
        slots = buffers[node] = [None] * node.arity
    held = slots[number]
    slots[number] = grad if held is None else _sum(held, grad)


def _sum(held: Any, grad: Any) -> Any:
    total = held + grad
    return asarray(total) if isinstance(total, np.generic) else total


def _capture(task: GraphTask, node: Node, grad: Any, captures: set[tuple[Node, int]]) -> None:
    grads = [grad] if node.arity is None else grad
    for number, g in enumerate(grads):
        if (node, number) in captures:
            task.captured[(node, number)] = g
