"""``run_local``: the ranks of a world as threads of this process.

Notebooks, tests and ``--threads N`` use it: no MPI, one debugger, and every collective, DDP and
method works as between processes, since the threads pass messages and share no tensors. It is for
looking and testing and not for speed: the ranks share one interpreter, so that Python code of
different ranks takes turns.

What is global in a process of PyTorch is each rank's own here: default group, generator (unseeded,
as in a fresh process), grad mode, default dtype.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from ._link import Link, chosen_link
from ._native import core
from ._rank_state import RankState, inherit
from .world import settle_with

# Python threads take turns at this interval while ranks run: at the default of 5 ms each message
# would cost that much.
SWITCH_SECONDS = 1e-4
# After a failure: how long the other ranks may take to notice by themselves, and then to obey.
_NOTICE_SECONDS = 1.0
_OBEY_SECONDS = 0.5
_DEFAULT_TIMEOUT = timedelta(minutes=5)


class RankStopped(BaseException):
    """Raised inside a rank of ``run_local`` that is to end because another one failed, or the user
    interrupted.
    """


class _LocalWorld:
    """Engines for all ranks; a fresh set whenever the script has destroyed its world and starts
    another.
    """

    def __init__(self, size: int, link: Link | None) -> None:
        self.size = size
        self._link = link
        self._lock = threading.Lock()
        self._generations: list[list[Any]] = []

    def engine(self, rank: int, generation: int) -> Any:
        native = core()
        with self._lock:
            while len(self._generations) <= generation:
                transports = native.threads_world(self.size)
                if self._link is not None:
                    rate, latency = self._link.bytes_per_second, self._link.latency
                    transports = [
                        native.shaped_link(transport, rate, latency) for transport in transports
                    ]
                self._generations.append([native.Engine(transport) for transport in transports])
            return self._generations[generation][rank]

    def fail(self, rank: int, message: str) -> None:
        with self._lock:
            for engines in self._generations:
                engines[rank].fail(message)

    def shutdown(self) -> None:
        with self._lock:
            for engines in self._generations:
                for engine in engines:
                    engine.shutdown()
            self._generations.clear()


class _Seat:
    """One rank's place (see ``_rank_state.Seat``)."""

    def __init__(self, world: _LocalWorld, rank: int) -> None:
        self.rank = rank
        self.world_size = world.size
        self._world = world
        self._started = 0

    def start(self) -> Any:
        engine = self._world.engine(self.rank, self._started)
        self._started += 1
        return engine


class _Run:
    """What the rank threads and the thread that waits for them share."""

    def __init__(self, world: _LocalWorld, timeout: timedelta) -> None:
        self.world = world
        self.timeout = timeout
        self.results: list[Any] = [None] * world.size
        # In the order of time, so that the first is the cause of the others.
        self.failures: list[tuple[int, BaseException]] = []

    def rank_thread(self, rank: int, *task: Any) -> None:
        """What a rank's thread runs."""
        try:
            self.rank_main(rank, *task)
        except RankStopped:
            pass  # may arrive anywhere, also while another error is dealt with

    def rank_main(
        self, rank: int, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Run the user's function as a rank; keep its result, or what it raises."""
        seat = _Seat(self.world, rank)
        state = RankState(seat)
        inherit(state)
        try:
            settle_with(state, seat.start(), self.world.size, self.timeout, "threads")
            try:
                self.results[rank] = fn(rank, *args, **kwargs)
            except SystemExit as error:
                if error.code not in (None, 0):
                    raise
            if state.engine is not None:
                state.finish()
                state.engine.goodbye()
        except RankStopped:
            raise
        except BaseException as error:
            # Kept before the others are told: whatever they raise for it comes later in the list.
            self.failures.append((rank, error))
            self.world.fail(rank, f"{type(error).__name__}: {error}")


def run_local(
    fn: Callable[..., Any],
    world_size: int,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    link: str | Link | None = None,
    timeout: timedelta | float | None = None,
) -> list[Any]:
    """Run ``fn(rank, *args, **kwargs)`` on every rank of a world of threads.

    Inside, the default group is ready; a script's own ``init_process_group`` is accepted once.

    Parameters
    ----------
    fn : callable
        What each rank does.
    world_size : int
        How many ranks.
    args, kwargs
        Further arguments of ``fn``. All ranks get the same objects.
    link : str, optional
        An emulated wire between the ranks, such as ``"1Gbit/s,50us"``; by default
        ``MINITORCH_LINK``.
    timeout : datetime.timedelta or float, optional
        How long (seconds, if a number) a collective may take before it fails; by default 5 minutes.

    Returns
    -------
    list
        What ``fn`` returned, by rank.

    Raises
    ------
    Exception
        What the first rank that failed raised, with a note that names the rank. Ranks that failed
        only because of it are not shown.
    KeyboardInterrupt
        Within a second of Ctrl-C; the ranks are told to stop.

    Examples
    --------
    >>> import minitorch.distributed as dist
    >>> dist.run_local(lambda rank: dist.get_world_size() * 10 + rank, 3)
    [30, 31, 32]
    """
    size: Any = world_size
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"run_local: world_size must be a positive int, got {size!r}")
    run = _Run(_LocalWorld(world_size, chosen_link(link)), _limit(timeout))
    threads = [
        threading.Thread(
            target=run.rank_thread,
            args=(rank, fn, args, dict(kwargs or {})),
            name=f"rank {rank}",
            daemon=True,
        )
        for rank in range(world_size)
    ]
    with _short_switch_interval():
        try:
            for thread in threads:
                thread.start()
            stuck = _supervise(run, threads)
        except BaseException as error:
            _stop(run, threads, error)
            raise
    if not stuck:
        run.world.shutdown()
    if run.failures:
        _raise_first(run, stuck)
    return run.results


