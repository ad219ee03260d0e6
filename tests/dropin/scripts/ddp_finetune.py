"""Fine-tuning: a frozen backbone and a new head, then everything with two learning rates."""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import LambdaLR


class Backbone(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU()
        )


class Classifier(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.backbone(x).mean(dim=(2, 3)))


def images(count, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 3, (count,), generator=g)
    x = torch.rand(count, 1, 8, 8, generator=g, dtype=torch.float64)
    for i, y in enumerate(label.tolist()):  # the class is the bright band
        x[i, 0, 2 * y : 2 * y + 3] += 1.0
    return x, label


def set_requires_grad(module, flag):
    for parameter in module.parameters():
        parameter.requires_grad_(flag)


def fit(model, optimizer, x, y, steps, scheduler=None):
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        accuracy = (logits.argmax(1) == y).double().mean()
        figures = torch.stack([loss.detach(), accuracy])
        dist.all_reduce(figures)
        figures /= dist.get_world_size()
        if dist.get_rank() == 0:
            print(f"  loss {figures[0].item():.12f} accuracy {figures[1].item():.4f}")


def digest(module):
    return sum(p.detach().abs().sum().item() for p in module.parameters())


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y = images(24, seed=1)
    x, y = x[rank::world], y[rank::world]

    # "Pretraining" happens on rank 0 alone; DDP hands its weights to the others.
    torch.manual_seed(100 + rank)
    model = Classifier(Backbone(), classes=3).double()
    set_requires_grad(model.backbone, False)
    trainable = [n for n, p in model.named_parameters() if p.requires_grad]
    ddp = DDP(model)
    if rank == 0:
        print("head only:", trainable)
    before = digest(model.backbone)
    head_optimizer = torch.optim.RMSprop(
        filter(lambda p: p.requires_grad, ddp.parameters()), lr=0.05
    )
    fit(ddp, head_optimizer, x, y, steps=3)
    digests = [None] * world
    dist.all_gather_object(digests, (digest(model.backbone) == before, before))
    if rank == 0:
        print(
            "backbone untouched and the same everywhere:", digests[0] == digests[1], digests[0][0]
        )
        print("gradients of the backbone:", {p.grad for p in model.backbone.parameters()})

    # Unfreezing needs a new wrapper: the reducer manages what was trainable at its construction.
    set_requires_grad(model.backbone, True)
    del ddp
    ddp = DDP(model, bucket_cap_mb=1, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(
        [
            {"params": ddp.module.backbone.parameters(), "lr": 1e-3},
            {"params": ddp.module.head.parameters(), "lr": 1e-2, "weight_decay": 0.0},
        ]
    )
    scheduler = LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / 4)))
    if rank == 0:
        print("everything:", sum(p.numel() for p in ddp.parameters() if p.requires_grad))
    fit(ddp, optimizer, x, y, steps=4, scheduler=scheduler)
    if rank == 0:
        print("backbone moved:", digest(model.backbone) != before, scheduler.get_last_lr())
        print(f"{digest(model.backbone):.12f} {digest(model.head):.12f}")

    # A parameter that stays local to each rank.
    extra = Classifier(Backbone(), classes=3).double()
    DDP._set_params_and_buffers_to_ignore_for_model(extra, ["head.bias"])
    local = DDP(extra)
    (local(x).logsumexp(1).sum() * (rank + 1)).backward()
    gathered = [torch.zeros(3, dtype=torch.float64) for _ in range(world)]
    dist.all_gather(gathered, extra.head.bias.grad)
    if rank == 0:
        print("ignored parameter:", [round(g.sum().item(), 6) for g in gathered])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
