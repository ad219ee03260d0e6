"""Activation checkpointing in a network whose graph never changes: static_graph=True."""

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)


class Encoder(nn.Module):
    def __init__(self, width=8, depth=3, classes=3, mode="none", share=False):
        super().__init__()
        self.mode = mode
        self.embed = nn.Linear(4, width)
        if share:  # one block, used several times
            self.blocks = nn.ModuleList([Block(width)])
            self.order = [0] * depth
        else:
            self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
            self.order = list(range(depth))
        self.classify = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x)
        for index in self.order:
            block = self.blocks[index]
            if self.mode == "none":
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.mode == "reentrant")
        return self.classify(x.mean(dim=1))


def train(rank, world, mode, share, steps=4):
    torch.manual_seed(21)
    model = DDP(Encoder(mode=mode, share=share).double(), static_graph=True, bucket_cap_mb=0.002)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss()
    g = torch.Generator().manual_seed(2)
    history = []
    for _ in range(steps):
        data = torch.rand(4 * world, 5, 4, generator=g, dtype=torch.float64)
        label = torch.randint(3, (4 * world,), generator=g)
        lo, hi = 4 * rank, 4 * (rank + 1)
        optimizer.zero_grad()
        loss = criterion(model(data[lo:hi]), label[lo:hi])
        loss.backward()
        squared = sum(p.grad.pow(2).sum() for p in model.parameters())
        optimizer.step()
        history.append((loss.item(), squared.sqrt().item()))
    return model, history


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    reference = {}
    for share in (False, True):
        for mode in ("none", "reentrant", "non-reentrant"):
            model, history = train(rank, world, mode, share)
            reference.setdefault(share, history)
            same = torch.allclose(
                torch.tensor(history, dtype=torch.float64),
                torch.tensor(reference[share], dtype=torch.float64),
            )
            if rank == 0:
                print(f"shared={share} checkpoint={mode}: equal to no checkpoint: {same}")
                if mode == "none":
                    for step, (loss, norm) in enumerate(history):
                        print(f"  step {step} loss {loss:.12f} norm {norm:.12f}")
                count = sum(p.numel() for p in model.parameters())
                total = sum(p.sum().item() for p in model.parameters())
                print(f"  {count} parameters, sum {total:.10f}")

    stack = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
    model = DDP(Segments(stack.double()), static_graph=True)
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(2, 6) * (rank + 1)
    for _ in range(2):
        model.zero_grad()
        model(x.requires_grad_()).sum().backward()
    if rank == 0:
        print([f"{p.grad.norm().item():.10f}" for p in model.parameters() if p.dim() == 2])
    dist.destroy_process_group()


class Segments(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return checkpoint_sequential(self.layers, 2, x, use_reentrant=False)


if __name__ == "__main__":
    main()
