"""``Work``: a collective in flight.

A thin Python shell around the core's work object. It adds what only Python can do once the bytes
are there: deal a flat receive buffer out to the user's tensors, run continuations. That
happens in the thread that asks (``wait``, ``is_completed``), never in the communication thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ._native import CollectiveError
from ._rank_state import _current
from .futures import Future


class Work:
    """What a collective with ``async_op=True`` returns.

    The tensors of a collective in flight may neither be read nor written until :meth:`wait` has
    returned.
    """

    __slots__ = ("_finish_with", "_finished", "_future", "_native", "_result", "_source")

    def __init__(
        self,
        native: Any,
        result: Sequence[Any] = (),
        finish_with: Callable[[], None] | None = None,
        source: Callable[[Any], int] | None = None,
    ) -> None:
        # The core's work pins the arrays until it is done, whoever drops this object.
        self._native = native
        _current.state.started(native)
        self._result = list(result)
        self._finish_with = finish_with
        self._finished = False
        self._future: Future | None = None
        self._source: Callable[[Any], int] | int | None = source

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the result is in place.

        Parameters
        ----------
        timeout : datetime.timedelta, optional
            By default the group's.

        Returns
        -------
        bool
            ``True``.

        Raises
        ------
        CollectiveError
            If it failed here or on another rank, or a rank did not come in time.
        """
        if not self._finished:
            try:
                self._native.wait(None if timeout is None else _seconds(timeout))
            except CollectiveError as error:
                self._complete_future(error)
                raise
            self._finish()
        self._complete_future(None)
        return True

    # PyTorch's name for "later work of this stream may rely on the result"; a CPU has no streams.
    synchronize = wait

    def is_completed(self) -> bool:
        """Whether it is over, successfully or not; never blocks."""
        if self._finished:
            return True
        if not self._native.is_completed():
            return False
        if not self._native.exception():
            self._finish()
        return True

    def is_success(self) -> bool:
        """Whether it is over and succeeded."""
        return self.is_completed() and self._finished

    def exception(self) -> BaseException | None:
        """What it failed with, ``None`` if it did not or has not yet."""
        if self._finished or not self._native.is_completed():
            return None
        try:
            self._native.wait()
        except CollectiveError as error:
            return error
        return None

    def result(self) -> list[Any]:
        """The output tensors; waits for them."""
        self.wait()
        return self._result

    def source_rank(self) -> int:
        """The global rank from which a receive got its message; waits for it."""
        self.wait()
        if not isinstance(self._source, int):
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv"
            )
        return self._source

    def get_future(self) -> Future:
        """A future of the output tensors; its continuations run in the thread that waits."""
        if self._future is None:
            self._future = Future._driven_by(self._drive)
            if self._finished:
                self._complete_future(None)
        return self._future

    def _drive(self, block: bool) -> None:
        if not block and not self.is_completed():
            return
        try:
            self.wait()
        except CollectiveError:
            pass  # kept by the future, which raises it

    def _finish(self) -> None:
        self._finished = True
        finish_with, self._finish_with = self._finish_with, None
        if callable(self._source):
            self._source = self._source(self._native)
        if finish_with is not None:
            finish_with()

    def _complete_future(self, error: CollectiveError | None) -> None:
        """Complete the future, if anybody asked for it, which runs its continuations."""
        future = self._future
        if future is None or future._done:
            return
        state = _current.state
        before, state.parent = state.parent, self._native
        try:
            future._complete(None if error is not None else self._result, error)
        finally:
            state.parent = before


def _seconds(timeout: timedelta) -> float:
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    return timeout.total_seconds()
