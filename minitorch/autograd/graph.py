"""The graph: what a tensor knows about how it was made, and how an op is recorded.

This is the bottom floor and knows no ops. An op computes a NumPy array and calls :func:`record`
with its backward *rule*; iff some input requires grad, a :class:`Node` is made that remembers

* ``_next``: for each input, the node its gradient goes to (``None``: no gradient wanted),
* ``_saved``: tensors and arrays that the rule needs, and ``ctx``: its constants,
* ``_seq``: when it was made. A node is always younger than the nodes it points to, so walking
  by falling sequence number is a topological order, with no recursion and no extra marks.

The same clock dates in-place writes (``writes.py``): a saved tensor whose last write is younger
than the node has been overwritten, and asking for it raises. So saving costs nothing.

Next rooms: ``nodes.py`` holds what a node and a tensor remember, ``engine.py`` walks the graph,
``inplace.py`` holds views and in-place writes.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy import asarray, ndarray

from minitorch.autograd.grad_mode import mode
from minitorch.autograd.hooks import RemovableHandle
from minitorch.autograd.nodes import AccumulateGrad, Extra, Node, TensorBase
from minitorch.autograd.sparse import SparseGradient
from minitorch.autograd.writes import (
    bump_version,
    clock,
    memory_owner,
    short_name,
    version_of,
)

__all__ = [
    "AccumulateGrad",
    "Extra",
    "Node",
    "RemovableHandle",
    "Rule",
    "TensorBase",
    "accumulator_of",
    "bump_version",
    "gradient_edge",
    "make_node",
    "memory_owner",
    "mode",
    "record",
    "record_many",
    "set_sparse_type",
    "set_tensor_type",
    "short_name",
    "version_of",
    "watch",
    "wrap",
]

_new = object.__new__

Rule = Callable[[Node, Any], Sequence[Any]]


# -- watching ------------------------------------------------------------------------------------

# How many threads watch; while it is 0, an op pays one look at it and nothing else.
_watchers = 0
_watchers_lock = threading.Lock()


@contextmanager
def watch(watcher: Callable[..., None]) -> Iterator[None]:
    """Call ``watcher(outs, rule, inputs, saved, ctx, name)`` after every op of this thread.

    The arguments are those of :func:`record_many`, ops without gradients included. Watching does
    not nest.
    """
    global _watchers
    if mode.watcher is not None:
        raise RuntimeError("this thread's ops are being watched already")
    with _watchers_lock:
        _watchers += 1
    mode.watcher = watcher
    try:
        yield
    finally:
        mode.watcher = None
        with _watchers_lock:
            _watchers -= 1


def _tell(*op: Any) -> None:
    if mode.watcher is not None:
        mode.watcher(*op)


# -- making tensors and nodes --------------------------------------------------------------------

_tensor_type: type[TensorBase] = TensorBase
_sparse_type: Callable[[SparseGradient], Any]


def set_tensor_type(cls: type[TensorBase]) -> None:
    """Say which class results have; ``minitorch.tensor`` calls this once."""
    global _tensor_type
    _tensor_type = cls


def set_sparse_type(cls: Callable[[SparseGradient], TensorBase]) -> None:
    """Say what makes a tensor of a sparse gradient; ``minitorch.sparse`` calls this once."""
    global _sparse_type
    _sparse_type = cls


def wrap(array: Any) -> Any:
    """Return a leaf Tensor that does not require grad, sharing `array`'s memory."""
    if array.__class__ is not ndarray:
        if array.__class__ is SparseGradient:
            return _sparse_type(array)
        array = asarray(array)
    out = _new(_tensor_type)
    out._array = array
    out._node = out._grad = out._alias = out._writes = out._extra = None
    out._output_nr = 0
    out._requires_grad = False
    return out


def accumulator_of(leaf: TensorBase) -> AccumulateGrad:
    """Return the leaf's :class:`AccumulateGrad`; it lives as long as somebody refers to it."""
    extra = leaf._extra
    if extra is None:
        extra = leaf._extra = Extra()
    node = None if extra.accumulator is None else extra.accumulator()
    if node is None:
        node = AccumulateGrad(leaf)
        extra.accumulator = weakref.ref(node)
    return node


