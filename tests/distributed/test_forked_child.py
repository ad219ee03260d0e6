"""A child forked while engines run ends like any other process, and leaves the parent's alone."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from minitorch import _core

transports = _core.threads_world(2)
engines = [_core.Engine(transport) for transport in transports]
child = os.fork()
if child == 0:
    sys.exit(7)  # runs what is registered for the end of Python
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
print("parent goes on")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_ends():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "parent goes on\n"
