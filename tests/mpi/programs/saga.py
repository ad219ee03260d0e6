"""Distributed SAGA between processes: equal to one process given the same samples."""

import numpy as np

import minitorch as torch
import minitorch.distributed as dist
from minitorch.distributed.saga import DistributedSAGA
from minitorch.optim.prox import L1

N, DIM, STEPS, LR = 23, 5, 60, 0.05

dist.init_process_group()
rank, world = dist.get_rank(), dist.get_world_size()
rng = np.random.default_rng(0)
x, y = rng.standard_normal((N, DIM)), rng.standard_normal(N)
edges = np.array([0, *(N * (r + 1) ** 2 // world**2 for r in range(world))])
sizes, prox = np.diff(edges), L1(0.02)
draws = rng.integers(sizes, size=(STEPS, world))

mine = slice(edges[rank], edges[rank + 1])
w = torch.full((DIM,), float(rank), dtype=torch.float64, requires_grad=True)
rows, targets = torch.from_numpy(x[mine]), torch.from_numpy(y[mine])


def closure(i):
    w.grad = None
    (0.5 * (rows[i] @ w - targets[i]) ** 2).backward()


opt = DistributedSAGA([w], int(sizes[rank]), lr=LR, prox=prox)
opt.init_table(closure)
for draw in draws:
    closure(int(draw[rank]))
    opt.step(int(draw[rank]))

alone = np.zeros(DIM)
table = (x @ alone - y)[:, None] * x
for draw in draws:
    j = edges[:-1] + draw
    fresh = (x[j] @ alone - y[j])[:, None] * x[j]
    direction = sizes / N @ (fresh - table[j]) + table.mean(0)
    table[j] = fresh
    alone = prox.prox(alone - LR * direction, LR)
np.testing.assert_allclose(w.detach().numpy(), alone, rtol=0, atol=1e-12)

there = [torch.zeros(DIM, dtype=torch.float64) for _ in range(world)]
dist.all_gather(there, w.detach())
assert all(torch.equal(other, w.detach()) for other in there), "not the same bits"
print(f"rank {rank} of {world} done", flush=True)
dist.destroy_process_group()