def record(
    array: Any,
    rule: Rule,
    inputs: tuple,
    saved: tuple = (),
    ctx: Any = None,
    name: str | None = None,
) -> Any:
    """Make the result tensor of an op, and its node if one is needed.

    Parameters
    ----------
    array
        The op's result (NumPy array or scalar).
    rule
        ``rule(node, grad) -> sequence`` with one gradient, or None, per input.
    inputs
        Tensors the op was applied to; an entry may be None.
    saved
        Tensors, arrays and None that the rule reads as ``node.saved``. An entry that *is* `array`
        means the output: with ``create_graph`` the rule sees it as the result of this node.
    ctx
        Constants, as ``node.ctx``.
    name
        The node's name; by default made from the rule's: ``mul_backward`` -> ``MulBackward0``.

    Returns
    -------
    Tensor
        Requires grad iff grad mode is on, an input requires grad, and the result is floating.
    """
    if array.__class__ is not ndarray:
        array, saved = _from_scalar(array, saved)
    out = _new(_tensor_type)
    out._array = array
    out._grad = out._alias = out._writes = out._extra = None
    out._output_nr = 0
    if mode.grad_enabled:
        wanted = False
        following: list[Node | None] = []
        numbers = None
        for t in inputs:
            if t is not None:
                if t._alias is not None:
                    t._alias.sync(t)
                if t._requires_grad:
                    wanted = True
                    node = t._node
                    if node is None:
                        node = accumulator_of(t)
                    elif t._output_nr:
                        numbers = numbers or [0] * len(inputs)
                        numbers[len(following)] = t._output_nr
                    following.append(node)
                    continue
            following.append(None)
        if wanted and array.dtype.kind in "fV":
            node = _new(Node)
            node._rule = rule
            node._next = following
            node._next_nr = numbers
            node._saved = saved
            node.ctx = ctx
            node._name = name
            node._rare = node._own = node.arity = None
            for item in saved:
                if item is array:
                    node._own = {saved_index(saved, array): 0}
            node._seq = next(clock)
            out._node = node
            out._requires_grad = True
            if _watchers:
                _tell((out,), rule, inputs, saved, ctx, name)
            return out
    out._node = None
    out._requires_grad = False
    if _watchers:
        _tell((out,), rule, inputs, saved, ctx, name)
    return out


def _from_scalar(scalar: Any, saved: tuple) -> tuple[ndarray, tuple]:
    """NumPy turns 0-d results into scalars: turn them, and what was saved of them, back."""
    array = asarray(scalar)
    fixed = [
        array if item is scalar else asarray(item) if isinstance(item, np.generic) else item
        for item in saved
    ]
    return array, tuple(fixed)


def saved_index(saved: tuple, array: ndarray) -> int:
    """Return where `array` itself stands in `saved`, or -1."""
    for index, item in enumerate(saved):
        if item is array:
            return index
    return -1


def record_many(
    arrays: Sequence[Any],
    rule: Rule,
    inputs: tuple,
    saved: tuple = (),
    ctx: Any = None,
    name: str | None = None,
) -> tuple:
    """Like :func:`record` for an op with several results; integer results never require grad.

    The rule gets a tuple of gradients, None for outputs that none arrived at.
    """
    arrays = [asarray(array) for array in arrays]
    outs = tuple([wrap(array) for array in arrays])
    node = make_node(rule, inputs, saved, ctx, name) if mode.grad_enabled else None
    if node is None:
        if _watchers:
            _tell(outs, rule, inputs, saved, ctx, name)
        return outs
    node.arity = len(outs)
    own = {
        saved_index(saved, array): number
        for number, array in enumerate(arrays)
        if saved_index(saved, array) >= 0
    }
    node._own = own or None
    for number, out in enumerate(outs):
        if out._array.dtype.kind in "fV":
            out._node, out._output_nr, out._requires_grad = node, number, True
    if _watchers:
        _tell(outs, rule, inputs, saved, ctx, name)
    return outs


def make_node(
    rule: Rule, inputs: tuple, saved: tuple = (), ctx: Any = None, name: str | None = None
) -> Node | None:
    """Return a node over `inputs`, or None if no input requires grad."""
    following, numbers = [], []
    for t in inputs:
        edge, number = (None, 0) if t is None else gradient_edge(t)
        following.append(edge)
        numbers.append(number)
    if all(edge is None for edge in following):
        return None
    node = _new(Node)
    node._rule, node.ctx, node._name = rule, ctx, name
    node._next = following
    node._next_nr = numbers if any(numbers) else None
    node._saved = saved
    node._rare = node._own = node.arity = None
    node._seq = next(clock)
    return node


def gradient_edge(t: TensorBase) -> tuple[Node | None, int]:
    """Return where the gradient of `t` goes: (node, output number); (None, 0) if it needs none."""
    if t._alias is not None:
        t._alias.sync(t)
    if not t._requires_grad:
        return None, 0
    if t._node is None:
        return accumulator_of(t), 0
    return t._node, t._output_nr
