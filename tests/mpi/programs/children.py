"""Child processes of a rank: one imports minitorch, one is forked; neither may touch the job."""

import os
import subprocess
import sys

import minitorch as torch
import minitorch.distributed as dist

HYGIENE = """
import sys
import minitorch, minitorch.distributed
assert "mpi4py" not in sys.modules and "minitorch._mpi" not in sys.modules
try:
    minitorch.distributed.init_process_group()
except RuntimeError as error:
    assert "is a child of process" in str(error), error
    print("refused", flush=True)
"""

dist.init_process_group()
t = torch.ones(3)
dist.all_reduce(t)
child = subprocess.run(
    [sys.executable, "-c", HYGIENE], capture_output=True, text=True, timeout=50, check=False
)
assert child.stdout.strip() == "refused", child.stderr

pid = os.fork()
if pid == 0:
    try:
        dist.all_reduce(t)
    except ValueError as error:
        os._exit(0 if "forked from a rank" in str(error) and dist.get_rank() >= 0 else 1)
    os._exit(2)
assert os.waitpid(pid, 0)[1] == 0
pid = os.fork()
if pid == 0:
    sys.exit(0)  # runs the exit functions in the child
assert os.waitpid(pid, 0)[1] == 0
dist.all_reduce(t)
print(f"rank {dist.get_rank()} fine", flush=True)
