"""Replace a file in one step: readers see the old content or the new, never a part."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of ``path`` when the body succeeds.

    If the body raises, ``path`` is as it was and the temporary file is gone. What already exists
    and is no regular file (a pipe, a device) is written directly.

    Raises
    ------
    RuntimeError
        If the parent directory does not exist.
    """
    target = os.path.realpath(path)  # a symbolic link stays one
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path) or '.'} does not exist.")
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = 0o666 & ~_umask() | stat.S_IFREG
    if not stat.S_ISREG(mode):
        with open(target, "wb") as stream:
            yield stream
        return
    # In the same folder, since a move between file systems is not atomic.
    handle, temporary = tempfile.mkstemp(
        prefix=f".{os.path.basename(target)}.", suffix=".tmp", dir=folder
    )
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _umask() -> int:
    # The only portable way to ask is to set it.
    current = os.umask(0o077)
    os.umask(current)
    return current


def _sync_folder(folder: str) -> None:
    """Make the move itself durable, where the system lets a folder be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
