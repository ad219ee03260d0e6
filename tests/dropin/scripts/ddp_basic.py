"""DistributedDataParallel with a DistributedSampler, as in countless scripts; 2 processes."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # different on purpose: DDP starts from rank 0's weights
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2)))
    generator = torch.Generator().manual_seed(42)
    data = torch.randn(50, 6, generator=generator)
    target = (data.sum(dim=1) > 0).long()
    dataset = TensorDataset(data, target)
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / len(loader) / world:.9f}")

    with model.no_sync():
        nn.functional.cross_entropy(model(data[rank::world]), target[rank::world]).backward()
    local = model.module[0].weight.grad.clone()
    gathered = [torch.zeros_like(local) for _ in range(world)]
    dist.all_gather(gathered, local)
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank, "samples": len(sampler)})
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    other = weights.clone()
    dist.broadcast(other, src=0)
    if rank == 0:
        print("different local gradients:", not torch.equal(gathered[0], gathered[1]))
        print(objects)
        print(sorted(model.state_dict())[0], f"{weights.sum().item():.9f}")
    assert torch.equal(weights, other)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
