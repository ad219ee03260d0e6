"""DDP between processes: equal to one process on the whole batch, the same bits on all ranks."""

import numpy as np

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn.parallel import DistributedDataParallel

ROWS, STEPS = 24, 4


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3)
    )


def train(model, rows, dtype):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        rng = np.random.default_rng(step)
        x = torch.from_numpy(rng.standard_normal((ROWS, 6))).to(dtype)
        y = torch.from_numpy(rng.standard_normal((ROWS, 3))).to(dtype)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


dist.init_process_group()
rank, world = dist.get_rank(), dist.get_world_size()
for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
    alone = train(network(0).to(dtype), slice(None), dtype)
    for view in (False, True):
        ddp = DistributedDataParallel(
            network(rank).to(dtype), bucket_cap_mb=0.005, gradient_as_bucket_view=view
        )
        together = train(ddp, slice(rank, None, world), dtype)
        np.testing.assert_allclose(together.numpy(), alone.numpy(), rtol=tolerance, atol=tolerance)
        reference = together.clone()
        dist.broadcast(reference, src=0)
        assert torch.equal(reference, together)
        assert ddp._get_ddp_logging_data()["num_buckets_reduced"] >= 2

if world > 1:
    refusal = ""
    try:
        DistributedDataParallel(nn.Linear(3, 3 if rank == 0 else 4))
    except RuntimeError as error:
        refusal = str(error)
    assert "appears not to match sizes of the same param in process 0" in refusal
dist.barrier()
print(f"rank {rank} of {world} done", flush=True)
dist.destroy_process_group()
