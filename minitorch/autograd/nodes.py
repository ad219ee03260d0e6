"""The vertices of the graph: what a tensor carries of it, and the nodes that ops leave behind.

A node remembers where its inputs' gradients go, what its rule needs, and when it was made. How an
op makes one is told in ``graph.py``; ``engine.py`` walks them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from minitorch.autograd.grad_mode import mode
from minitorch.autograd.hooks import NodeHooks
from minitorch.autograd.writes import memory_owner, output_overwritten, overwritten

LEAF_SEQ = 2**64 - 1


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
        from minitorch.autograd.graph import wrap

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
        self._seq = LEAF_SEQ
        self._name = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"
