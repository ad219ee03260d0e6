"""A selection of collectives between processes; prints one line per rank."""

import numpy as np

import minitorch as torch
import minitorch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64):
    for elements in (0, 1, 7, 1031, 300_007):
        t = torch.full((elements,), rank + 1, dtype=dtype)
        dist.all_reduce(t)
        assert (t == size * (size + 1) // 2).all(), (dtype, elements)

t = torch.from_numpy(np.random.default_rng(rank).standard_normal(100_003).astype(np.float32))
dist.all_reduce(t, op=dist.ReduceOp.AVG)
copies = [torch.empty_like(t) for _ in range(size)]
dist.all_gather(copies, t)
assert all(copy.numpy().tobytes() == t.numpy().tobytes() for copy in copies)

for root in range(size):
    t = torch.full((1000,), float(rank))
    dist.broadcast(t, src=root)
    assert t[-1].item() == root
    t = torch.full((5000,), rank + 1.0)
    dist.reduce(t, dst=root)
    assert rank != root or t[-1].item() == size * (size + 1) / 2
    rows = [torch.zeros(3) for _ in range(size)] if rank == root else None
    dist.gather(torch.full((3,), float(rank)), rows, dst=root)
    assert rank != root or [row[0].item() for row in rows] == list(range(size))
    mine = torch.zeros(3)
    dist.scatter(mine, rows, src=root)
    assert mine[0].item() == rank

whole = torch.arange(float(size))
out = torch.zeros(1)
dist.reduce_scatter_tensor(out, whole)
assert out.item() == rank * size
out = torch.zeros(size)
dist.all_to_all_single(out, torch.full((size,), float(rank)))
assert out.tolist() == list(range(size))

works = [dist.all_reduce(torch.full((20_000,), float(n)), async_op=True) for n in range(10)]
for n, work in reversed(list(enumerate(works))):
    work.wait()
    assert work.result()[0][0].item() == n * size

objects = [None] * size
dist.all_gather_object(objects, {"rank": rank, "filler": "x" * rank * 1000})
assert [o["rank"] for o in objects] == list(range(size))

if size > 1:
    after, before = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(40_000)
    work = dist.irecv(got, src=before)
    dist.send(torch.full((40_000,), float(rank)), dst=after)
    work.wait()
    assert got[-1].item() == before
    group = dist.new_group(range(1, size))
    if rank:
        t = torch.ones(10)
        dist.all_reduce(t, group=group)
        assert t[0].item() == size - 1

dist.barrier()
dist.monitored_barrier()
print(f"rank {rank} of {size} done, {dist.get_backend()}", flush=True)
dist.destroy_process_group()

# And once more: a world can be left and joined again.
dist.init_process_group()
t = torch.ones(3)
dist.all_reduce(t)
assert t[0].item() == size
dist.destroy_process_group()
