"""Where the timeline's Python events come from: wrappers around a few methods, while one records.

Modules, optimizers and loaders know nothing of the profiler (imports only point down), and pay
nothing for it when it is off. While at least one rank of this process records, these are replaced,
and afterwards put back:

===========================  ======================================================
``Module.__call__``          "forward" (the outermost call of a module with parameters),
                             inside it every layer by its class's name
``Tensor.backward``,
``autograd.backward``        "backward"
``Optimizer.step``           "optimizer step"
iterators of DataLoader      "data wait": until the loop had its next batch
===========================  ======================================================

A thread without a recorder passes straight through. What DDP's reducer does (gradient ready, bucket
ready, wait for bucket, hand back) is recorded by the core itself.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .recorder import Recorder, current, now_ns

__all__ = ["install", "remove"]

_lock = threading.Lock()
_users = 0
_replaced: list[tuple[Any, str, Any]] = []


def install() -> None:
    """Put the wrappers in place; calls are counted."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            try:
                _replace_all()
            except BaseException:
                _users = 0
                _put_back()
                raise


def remove() -> None:
    """Undo one `install`; the last one puts everything back."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _put_back()


def _put_back() -> None:
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)


def _replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    if isinstance(owner, type):  # where it is defined: subclasses inherit what is put there
        owner = next(base for base in owner.__mro__ if name in vars(base))
    original = vars(owner)[name]
    _replaced.append((owner, name, original))
    setattr(owner, name, wrap(original))


def _replace_all() -> None:
    import minitorch as torch
    from minitorch.nn import Module
    from minitorch.optim import Optimizer
    from minitorch.utils.data import DataLoader

    _replace(Module, "__call__", _module_call)
    _replace(torch.Tensor, "backward", _backward)
    _replace(importlib.import_module("minitorch.autograd"), "backward", _backward)
    _replace(DataLoader, "__iter__", _loader_iter)
    for kind in _family(Optimizer):
        if "step" in vars(kind):
            _replace(kind, "step", _step)


def _family(kind: type) -> list[type]:
    found = [kind]
    child: type
    for child in kind.__subclasses__():
        found += [c for c in _family(child) if c not in found]
    return found


def _module_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(self, *args, **kwargs)
        kind = type(self).__name__
        name = kind
        if not recorder.depth.get("forward") and next(iter(self.parameters()), None) is not None:
            name = "forward"
        with _Timed(recorder, name, "forward", module=kind):
            return original(self, *args, **kwargs)

    return call


def _backward(original: Callable[..., Any]) -> Callable[..., Any]:
    return _outermost(original, "backward", "backward")


def _step(original: Callable[..., Any]) -> Callable[..., Any]:
    return _outermost(original, "optimizer step", "optimizer")


def _outermost(original: Callable[..., Any], name: str, category: str) -> Callable[..., Any]:
    """Record calls that are not made by one of the same kind: Tensor.backward calls
    autograd.backward.
    """

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or recorder.depth.get(category):
            return original(*args, **kwargs)
        with _Timed(recorder, name, category):
            return original(*args, **kwargs)

    return call


class _Timed:
    """Records one event, also when its body raises, and counts how deep we are."""

    __slots__ = ("args", "begin", "category", "name", "recorder")

    def __init__(self, recorder: Recorder, name: str, category: str, **args: Any) -> None:
        self.recorder, self.name, self.category, self.args = recorder, name, category, args

    def __enter__(self) -> None:
        depth = self.recorder.depth
        depth[self.category] = depth.get(self.category, 0) + 1
        self.begin = now_ns()

    def __exit__(self, *exception: object) -> None:
        self.recorder.add(self.name, self.category, self.begin, now_ns(), **self.args)
        self.recorder.depth[self.category] -= 1


def _loader_iter(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    @functools.wraps(original)
    def iterate(self: Any) -> Iterator[Any]:
        iterator = original(self)
        return iterator if current() is None else _TimedIterator(iterator)

    return iterate


class _TimedIterator:
    """Hands everything on to a loader's iterator and times how long `next` takes."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator

    def __iter__(self) -> _TimedIterator:
        return self

    def __next__(self) -> Any:
        recorder = current()
        if recorder is None:
            return next(self._iterator)
        with _Timed(recorder, "data wait", "data"):
            return next(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)
