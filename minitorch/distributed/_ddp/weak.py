"""Hooks that do not keep their owner alive.

A hook lives as long as the parameter or the graph it is registered on, and must not keep a dropped
wrapper at work.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minitorch.tensor import Tensor


def weak_method(owner: Any, name: str, *args: Any) -> Callable[..., None]:
    """Return a hook that calls ``owner.name(*args)``, as long as there is an owner."""
    reference = weakref.ref(owner)

    def call(*_: object) -> None:
        this = reference()
        if this is not None:
            getattr(this, name)(*args)

    return call


def when_backward_enters(outputs: Iterable[Tensor], hook: Callable[..., None]) -> int:
    """Call ``hook`` when a backward reaches one of ``outputs``; return at how many nodes."""
    nodes = {id(t.grad_fn): t.grad_fn for t in outputs if t.grad_fn is not None}
    for node in nodes.values():
        node.register_prehook(hook)
    return len(nodes)
