"""Programs of the tutorials become importable, as they are for a script that lies beside them."""

from __future__ import annotations

import sys

import pytest
from trainer_programs import FOLDER

REPRODUCE = FOLDER.parent / "reproduce"


def importable(*folders):
    """Put folders on the path for as long as the fixture that yields from this lives."""
    names = [str(folder) for folder in folders]
    sys.path[:0] = names
    yield
    for name in names:
        sys.path.remove(name)


@pytest.fixture(scope="module", autouse=True)
def trainers():
    """The trainers, and `common`."""
    yield from importable(FOLDER)


@pytest.fixture(scope="module")
def programs():
    """The comparison of many runs, and its rooms."""
    yield from importable(REPRODUCE, REPRODUCE / "study")
