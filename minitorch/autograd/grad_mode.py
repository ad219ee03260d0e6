"""Is this thread recording a graph? The grad mode and the context managers that switch it.

The mode belongs to the thread, as in PyTorch: a thread that is started inside ``no_grad`` records.
Every manager restores the previous mode in ``__exit__``, also when the body raised.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any


class _Mode(threading.local):
    """What this thread does; class attributes are the defaults of a new thread."""

    grad_enabled = True
    inference = False
    # While backward(create_graph=True) runs, rules see Tensors in place of arrays.
    differentiable = False
    # The innermost backward that is running in this thread (engine.GraphTask).
    task: Any = None
    # Who is told of every op (graph.watch).
    watcher: Any = None


mode = _Mode()


def is_grad_enabled() -> bool:
    """Return whether operations are recorded in this thread."""
    return mode.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside :class:`inference_mode`."""
    return mode.inference


class _ModeSwitch:
    """A context manager that is a decorator too, for functions and generators."""

    _target: bool = True
    _previous: list[tuple[bool, bool]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # `@no_grad` without parentheses hands the function to the class itself.
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], type):
            return cls()(args[0])
        self = super().__new__(cls)
        self._previous = []
        return self

    def __enter__(self) -> None:
        self._previous.append((mode.grad_enabled, mode.inference))
        self._switch()

    def __exit__(self, *exc_info: object) -> None:
        mode.grad_enabled, mode.inference = self._previous.pop()

    def _switch(self) -> None:
        mode.grad_enabled = self._target

    def _again(self) -> _ModeSwitch:
        return type(self)()

    def __call__(self, function: Callable) -> Callable:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            # The mode holds only while the generator's own body runs, not in its consumer.
            generator = function(*args, **kwargs)
            sent, step = None, generator.send
            try:
                while True:
                    try:
                        with self._again():
                            item = step(sent)
                    except StopIteration as stop:
                        return stop.value
                    try:
                        sent, step = (yield item), generator.send
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        sent, step = error, generator.throw
            finally:
                with self._again():
                    generator.close()

        return wrapped


class no_grad(_ModeSwitch):
    """Operations inside are not recorded; results do not require grad.

    Examples
    --------
    >>> import minitorch
    >>> x = minitorch.ones(2, requires_grad=True)
    >>> with minitorch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _target = False


class enable_grad(_ModeSwitch):
    """Operations inside are recorded, also within :class:`no_grad`."""

    _target = True


class set_grad_enabled(_ModeSwitch):
    """Switch recording to ``mode`` at once; as a context manager, until its end."""

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self._target = bool(mode)
        self._previous = [(_current().grad_enabled, _current().inference)]
        self._switch()

    def __enter__(self) -> None:
        self._switch()

    def __call__(self, function: Callable) -> Callable:
        # Used as a decorator, construction must not have changed the mode for good.
        _current().grad_enabled, _current().inference = self._previous[0]
        return super().__call__(function)

    def _again(self) -> _ModeSwitch:
        return set_grad_enabled(self._target)


def _current() -> _Mode:
    return mode


class inference_mode(_ModeSwitch):
    """Like :class:`no_grad`; additionally ``is_inference_mode_enabled()`` is true inside.

    PyTorch forbids to use what was made inside in a later graph; here such tensors are ordinary
    tensors that do not require grad.
    """

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls()(mode)
        self = object.__new__(cls)
        self._previous = []
        return self

    def __init__(self, mode: bool = True) -> None:
        self._enabled = bool(mode)

    def _switch(self) -> None:
        mode.inference = self._enabled
        mode.grad_enabled = not self._enabled

    def _again(self) -> _ModeSwitch:
        return inference_mode(self._enabled)
