"""Communication hooks: the built-in ones, one with a continuation, and one that sends nothing."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP


class Traffic:
    """A hook's state: counts what goes over the wire."""

    def __init__(self, group):
        self.group = group
        self.sizes = []
        self.last = []


def clipped_mean(state: Traffic, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """All-reduce, and limit the average's magnitude in a continuation."""
    state.sizes.append(bucket.buffer().numel())
    state.last.append(bucket.is_last())
    work = dist.all_reduce(bucket.buffer(), group=state.group, async_op=True)
    count = dist.get_world_size(state.group)

    def limit(future):
        return future.value()[0].div_(count).clamp_(-0.02, 0.02)

    return work.get_future().then(limit)


def signs(state, bucket):
    """Majority vote of the signs: two ranks that disagree give 0."""
    tensor = bucket.buffer().sign()
    future = dist.all_reduce(tensor, group=state, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].sign() * 1e-2)


def silent(state, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def network():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
    return DDP(net.double(), bucket_cap_mb=0.001)


def train(rank, world, state, hook, steps=3):
    model = network()
    if hook is not None:
        model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    generator = torch.Generator().manual_seed(77)
    losses = []
    for _ in range(steps):
        x = torch.randn(6 * world, 7, generator=generator, dtype=torch.float64)
        y = torch.randint(0, 3, (6 * world,), generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rank::world]), y[rank::world])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    traffic = Traffic(dist.group.WORLD)
    runs = [
        ("none", None, None),
        ("allreduce_hook", None, default_hooks.allreduce_hook),
        ("fp16_compress_hook", None, default_hooks.fp16_compress_hook),
        (
            "fp16_compress_wrapper",
            dist.group.WORLD,
            default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
        ),
        ("clipped_mean", traffic, clipped_mean),
        ("signs", dist.group.WORLD, signs),
        ("silent", None, silent),
        ("noop_hook", None, debugging_hooks.noop_hook),
    ]
    for name, state, hook in runs:
        model, losses = train(rank, world, state, hook)
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        everyone = [torch.zeros_like(flat) for _ in range(world)]
        dist.all_gather(everyone, flat)
        if rank == 0:
            agree = all(torch.equal(everyone[0], other) for other in everyone)
            print(f"{name}: ranks agree {agree}, |w| {flat.norm().item():.10f}")
            print("  losses " + " ".join(f"{loss:.10f}" for loss in losses))
    if rank == 0:
        # Within a layer the order in which weight and bias become ready is the engine's own.
        print("first step", traffic.sizes[:1], traffic.last[:1])
        print("per step", sum(traffic.sizes[1:]) // 2, "elements", sum(traffic.last))
    try:
        model.register_comm_hook(None, silent)
    except RuntimeError as error:
        if rank == 0:
            print("twice:", error)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
