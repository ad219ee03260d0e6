"""What is kept of a forward pass: calls, and which tensors carry which value.

``trace.py`` runs the model; here is what watches it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from minitorch.autograd import Node, TensorBase, version_of, wrap
from minitorch.autograd.inplace import copy_slices_backward
from minitorch.nn.modules.module import Module

__all__ = ["Call", "Recorder", "name_of"]

_PACKAGE = str(Path(__file__).parents[1])


@dataclass
class Call:
    """One op, or one call of a module that has a rule of its own.

    Attributes
    ----------
    name : str
        The node's name, such as ``"ReluBackward0"``, or the module's class name.
    op : object
        The op's backward rule, or the module.
    inputs : tuple
        The tensors it was given (None where an optional one was missing).
    sources : tuple of (int or None)
        For each input the number of the value it carries, None for a constant.
    targets : tuple of int
        The numbers of the values it made.
    shapes : tuple of tuple
        Their shapes.
    saved, ctx
        What the op noted for its gradient; for a module ``ctx`` is ``(args, kwargs)``.
    where : str
        The line of the model's code.
    outputs : tuple
        The tensors it made.
    last_uses : tuple of int
        The values that no later call needs.
    run : Run
        The settings of the propagation that applies its rule.
    memo : dict
        What a rule wants to remember from one propagation to the next.
    """

    name: str
    op: Any
    inputs: tuple
    sources: tuple[int | None, ...]
    targets: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    saved: tuple
    ctx: Any
    where: str
    outputs: tuple = ()
    last_uses: tuple[int, ...] = ()
    run: Any = None
    memo: dict[str, Any] = field(default_factory=dict)


def flatten(value: Any) -> list:
    """Return the tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, TensorBase):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in flatten(each)]
    return []


def name_of(rule: Any, name: str | None) -> str:
    """Return a node's name: the one given, or the one made from its rule's."""
    if name is not None:
        return name
    words = rule.__name__.strip("_").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "0"


def _caller() -> str:
    """Return file and line of the innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Recorder:
    """What is known while the model runs: which tensors carry which value."""

    def __init__(self, inputs: tuple) -> None:
        self.calls: list[Call] = []
        self.count = 0
        self.values: dict[Any, int] = {}
        self.seen: set[Any] = set()
        # Ids are only unique while their objects live; and a leaf may be a view's owner.
        self.alive: list[Any] = []
        self.owners: set[int] = set()
        self.inside: Module | None = None
        # For each call its constants and the versions they had.
        self.versions: list[list[tuple[Any, int]]] = []
        for tensor in inputs:
            self.carry(tensor)

    @staticmethod
    def key(tensor: Any) -> Any:
        # The node tells more than the tensor: an in-place op gives the same tensor a new one.
        node = tensor._node
        return id(tensor) if node is None else (id(node), tensor._output_nr)

    def carry(self, tensor: Any) -> int:
        """Give a tensor the next value number."""
        number, self.count = self.count, self.count + 1
        self.values[self.key(tensor)] = number
        self.owners.add(id(tensor))
        self.alive += (tensor, tensor._node)
        return number

    def source(self, tensor: Any) -> int | None:
        """Return the number of the value a tensor carries, None for a constant.

        Raises
        ------
        NotImplementedError
            If it depends on the input in a way that was not recorded.
        """
        if tensor is None:
            return None
        if tensor._alias is not None:
            tensor._alias.sync(tensor)
        number = self.values.get(self.key(tensor))
        if number is not None:
            return number
        node: Node | None = tensor._node
        if node is not None and self.key(tensor) not in self.seen:
            raise NotImplementedError(
                f"contextual decomposition: {node.name()} is not a recorded op of minitorch (a "
                "custom autograd.Function, or a checkpoint), so it has no rule; write it with "
                "recorded ops, or give its module a rule: @interpret.register_rule(ThatModule)"
            )
        alias = tensor._alias
        if node is None and alias is not None and id(alias.owner) in self.owners:
            raise NotImplementedError(
                "contextual decomposition: a tensor that depends on the input was detached, and "
                "detach() has no rule; remove it from the model's forward"
            )
        return None

    def __call__(
        self, outs: tuple, rule: Any, inputs: tuple, saved: tuple, ctx: Any, name: str | None
    ) -> None:
        self.alive += outs
        if self.inside is None:
            sources = tuple([self.source(tensor) for tensor in inputs])
            if any(source is not None for source in sources):
                if rule is copy_slices_backward and sources[0] is None:
                    # The write comes next: keep what is being overwritten.
                    inputs = (wrap(inputs[0]._array.copy()), *inputs[1:])
                self.append(name_of(rule, name), rule, inputs, sources, outs, saved, ctx)
                return
        for out in outs:
            self.seen.add(self.key(out))
            self.alive.append(out._node)

    def append(
        self,
        name: str,
        op: Any,
        inputs: tuple,
        sources: tuple,
        outs: Sequence[Any],
        saved: tuple,
        ctx: Any,
    ) -> None:
        targets = tuple([self.carry(out) for out in outs])
        shapes = tuple([tuple(out._array.shape) for out in outs])
        call = Call(name, op, inputs, sources, targets, shapes, saved, ctx, _caller(), tuple(outs))
        self.calls.append(call)
        self.versions.append(
            [
                (tensor, version_of(tensor))
                for tensor, source in zip(inputs, sources, strict=True)
                if tensor is not None and source is None
            ]
        )

    def check_constants(self) -> None:
        """Raise if a constant was overwritten after it was used."""
        for call, constants in zip(self.calls, self.versions, strict=True):
            if any(version_of(tensor) != version for tensor, version in constants):
                raise RuntimeError(
                    f"contextual decomposition: a constant of {call.name} ({call.where}) was "
                    "changed in place later in the same forward pass; clone() it before the write"
                )

    # -- modules with rules of their own ---------------------------------------------------------

    def enter(self, module: Module, args: tuple, kwargs: dict) -> None:
        if self.inside is None:
            self.inside = module

    def leave(self, module: Module, args: tuple, kwargs: dict, output: Any) -> None:
        if self.inside is not module:
            return
        self.inside = None
        inputs = tuple(flatten((args, kwargs)))
        sources = tuple([self.source(tensor) for tensor in inputs])
        if any(source is not None for source in sources):
            name = type(module).__name__
            self.append(name, module, inputs, sources, flatten(output), (), (args, kwargs))
