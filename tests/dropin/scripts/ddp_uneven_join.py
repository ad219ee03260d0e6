"""Ranks with different numbers of batches: the join context manager in its four forms."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

FEATURES = 6


def batches(rank, world):
    """Rank r has 3 + 2r batches; batch i of a rank is the same in every run."""
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(3 + 2 * rank):
        x = torch.randn(4, FEATURES, generator=generator, dtype=torch.float64)
        yield x, x.sum(dim=1, keepdim=True).sin()


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 1))
    return DDP(model.double())


def report(title, model, seen, rank, world):
    summary = [None] * world
    weight = model.module[0].weight.detach()
    mean = model.module[1].running_mean
    dist.all_gather_object(summary, (seen, weight.sum().item(), mean.sum().item()))
    if rank == 0:
        print(title)
        for r, (steps, weights, means) in enumerate(summary):
            print(f"  rank {r}: {steps} steps, weights {weights:.12f}, means {means:.12f}")


def train(context, model, optimizer, rank, world):
    seen = 0
    with context:
        for x, y in batches(rank, world):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            seen += 1
    return seen


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    for divide in (True, False):
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        context = model.join(divide_by_initial_world_size=divide)
        seen = train(context, model, optimizer, rank, world)
        report(f"join, divide by initial world size {divide}", model, seen, rank, world)

    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    seen = train(Join([model]), model, optimizer, rank, world)
    report("Join([model])", model, seen, rank, world)

    # All stop as soon as one has run out.
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    seen, message = 0, None
    try:
        with model.join(throw_on_early_termination=True):
            for x, y in batches(rank, world):
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
                seen += 1
    except RuntimeError as error:
        message = str(error)
    messages = [None] * world
    dist.all_gather_object(messages, (seen, message))
    if rank == 0:
        for steps, text in messages:
            print(f"after {steps} steps: {text}")

    # Accumulating, with the smaller count padded by hand: join may be switched off.
    model = build()
    with model.join(enable=False):
        inputs = list(batches(rank, world))[:3]
        for i, (x, y) in enumerate(inputs):
            if i < 2:
                with model.no_sync():
                    nn.functional.mse_loss(model(x), y).backward()
            else:
                nn.functional.mse_loss(model(x), y).backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    if rank == 0:
        print(f"not joining, three batches accumulated: gradient norm {norm.item():.12f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
