"""Several outputs and several losses: a multi-task model, and two adversaries in turn."""

from collections import namedtuple
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TaskOutput:
    regression: torch.Tensor
    logits: torch.Tensor
    hidden: torch.Tensor


Latent = namedtuple("Latent", ["mean", "log_variance"])


class MultiTask(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, width), nn.ELU())
        self.regress = nn.Linear(width, 1)
        self.classify = nn.Linear(width, 3)
        self.encode = nn.Linear(width, 4)
        self.decode = nn.Linear(2, 6)
        self.log_weights = nn.Parameter(torch.zeros(3))

    def forward(self, x, noise):
        h = self.trunk(x)
        latent = Latent(*self.encode(h).chunk(2, dim=-1))
        z = latent.mean + noise * (0.5 * latent.log_variance).exp()
        tasks = TaskOutput(self.regress(h).squeeze(-1), self.classify(h), h.detach())
        return {"tasks": tasks, "latent": latent, "images": [self.decode(z)], "note": "kept"}

    def combine(self, losses):
        return (losses * torch.exp(-self.log_weights) + self.log_weights).sum()


class WithLoss(nn.Module):
    """The loss inside forward, so that its parameters are part of the wrapped module's graph."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, noise, value, label):
        out = self.model(x, noise)
        mean, log_variance = out["latent"]
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()
        losses = torch.stack(
            [
                F.smooth_l1_loss(out["tasks"].regression, value),
                F.cross_entropy(out["tasks"].logits, label),
                F.mse_loss(out["images"][0], x) + 0.1 * divergence,
            ]
        )
        return self.model.combine(losses), losses.detach(), out


def multi_task(rank, world):
    torch.manual_seed(13)
    ddp = DDP(WithLoss(MultiTask().double()))
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.02)
    g = torch.Generator().manual_seed(rank + 1)
    for step in range(4):
        x = torch.randn(10, 6, generator=g, dtype=torch.float64)
        noise = torch.randn(10, 2, generator=g, dtype=torch.float64)
        label = x[:, :3].argmax(dim=1)
        optimizer.zero_grad()
        total, losses, out = ddp(x, noise, value=x.prod(dim=1), label=label)
        total.backward()
        optimizer.step()
        dist.all_reduce(losses)
        if rank == 0:
            print(f"step {step}", *(f"{v:.11f}" for v in (losses / world).tolist()))
    if rank == 0:
        print("weights", *(f"{v:.11f}" for v in ddp.module.model.log_weights.tolist()))
        print(out["note"], type(out["latent"]).__name__, type(out["tasks"]).__name__)
        print(out["tasks"].hidden.requires_grad, out["tasks"].logits.requires_grad, len(out))


def adversaries(rank, world):
    torch.manual_seed(4)
    generator = DDP(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).double())
    critic = DDP(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).double())
    g_step = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.999))
    c_step = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.5, 0.999))
    loss = nn.BCEWithLogitsLoss()
    draws = torch.Generator().manual_seed(50 + rank)
    for step in range(4):
        real = torch.randn(6, 2, generator=draws, dtype=torch.float64) * 0.5 + 2
        noise = torch.randn(6, 2, generator=draws, dtype=torch.float64)
        ones, zeros = torch.ones(6, 1).double(), torch.zeros(6, 1).double()
        fake = generator(noise)

        critic.requires_grad_(True)
        c_step.zero_grad()
        c_loss = loss(critic(torch.cat([real, fake.detach()])), torch.cat([ones, zeros]))
        c_loss.backward()
        c_step.step()

        # The critic only passes gradients on: its inner module, without its reducer.
        critic.requires_grad_(False)
        g_step.zero_grad()
        g_loss = loss(critic.module(fake), ones)
        g_loss.backward()
        g_step.step()
        figures = torch.stack([c_loss.detach(), g_loss.detach()])
        dist.all_reduce(figures)
        if rank == 0:
            print(f"adversaries {step}", *(f"{v / world:.11f}" for v in figures.tolist()))
    if rank == 0:
        for name, net in (("generator", generator), ("critic", critic)):
            print(name, f"{sum(p.detach().pow(2).sum().item() for p in net.parameters()):.11f}")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    multi_task(rank, world)
    adversaries(rank, world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
