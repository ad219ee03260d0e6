"""How much errors say: ``MINITORCH_DISTRIBUTED_DEBUG=OFF|INFO|DETAIL``.

=======  =========================================================================================
OFF      errors name ranks, collectives, buckets and parameters, as at every level
INFO     also: the names of all parameters, and of those that no rank used, in
         ``DistributedDataParallel._get_ddp_logging_data``
DETAIL   also: where in the program each rank made the call, in errors about disagreement and
         lateness. Costs a few microseconds per call for looking at the stack
=======  =========================================================================================

PyTorch's errors name parameters from INFO on, and it compares what the ranks run at DETAIL only;
here neither depends on a level. ``TORCH_DISTRIBUTED_DEBUG`` is read where ours is not set.
"""

from __future__ import annotations

import enum
import os
import sys
from pathlib import Path

_VARIABLES = ("MINITORCH_DISTRIBUTED_DEBUG", "TORCH_DISTRIBUTED_DEBUG")
_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_FRAMES = 3  # of the caller's, innermost first


class DebugLevel(enum.IntEnum):
    """PyTorch's ``torch.distributed.DebugLevel``."""

    OFF = 0
    INFO = 1
    DETAIL = 2


class _Setting:
    """The level of this process, for all its ranks."""

    level = DebugLevel.OFF
    detail = False  # what every collective looks at


setting = _Setting()


def get_debug_level() -> DebugLevel:
    """Return the level in force."""
    return setting.level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level for this process; the same on all ranks is wise, but not required."""
    setting.level = DebugLevel(level)
    setting.detail = setting.level is DebugLevel.DETAIL


def set_debug_level_from_env() -> None:
    """Set the level that the environment names; OFF if it names none.

    Raises
    ------
    RuntimeError
        If it names something else.
    """
    for variable in _VARIABLES:
        if text := os.environ.get(variable, "").strip():
            if text.upper() not in DebugLevel.__members__:
                raise RuntimeError(
                    f"The value of {variable} must be OFF, INFO, or DETAIL, not {text!r}."
                )
            set_debug_level(DebugLevel[text.upper()])
            return
    set_debug_level(DebugLevel.OFF)


def with_origin(label: str = "") -> str:
    """Add to a collective's label where the program called it: what the core takes after a line
    break.
    """
    lines: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and len(lines) < _FRAMES:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            lines.append(f"{code.co_filename}:{frame.f_lineno} ({code.co_name})")
        frame = frame.f_back  # type: ignore[assignment]
    return label + "\n" + " < ".join(lines)


set_debug_level_from_env()
