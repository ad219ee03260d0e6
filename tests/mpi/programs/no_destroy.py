"""Ends without destroy_process_group, with a work that nobody waited for and unflushed output."""

import minitorch as torch
import minitorch.distributed as dist

dist.init_process_group()
t = torch.ones(100_000)
dist.all_reduce(t)
assert t[0].item() == dist.get_world_size()
dropped = dist.all_reduce(torch.ones(100_000), async_op=True)
print(f"rank {dist.get_rank()} done")
