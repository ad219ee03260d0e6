"""The graph: what a tensor knows about how it was made, and how an op is recorded.

This is the bottom floor and knows no ops. An op computes a NumPy array and calls :func:`record`
with its backward *rule*; iff some input requires grad, a :class:`Node` is made that remembers

* ``_next``: for each input, the node its gradient goes to (``None``: no gradient wanted),
* ``_saved``: tensors and arrays that the rule needs, and ``ctx``: its constants,
* ``_seq``: when it was made. A node is always younger than the nodes it points to, so walking
  by falling sequence number is a topological order, with no recursion and no extra marks.

The same clock dates in-place writes (``writes.py``): a saved tensor whose last write is younger
than the node has been overwritten, and asking for it raises. So saving costs nothing.

Next rooms: ``engine.py`` walks the graph; ``inplace.py`` holds views and in-place writes.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import asarray, ndarray

from minitorch.autograd.grad_mode import mode
from minitorch.autograd.hooks import NodeHooks, RemovableHandle
from minitorch.autograd.writes import (
    bump_version,
    clock,
    memory_owner,
    output_overwritten,
    overwritten,
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
    "set_tensor_type",
    "short_name",
    "version_of",
    "wrap",
]

_new = object.__new__
_LEAF_SEQ = 2**64 - 1

Rule = Callable[["Node", Any], Sequence[Any]]


class TensorBase:
    """The fields of a tensor that the graph needs; ``minitorch.Tensor`` adds everything else.

    Attributes
    ----------
    _array : numpy.ndarray
        The values.
    _node, _output_nr
        The node that made this tensor (``None`` for a leaf), and which of its outputs this is.
    _alias
        ``None``, or whose memory this tensor shares (:class:`minitorch.autograd.inplace.Alias`).
    _writes
        The :class:`WriteLog` of the memory's owner, made at the first in-place write.
    _extra
        Rare things, made on demand: hooks, accumulator, retains_grad (:class:`Extra`).
    """

    __slots__ = (
        "__weakref__",
        "_alias",
        "_array",
        "_extra",
        "_grad",
        "_node",
        "_output_nr",
        "_requires_grad",
        "_writes",
    )

    _alias: Any
    _array: ndarray
    _extra: Extra | None
    _grad: Any
    _node: Node | None
    _output_nr: int
    _requires_grad: bool
    _writes: Any

    if TYPE_CHECKING:
        # Everything that Tensor adds.
        def __getattr__(self, name: str) -> Any: ...


class Extra:
    """The rare part of a tensor."""

    __slots__ = ("accumulator", "hooks", "post_accumulate_hooks", "retains_grad")

    def __init__(self) -> None:
        self.accumulator: weakref.ref | None = None
        self.hooks: dict | None = None
        self.post_accumulate_hooks: dict | None = None
        self.retains_grad = False


class Node:
    """One recorded operation: a vertex of the graph.

    ``rule(node, grad)`` returns one gradient per input, ``None`` where none is needed. With several
    outputs (`arity` not ``None``) it gets a tuple, ``None`` where no gradient arrived.
    """

    __slots__ = (
        "__weakref__",
        "_name",
        "_next",
        "_next_nr",
        "_own",
        "_rare",
        "_rule",
        "_saved",
        "_seq",
        "arity",
        "ctx",
    )

    _name: str | None
    _next: list[Node | None]
    _next_nr: list[int] | None
    _own: dict[int, int] | None
    _rare: NodeHooks | None
    _rule: Any
    _saved: tuple | None
    _seq: int
    arity: int | None
    ctx: Any

    # -- what a rule reads -----------------------------------------------------------------------

    @property
    def saved(self) -> tuple:
        """What the op saved: arrays (Tensors while ``create_graph`` is on), checked for writes."""
        saved = self._saved
        if not saved:
            if saved is None:
                raise RuntimeError(
                    "Trying to backward through the graph a second time (or directly access saved "
                    "tensors after they have already been freed). Saved intermediate values of the "
                    "graph are freed when you call .backward() or autograd.grad(). Specify "
                    "retain_graph=True if you need to backward through the graph a second time or "
                    "if you need to access saved tensors after calling backward."
                )
            return ()
        if mode.differentiable:
            return self._saved_tensors()
        seq = self._seq
        arrays = []
        for item in saved:
            if item is None or item.__class__ is ndarray:
                arrays.append(item)
            else:
                owner = item if item._alias is None else item._alias.owner
                if owner._writes is not None and owner._writes.times[-1] > seq:
                    raise overwritten(item, owner._writes, seq)
                arrays.append(item._array)
        if self._own is not None and self._rare is not None and self._rare.output_write:
            raise output_overwritten(self)
        return tuple(arrays)

    def _saved_tensors(self) -> tuple:
        """What the op saved as Tensors; a saved output gets this node as its maker."""
        if self._own is not None and self._rare is not None and self._rare.output_write:
            raise output_overwritten(self)
        tensors = []
        for index, item in enumerate(self._saved or ()):
            if isinstance(item, TensorBase):
                log = memory_owner(item)._writes
                if log is not None and log.times[-1] > self._seq:
                    raise overwritten(item, log, self._seq)
            elif item is not None:
                item = wrap(item)
                if self._own is not None and index in self._own:
                    item._node, item._output_nr = self, self._own[index]
                    item._requires_grad = True
            tensors.append(item)
        return tuple(tensors)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each input, whether the rule's gradient for it will be used."""
        return tuple([node is not None for node in self._next])

    # -- what a reader of the graph sees (PyTorch's names) ---------------------------------------

    @property
    def next_functions(self) -> tuple:
        """Pairs (node, output number) that the gradients go to, in the order of the inputs."""
        numbers = self._next_nr or itertools.repeat(0)
        return tuple(zip(self._next, numbers, strict=False))

    def name(self) -> str:
        """Return PyTorch's name of the operation, such as ``MulBackward0``."""
        if self._name is not None:
            return self._name
        words = self._rule.__name__.strip("_").split("_")
        return "".join(word[:1].upper() + word[1:] for word in words) + "0"

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    @property
    def rare(self) -> NodeHooks:
        """The hooks of this node, made on demand."""
        if self._rare is None:
            self._rare = NodeHooks()
        return self._rare

    def register_hook(self, fn: Callable) -> Any:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node ran; it may replace the former."""
        return self.rare.add("post", fn)

    def register_prehook(self, fn: Callable) -> Any:
        """Call ``fn(grad_outputs)`` before this node runs; it may replace them."""
        return self.rare.add("pre", fn)

    def release(self) -> None:
        """Drop what was saved; a second backward through this node raises."""
        if self._saved:
            self._saved = None


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to ``variable.grad``."""

    __slots__ = ("variable",)

    def __init__(self, variable: TensorBase) -> None:
        self.variable = variable
        self._own = self._rare = self._next_nr = self.arity = None
        self._rule = self.ctx = None
        self._next, self._saved = [], ()
        self._seq = _LEAF_SEQ
        self._name = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"


# -- making tensors and nodes --------------------------------------------------------------------

_tensor_type: type[TensorBase] = TensorBase


def set_tensor_type(cls: type[TensorBase]) -> None:
    """Say which class results have; ``minitorch.tensor`` calls this once."""
    global _tensor_type
    _tensor_type = cls


def wrap(array: Any) -> Any:
    """Return a leaf Tensor that does not require grad, sharing `array`'s memory."""
    out = _new(_tensor_type)
    out._array = array if array.__class__ is ndarray else asarray(array)
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
            return out
    out._node = None
    out._requires_grad = False
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
