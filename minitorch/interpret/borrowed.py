"""Changing a user's model for the time of an explanation, and leaving it as it was.

Models are shared: two threads may explain the same one at the same time. So what an explanation
sets is counted, and the last one to leave puts the old value back; hooks act in their own thread
only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from minitorch.nn.modules.module import Module

__all__ = ["differentiable", "evaluating", "in_this_thread"]

_lock = threading.Lock()
# For each object and attribute: how many have set it, and what it was before.
_lent: dict[tuple[int, str], tuple[int, Any]] = {}


@contextmanager
def _borrowed(objects: Iterable[Any], name: str, value: Any) -> Iterator[None]:
    """Set an attribute of many objects, and back when nobody needs it any more."""
    objects = list(objects)
    with _lock:
        for each in objects:
            users, before = _lent.get((id(each), name), (0, getattr(each, name)))
            _lent[id(each), name] = users + 1, before
            setattr(each, name, value)
    try:
        yield
    finally:
        with _lock:
            for each in objects:
                users, before = _lent.pop((id(each), name))
                if users > 1:
                    _lent[id(each), name] = users - 1, before
                else:
                    setattr(each, name, before)


def evaluating(model: Any) -> Any:
    """Put a module and all below it into evaluation mode, and back afterwards."""
    return _borrowed(model.modules() if isinstance(model, Module) else (), "training", False)


def differentiable(model: Any) -> Any:
    """Let frozen parameters require grad: then everything in the pass has a node to go by."""
    parameters = model.parameters() if isinstance(model, Module) else ()
    floating = [each for each in parameters if each._array.dtype.kind in "fV"]
    return _borrowed(floating, "_requires_grad", True)


def in_this_thread(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a module's hook so that passes of other threads do not reach it."""
    here = threading.get_ident()

    def guarded(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs) if threading.get_ident() == here else None

    return guarded
