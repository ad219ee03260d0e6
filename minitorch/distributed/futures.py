"""``Future``: a value that will be there, and what to do with it then.

Continuations (``then``) run in the thread that waits, never in the communication thread, which may
not touch Python. A future that stands for a collective is therefore *not done* until its own rank
asks (``wait``, ``done``): when a continuation runs is decided by the program and not by the
network, and continuations that communicate do so in the same order on every rank. ``set_result``
runs continuations at once, as in PyTorch.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import GenericAlias
from typing import Any

from ._native import CollectiveError


class _Patience(threading.local):
    """How long this thread waits for a `set_result` by somebody else; the collectives have
    deadlines of their own.
    """

    seconds = 1800.0


_patience = _Patience()


class FutureTimeout(RuntimeError):
    """Nobody completed a future in time."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Wait at most so long for a ``set_result``, in this context and thread."""
    before, _patience.seconds = _patience.seconds, seconds
    try:
        yield
    finally:
        _patience.seconds = before


class Future:
    """PyTorch's ``torch.futures.Future``.

    Parameters
    ----------
    devices : list, optional
        Accepted for PyTorch's sake; the only device is the CPU.

    Examples
    --------
    >>> future = Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(21)
    >>> doubled.wait()
    42
    """

    __slots__ = ("_callbacks", "_condition", "_done", "_error", "_source", "_value")

    # ``Future[Tensor]`` in annotations, which PyTorch asks of communication hooks.
    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self, *, devices: Any = None) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], None]] = []
        self._condition: threading.Condition | None = threading.Condition()
        self._source: Callable[[bool], None] | None = None

    @classmethod
    def _driven_by(cls, source: Callable[[bool], None]) -> Future:
        """A future that ``source(block)`` completes: when it can or, if ``block``, in any case."""
        future = cls.__new__(cls)
        future._done = False
        future._value = None
        future._error = None
        future._callbacks = []
        future._condition = None
        future._source = source
        return future

    def done(self) -> bool:
        """Whether a value or an error is there."""
        if not self._done and self._source is not None:
            self._source(False)
        return self._done

    def wait(self) -> Any:
        """Wait for the value and return it, or raise the error."""
        if not self._done:
            if self._source is not None:
                self._source(True)
            else:
                self._await_result()
        return self.value()

    def value(self) -> Any:
        """The value of a future that is done.

        Raises
        ------
        RuntimeError
            If the future is not done.
        """
        if not self.done():
            raise RuntimeError("Future is not completed: call wait() before value().")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return a future of ``callback(self)``, run once this future is done.

        On a future that is already done the callback runs at once. If it raises, the returned
        future raises a ``RuntimeError`` with PyTorch's words, chained to what was raised.
        """
        child = Future._driven_by(self._drive) if self._source is not None else Future()

        def run(parent: Future) -> None:
            try:
                child._complete(callback(parent), None)
            except (CollectiveError, KeyboardInterrupt) as error:
                child._complete(None, error)
            except Exception as error:
                wrapped = RuntimeError(
                    f"Got the following error when running the callback: {type(error).__name__}: "
                    f"{error}"
                )
                wrapped.__cause__ = error
                child._complete(None, wrapped)

        self._call_when_done(run)
        return child

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Run ``callback(self)`` once this is done; what it raises is printed and ignored."""

        def run(parent: Future) -> None:
            try:
                callback(parent)
            except Exception:
                print("add_done_callback: the callback raised and is ignored:", file=sys.stderr)
                traceback.print_exc()

        self._call_when_done(run)

    def set_result(self, result: Any) -> None:
        """Complete the future with a value.

        Raises
        ------
        RuntimeError
            If it is already complete.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete the future with an error that ``wait`` and ``value`` raise."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _drive(self, block: bool) -> None:
        if not self._done and self._source is not None:
            self._source(block)

    def _call_when_done(self, run: Callable[[Future], None]) -> None:
        if self._condition is None:
            at_once = self._done
            if not at_once:
                self._callbacks.append(run)
        else:
            with self._condition:
                at_once = self._done
                if not at_once:
                    self._callbacks.append(run)
        if at_once:
            run(self)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        if self._condition is None:
            self._settle(value, error)
        else:
            with self._condition:
                self._settle(value, error)
                self._condition.notify_all()
        callbacks, self._callbacks = self._callbacks, []
        for run in callbacks:
            run(self)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self._done:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can "
                "only be marked "
                "completed once."
            )
        self._value, self._error, self._done = value, error, True

    def _await_result(self) -> None:
        assert self._condition is not None
        seconds = _patience.seconds
        end = time.monotonic() + seconds
        with self._condition:
            # Short waits, so that an interrupt sent to this thread is seen.
            while not self._done:
                if time.monotonic() > end:
                    raise FutureTimeout(
                        f"Nobody called set_result on this Future within {seconds:g} s."
                    )
                self._condition.wait(0.1)


def collect_all(futures: Iterable[Future]) -> Future:
    """A future of the list of ``futures``, done when all of them are (successfully or not)."""
    members = list(futures)

    def drive(block: bool) -> None:
        for member in members:
            if block and not member.done():
                member._drive(True) if member._source is not None else member._await_result()
        if not collected._done and all(member.done() for member in members):
            collected._complete(members, None)

    collected = Future._driven_by(drive)
    return collected


def wait_all(futures: Iterable[Future]) -> list[Any]:
    """Wait for every future and return the values in order; raises the first error."""
    return [member.wait() for member in collect_all(futures).wait()]
