"""Rank 1 leaves out the backward of its second iteration, and never makes up for it."""

from datetime import timedelta

import minitorch as torch
import minitorch.distributed as dist
from minitorch.nn.parallel import DistributedDataParallel

dist.init_process_group(timeout=timedelta(seconds=5))
rank = dist.get_rank()
ddp = DistributedDataParallel(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = ddp(torch.full((1, 2), rank + 1.0)).sum()
    if rank == 1 and step == 1:
        continue
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
print(f"rank {rank} trained", flush=True)
