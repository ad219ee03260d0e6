"""Mixed precision on the CPU: autocast around the forward, and a GradScaler for float16."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 12)  # over the last axis of (batch, 2, 8)
        self.fc1 = nn.Linear(24, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.mix(x)).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


def data(rank, steps):
    """Multiples of 1/4: exact in eight bits of mantissa."""
    g = torch.Generator().manual_seed(60 + rank)
    for _ in range(steps):
        x = torch.randint(-8, 9, (6, 2, 8), generator=g).float() / 4
        yield x, torch.randint(0, 4, (6,), generator=g)


def bfloat16(rank, world):
    torch.manual_seed(19)
    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, (x, y) in enumerate(data(rank, 3)):
        optimizer.zero_grad(set_to_none=True)
        with autocast("cpu", dtype=torch.bfloat16):
            logits = model(x)
            loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        everyone = [torch.zeros(()) for _ in range(world)]
        dist.all_gather(everyone, loss.detach())
        if rank == 0:
            print(f"bfloat16 {step}", *(f"{v.item():.9f}" for v in everyone))
    if rank == 0:
        print(logits.dtype, loss.dtype, sorted({str(p.dtype) for p in model.parameters()}))
        print({str(p.grad.dtype) for p in model.parameters()}, torch.get_autocast_dtype("cpu"))
    return model


def float16(rank, world):
    torch.manual_seed(19)
    model = DDP(Net(), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    for step, (x, y) in enumerate(data(rank, 4)):
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        if step == 2 and rank == 1:
            loss = loss * float("inf")  # one rank overflows: averaging tells all of them
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        before = model.module.fc2.weight.detach().clone()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        skipped = [None] * world
        dist.all_gather_object(skipped, torch.equal(before, model.module.fc2.weight))
        if rank == 0:
            print(f"float16 {step} scale {scaler.get_scale()} skipped {skipped}")
    return model, scaler


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = bfloat16(rank, world)
    other, scaler = float16(rank, world)
    for name, net in (("bfloat16", model), ("float16", other)):
        flat = torch.cat([p.detach().flatten() for p in net.parameters()])
        rows = [torch.zeros_like(flat) for _ in range(world)]
        dist.all_gather(rows, flat)
        if rank == 0:
            print(name, "ranks agree:", torch.equal(*rows), f"{flat.double().norm().item():.9f}")
    model.eval()
    with torch.no_grad():
        x = torch.ones(2, 2, 8)
        full = model.module(x)
        with autocast("cpu", dtype=torch.bfloat16):
            low = model.module(x)
        with autocast("cpu", enabled=False):
            off = model.module(x)
    if rank == 0:
        print(full.dtype, low.dtype, torch.equal(full, off))
        print("close:", torch.allclose(full, low.float(), atol=0.05))
        print(sorted(scaler.state_dict()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
