"""The one door to the compiled core, and the remedy when it is not there.

``import minitorch`` and ``import minitorch.distributed`` work without the extension; only *using*
communication needs it. Everything in this folder therefore asks :func:`core` instead of importing
``minitorch._core``.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

_module: ModuleType | None = None
_reason: ImportError | None = None
try:
    from minitorch import _core as _module
except ImportError as error:  # not built, or built for another Python
    _reason = error


def core() -> ModuleType:
    """Return ``minitorch._core``.

    Raises
    ------
    RuntimeError
        If the extension cannot be imported; the message says how to build it.
    """
    if _module is None:
        raise RuntimeError(
            "minitorch.distributed needs the compiled core, which could not be imported "
            f"({_reason}). Build it with `make build`, or `pip install -e .` from the project's "
            "root; "
            "`minitorch doctor` says more."
        ) from _reason
    return _module


def available() -> bool:
    """Whether the compiled core could be imported."""
    return _module is not None


# What a failed collective raises. Without the core nothing can raise them, and they stand for
# themselves, so that `except dist.CollectiveError` is always legal.
if TYPE_CHECKING or _module is None:

    class CollectiveError(RuntimeError):
        """A collective failed, here or on another rank."""

    class CollectiveMismatch(CollectiveError):
        """The ranks disagree on what a collective is."""

    class CollectiveTimeout(CollectiveError):
        """A rank did not come in time."""

else:
    CollectiveError = _module.CollectiveError
    CollectiveMismatch = _module.CollectiveMismatch
    CollectiveTimeout = _module.CollectiveTimeout
