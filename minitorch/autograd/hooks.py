"""Hooks: where they are kept, and the handle that takes them away again."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable


class NodeHooks:
    """Hooks of a node: `pre`, `post`, and per output the `tensor` hooks and retained tensors."""

    __slots__ = ("output_write", "post", "pre", "retained", "tensor")

    def __init__(self) -> None:
        self.pre: dict = {}
        self.post: dict = {}
        self.tensor: dict[int, dict] = {}
        self.retained: dict[int, weakref.ref] = {}
        # (shape, type, write log) of an output that was written in place after it was saved.
        self.output_write: tuple | None = None

    def add(self, kind: str, fn: Callable) -> RemovableHandle:
        return RemovableHandle(getattr(self, kind), fn)

    def add_tensor_hook(self, output_nr: int, fn: Callable) -> RemovableHandle:
        return RemovableHandle(self.tensor.setdefault(output_nr, {}), fn)


class RemovableHandle:
    """What registering a hook returns; ``remove()`` takes the hook away, also as a context."""

    _ids = itertools.count()

    def __init__(self, hooks: dict, fn: Callable) -> None:
        self.id = next(self._ids)
        self._hooks = hooks
        hooks[self.id] = fn

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()
