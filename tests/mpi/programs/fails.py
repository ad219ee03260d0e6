"""One rank fails in the way that the first argument names, while the others wait or compute."""

import os
import signal
import sys
import threading
import time
from datetime import timedelta

import minitorch as torch
import minitorch.distributed as dist

way, guilty = sys.argv[1], int(sys.argv[2])
dist.init_process_group(timeout=timedelta(seconds=2 if way == "late" else 30))
rank, size = dist.get_rank(), dist.get_world_size()
dist.barrier()

if rank == guilty:
    if way == "raise":
        raise ValueError("broken on purpose")
    if way == "thread":
        thread = threading.Thread(target=lambda: {}["nothing"], name="helper")
        thread.start()
        dist.recv(torch.ones(1))
    if way == "exit":
        sys.exit(7)
    if way == "systemexit":
        raise SystemExit(9)
    if way == "caught":
        # Not an end at all.
        try:
            sys.exit(5)
        except SystemExit:
            pass
    if way == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        dist.recv(torch.ones(1))
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "late":
        time.sleep(6)
    if way == "early":
        sys.exit(0)
    if way == "swallow":
        try:
            dist.all_reduce(torch.ones(5))
        except dist.CollectiveError:
            sys.exit(0)
elements = 4 if way in ("disagree", "swallow") and rank != guilty else 3
if rank == (guilty + 1) % size and way == "raise" and size > 2:
    time.sleep(20)  # computing, not communicating: it is ended all the same
t = torch.ones(elements)
dist.all_reduce(t)
print(f"rank {rank} survived", flush=True)
