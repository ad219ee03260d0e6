"""Gradient accumulation: micro-batches under no_sync, one all-reduce per optimizer step."""

import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--clip", type=float, default=0.5)
    return parser.parse_args([])


class Regressor(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, hidden)
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.body(x))).squeeze(-1)


def train(args, rank, world, **options):
    torch.manual_seed(11)
    model = DistributedDataParallel(Regressor(8, 24), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(args.steps, args.micro_batches, 6 * world, 8, generator=generator)
    y = x[..., 0] * x[..., 1] - x[..., 2]
    for step in range(args.steps):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        total = torch.zeros(())
        for micro in range(args.micro_batches):
            last = micro == args.micro_batches - 1
            context = contextlib.nullcontext() if last else model.no_sync()
            with context:
                prediction = model(x[step, micro, rank::world])
                loss = nn.functional.mse_loss(prediction, y[step, micro, rank::world])
                (loss / args.micro_batches).backward()
            total += loss.detach() / args.micro_batches
            if step == 0 and micro == 0:
                # Still this rank's own: nothing has been averaged.
                mine = model.module.out.weight.grad.clone()
                gathered = [torch.empty_like(mine) for _ in range(world)]
                dist.all_gather(gathered, mine)
                if rank == 0:
                    print("gradients differ under no_sync:", not torch.equal(*gathered))
        norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"step {step} loss {(total / world).item():.9f} gradient norm {norm:.9f}")
    return [p.detach().clone() for p in model.parameters()]


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    copies = train(args, rank, world)
    views = train(args, rank, world, gradient_as_bucket_view=True)
    small = train(args, rank, world, bucket_cap_mb=0.001)
    if rank == 0:
        print("views change nothing:", all(torch.equal(a, b) for a, b in zip(copies, views)))
        print("buckets change nothing:", all(torch.allclose(a, b) for a, b in zip(copies, small)))
        print("sum of weights", f"{sum(p.abs().sum() for p in copies).item():.9f}")
    flat = torch.cat([p.flatten() for p in copies])
    low, high = flat.clone(), flat.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    print_all = [None] * world
    dist.all_gather_object(print_all, torch.equal(low, high))
    if rank == 0:
        print("all ranks hold the same bits:", print_all)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
