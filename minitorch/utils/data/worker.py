"""Worker threads of a DataLoader.

PyTorch's workers are processes. Here they are threads: NumPy and file reading release the GIL, a
thread shares the data set instead of copying it, and a child process could not be started safely
under ``mpirun`` (one that imports mpi4py there dies or takes the job with it).

A worker takes ``(number, indices)`` from a queue of its own and puts ``(number, result)`` into one
that all share; it never waits for anything else, so that a ``None`` in its queue always ends it.
It must not refer to the iterator that feeds it: an abandoned iterator is collected, and its
finalizer sends the ``None``.
"""

from __future__ import annotations

import copy
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dtypes import get_default_dtype, set_default_dtype
from ...random.generator import manual_seed

__all__ = ["RESET", "Ended", "Failed", "WorkerInfo", "get_worker_info", "start_worker"]

#: Task number of a request to start over (a new epoch with persistent workers).
RESET = -1


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows about itself; see :func:`get_worker_info`.

    Attributes
    ----------
    id, num_workers : int
        Which of how many.
    seed : int
        What ``manual_seed`` was called with in this worker.
    dataset
        This worker's (shallow) copy of the data set.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here(threading.local):
    info: WorkerInfo | None = None


_here = _Here()


def get_worker_info() -> WorkerInfo | None:
    """The :class:`WorkerInfo` in a DataLoader worker, None elsewhere."""
    return _here.info


@dataclass(frozen=True)
class Failed:
    """A result: the exception that was raised instead, with its traceback."""

    error: BaseException


@dataclass(frozen=True)
class Ended:
    """A result: this worker's iterable data set has no more samples."""


def _own_copy(dataset: Any) -> Any:
    """A shallow copy, so that attributes set by one worker are not seen by the others."""
    try:
        return copy.copy(dataset)
    except Exception:
        return dataset  # something that refuses to be copied is shared


def _surroundings() -> Callable[[], None]:
    """A function that gives the thread calling it this thread's rank and default dtype."""
    default_dtype = get_default_dtype()
    # Looked up, not imported: without the distributed floor there is no rank to inherit.
    state_module = sys.modules.get("minitorch.distributed._rank_state")
    state = None if state_module is None else state_module.current()

    def inherit() -> None:
        set_default_dtype(default_dtype)
        if state_module is not None:
            state_module.inherit(state)

    return inherit


def start_worker(
    index: int,
    num_workers: int,
    dataset: Any,
    base_seed: int,
    worker_init_fn: Callable[[int], Any] | None,
    make_fetch: Callable[[Any], Callable[[Any], Any]],
    results: queue.SimpleQueue[Any],
) -> tuple[threading.Thread, queue.SimpleQueue[Any]]:
    """Start worker ``index``; return it and its queue of tasks."""
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    info = WorkerInfo(index, num_workers, (base_seed + index) % 2**64, _own_copy(dataset))
    thread = threading.Thread(
        target=_work,
        args=(info, worker_init_fn, make_fetch, tasks, results, _surroundings()),
        name=f"DataLoader worker {index}",
        daemon=True,
    )
    thread.start()
    return thread, tasks


def _work(
    info: WorkerInfo,
    worker_init_fn: Callable[[int], Any] | None,
    make_fetch: Callable[[Any], Callable[[Any], Any]],
    tasks: queue.SimpleQueue[Any],
    results: queue.SimpleQueue[Any],
    inherit: Callable[[], None],
) -> None:
    """The worker's life: set up once, then task after task until None."""
    inherit()
    _here.info = info
    # Only this thread's generator: Python's and NumPy's global ones belong to the main program.
    manual_seed(info.seed)
    broken: Failed | None = None
    ended = False
    fetch: Callable[[Any], Any] | None = None
    try:
        if worker_init_fn is not None:
            worker_init_fn(info.id)
    except Exception as error:
        broken = _failed(error, info)
    while (task := tasks.get()) is not None:
        number, indices = task
        if number == RESET:
            fetch = None
            continue
        if broken is not None:
            # Reported once, then forgotten: the exception's frames refer to the iterator, which
            # could not be collected while this thread holds them.
            results.put((number, info.id, broken))
            broken, ended = None, True
            continue
        if ended:
            results.put((number, info.id, Ended()))
            continue
        try:
            if fetch is None:
                fetch = make_fetch(info.dataset)
            result = fetch(indices)
        except StopIteration as error:
            result = (
                Ended() if getattr(fetch, "samples", None) is not None else _failed(error, info)
            )
        except Exception as error:
            result = _failed(error, info)
        results.put((number, info.id, result))
        # Neither hold a batch nor an exception's frames while waiting for the next task.
        del result, indices, task


def _failed(error: Exception, info: WorkerInfo) -> Failed:
    error.add_note(f"(raised in DataLoader worker thread {info.id})")
    return Failed(error)
