"""What all tests share: how many ranks, and an interpreter that is left as it was found."""

from __future__ import annotations

import signal
import sys

import pytest


def pytest_configure() -> None:
    # A shell starts what it puts into the background with Ctrl-C ignored, and every program that
    # a test starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=[1, 2, 3, 4])
def world_size(request: pytest.FixtureRequest) -> int:
    """The number of ranks: one, two (where both neighbours in the ring are the same), odd, even."""
    return request.param


@pytest.fixture(autouse=True)
def _switch_interval_is_restored():
    """`run_local` shortens the interpreter's switch interval; no test may leave it so."""
    before = sys.getswitchinterval()
    yield
    assert sys.getswitchinterval() == before
