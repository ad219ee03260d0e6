"""One rank's failure ends the job on all ranks, and its traceback is shown once.

Left alone, an exception on one rank of an MPI job hangs all others: the failed process waits in
``MPI_Finalize`` for peers that wait for its data. A :class:`Guard`, installed by
``init_process_group`` in a process of an MPI job, does this instead:

1. the rank that failed prints its traceback, each line with its rank in front;
2. it tells all others on the control channel, so that whatever they wait for raises there;
3. a rank whose error is only a consequence prints one line;
4. after a moment for those lines, the first one aborts the job with a non-zero status.

A rank that ends normally says goodbye first; peers that still wait for it raise and come through
here. ``mpirun`` cleans up after a rank that was killed. The end of a healthy process stops the
engine before MPI is finalized.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from ._native import CollectiveError

# For the others' one-line notes to come out before MPI_Abort kills everybody.
_GRACE_SECONDS = 0.3
# How long a rank that merely follows waits for the one that failed to abort the job, before it does
# so itself.
_FOLLOW_SECONDS = 2.0


class Guard:
    """Ends the job when this rank fails.

    Parameters
    ----------
    rank, size : int
        Of this process in the job.
    abort : callable
        Ends all processes of the job with a status; ``MPI_Abort``.
    """

    def __init__(self, rank: int, size: int, abort: Callable[[int], None]) -> None:
        self.rank = rank
        self.size = size
        self.engine: Any = None
        self._abort = abort
        self._pid = os.getpid()
        self._armed = False
        self._ending = threading.Lock()
        self._status = 0  # with which the script left through sys.exit

    def install(self) -> None:
        """Hook into what Python does with an uncaught exception, ``sys.exit`` and the end of the
        process.
        """
        self._armed = True
        self._except_hook, self._thread_hook, self._sys_exit = (
            sys.excepthook,
            threading.excepthook,
            sys.exit,
        )
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        sys.exit = self._on_sys_exit
        atexit.register(self._at_exit)

    def remove(self) -> None:
        """Undo :meth:`install`, as far as nobody has hooked in on top."""
        if not self._armed:
            return
        self._armed = False
        atexit.unregister(self._at_exit)
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._except_hook
        if threading.excepthook == self._on_thread_exception:
            threading.excepthook = self._thread_hook
        if sys.exit == self._on_sys_exit:
            sys.exit = self._sys_exit

    def disarm(self) -> None:
        """Do nothing any more: this is a forked child, and no rank."""
        self._armed = False

    # -- the hooks -------------------------------------------------------------------------------

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        # At a prompt the user goes on after an error.
        if not self._active() or hasattr(sys, "ps1"):
            self._except_hook(kind, error, trace)
            return
        if not self._ending.acquire(blocking=False):
            return  # another thread of this rank is at it
        if issubclass(kind, KeyboardInterrupt):
            self._fail(
                f"[rank{self.rank}]: interrupted",
                "interrupted (KeyboardInterrupt)",
                130,
            )
        elif told_by_another(error, self.rank):
            self._follow(error)
        else:
            self._let_lower_ranks_show_it(error)
            shown = _prefixed(f"[rank{self.rank}]: ", self._rendered(kind, error, trace))
            self._fail(shown, _short(error), 1)

    def _on_thread_exception(self, args: Any) -> None:
        if args.exc_type is SystemExit:
            return
        if not self._active():
            self._thread_hook(args)
            return
        self._on_exception(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)

    def _on_sys_exit(self, status: Any = None) -> NoReturn:
        if threading.current_thread() is not threading.main_thread():
            raise SystemExit(status)
        raise _Leaving(status, self)

    def _at_exit(self) -> None:
        if not self._active():
            return
        if self._status != 0:
            shown = f"[rank{self.rank}]: sys.exit({self._status}) ends the job on all ranks"
            self._fail(shown, f"ended with status {self._status} (sys.exit)", self._status)
        if self.engine is None:
            return
        from ._rank_state import PROCESS
        from .world import close

        failed = self.engine.error()
        if not failed:
            try:
                close(PROCESS)
            except CollectiveError as error:
                failed = str(error)
        if failed:
            # Some request may never complete: MPI_Finalize would wait for it for ever.
            text = failed.split("\n", 1)[0]
            print(f"[rank{self.rank}]: ended after a failure: {text}", file=sys.stderr)
            self._end(1)

    # -- the end ---------------------------------------------------------------------------------

    def _active(self) -> bool:
        return self._armed and os.getpid() == self._pid

    def _rendered(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> str:
        buffer = io.StringIO()
        with contextlib.redirect_stderr(buffer):
            self._except_hook(kind, error, trace)
        return buffer.getvalue() or "".join(traceback.format_exception(kind, error, trace))

    def _fail(self, shown: str, told: str, status: int) -> None:
        """Show what happened, tell the others, end the job."""
        sys.stdout.flush()
        print(shown, file=sys.stderr, flush=True)
        if self.engine is not None:
            self.engine.fail(told)
        time.sleep(_GRACE_SECONDS)
        self._end(status)

    def _follow(self, error: BaseException) -> None:
        """Another rank failed and shows why; say so in a line and wait to be ended."""
        self._note(error)
        time.sleep(_FOLLOW_SECONDS)
        self._end(1)

    def _let_lower_ranks_show_it(self, error: BaseException) -> None:
        """Several ranks find the same thing at once, and one traceback will do.

        All ranks run the same script and so its bugs; a deadline or a disagreement is also found by
        several. Rank 0 shows it and ends the job before the others' time has come. Of a failed
        collective, which rank 0 may have no part in, the lowest rank does.
        """
        if self.rank == 0:
            return
        if isinstance(error, CollectiveError):
            self._note(error)
            time.sleep(min(self.rank * 2 * _GRACE_SECONDS, _FOLLOW_SECONDS))
        else:
            time.sleep(_GRACE_SECONDS + 0.1)

    def _note(self, error: BaseException) -> None:
        sys.stdout.flush()
        print(f"[rank{self.rank}]: stopped: {_first_line(error)}", file=sys.stderr, flush=True)

    def _end(self, status: int) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        with contextlib.suppress(Exception):
            self._abort(status)
        os._exit(status)


def told_by_another(error: BaseException, rank: int) -> bool:
    """Whether an error only says that another rank failed."""
    origin = re.match(r"rank (\d+) failed: ", str(error))
    return isinstance(error, CollectiveError) and origin is not None and int(origin[1]) != rank


class _Leaving(SystemExit):
    """What ``sys.exit`` raises in a guarded process: it tells its guard if nobody catches it.

    Python asks no hook about a ``SystemExit``, but drops it before the exit functions run, when no
    Python code is active any more. One that was caught is dropped by the code that caught it.
    """

    def __init__(self, status: Any, guard: Guard) -> None:
        super().__init__(status)
        self._guard = guard

    def __del__(self) -> None:
        if sys._getframe().f_back is None and self.code is not None:
            self._guard._status = self.code if isinstance(self.code, int) else 1


def _prefixed(prefix: str, text: str) -> str:
    return "\n".join(prefix + line if line else "" for line in text.rstrip("\n").split("\n"))


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).split("\n", 1)[0]


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {_first_line(error)}"[:1000]