def _supervise(run: _Run, threads: list[threading.Thread]) -> list[threading.Thread]:
    """Wait for the ranks; return those that would not end after another one failed."""
    failed_at: float | None = None
    told = False
    while alive := [thread for thread in threads if thread.is_alive()]:
        # Short waits: Ctrl-C, or an exception sent to this thread, must get through.
        alive[0].join(0.05)
        if not run.failures:
            continue
        now = time.monotonic()
        failed_at = failed_at or now
        if now - failed_at > _NOTICE_SECONDS and not told:
            told = True
            for thread in alive:
                _raise_in(thread, RankStopped)
        if now - failed_at > _NOTICE_SECONDS + _OBEY_SECONDS:
            return [thread for thread in threads if thread.is_alive()]
    return []


def _raise_first(run: _Run, stuck: list[threading.Thread]) -> None:
    rank, error = run.failures[0]
    error.add_note(f"rank {rank}: raised on rank {rank} of {run.world.size} in run_local")
    for thread in stuck:
        error.add_note(
            f"{thread.name} did not stop and was left behind: it neither communicates nor returns"
        )
    try:
        raise error
    finally:
        # The traceback holds this frame, and this frame what holds the traceback.
        del error, run


def _stop(run: _Run, threads: list[threading.Thread], error: BaseException) -> None:
    """Make every rank end: those that wait raise, those that compute are interrupted."""
    for rank in range(run.world.size):
        run.world.fail(rank, f"run_local was interrupted ({type(error).__name__})")
    for send in (False, True):
        end = time.monotonic() + _OBEY_SECONDS / 2
        for thread in threads:
            if send and thread.is_alive():
                _raise_in(thread, RankStopped)
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
    if not any(thread.is_alive() for thread in threads):
        run.world.shutdown()


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    # Takes effect at the thread's next bytecode; a thread inside a long C call ends after it.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(kind)
    )


def _limit(timeout: timedelta | float | None) -> timedelta:
    if timeout is None:
        return _DEFAULT_TIMEOUT
    limit = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
    if limit <= timedelta(0):
        raise ValueError(f"run_local: timeout must be positive, got {timeout}")
    return limit


class _short_switch_interval:
    """Set the interpreter's switch interval while any ``run_local`` runs; the last one out restores
    it.
    """

    _lock = threading.Lock()
    _inside = 0
    _before = 0.0

    def __enter__(self) -> None:
        cls = type(self)
        with cls._lock:
            if cls._inside == 0:
                cls._before = sys.getswitchinterval()
                sys.setswitchinterval(min(cls._before, SWITCH_SECONDS))
            cls._inside += 1

    def __exit__(self, *exc: object) -> None:
        cls = type(self)
        with cls._lock:
            cls._inside -= 1
            if cls._inside == 0:
                sys.setswitchinterval(cls._before)
