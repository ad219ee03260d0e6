"""A network that routes each batch through one of several experts: find_unused_parameters."""

import os
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))


class Routed(nn.Module):
    def __init__(self, width=8, experts=3, classes=4):
        super().__init__()
        self.stem = nn.Linear(5, width)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))
        self.head = nn.Linear(width, classes)
        self.auxiliary = nn.Linear(width, 1)  # used during the warm-up only

    def forward(self, x, route, warm_up=False):
        hidden = F.relu(self.stem(x))
        if route is not None:
            hidden = self.experts[route](hidden)
        out = {"logits": self.head(hidden)}
        if warm_up:
            out["value"] = self.auxiliary(hidden)
        return out


def gradients(model):
    """Which top-level parts got a gradient."""
    parts = {}
    for name, parameter in model.module.named_parameters():
        part = ".".join(name.split(".")[:2]) if name.startswith("experts") else name.split(".")[0]
        parts[part] = parts.get(part, False) or parameter.grad is not None
    return [part for part, got in parts.items() if got]


def main():
    dist.init_process_group(backend="gloo")
    rank = int(os.environ.get("RANK", dist.get_rank()))
    world = dist.get_world_size()
    torch.manual_seed(3)
    ddp_model = DDP(Routed().double(), find_unused_parameters=True)
    optimizer = optim.Adam(ddp_model.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(9)
    for step in range(6):
        x = torch.randn(8, 5, generator=generator, dtype=torch.float64)
        target = torch.randint(0, 4, (8,), generator=generator)
        # Expert 2 is only ever chosen on rank 1; in step 4 both ranks skip the experts.
        route = None if step == 4 else (0 if step % 2 == 0 else rank + 1)
        optimizer.zero_grad(set_to_none=True)
        out = ddp_model(x[rank::world], route, warm_up=step < 2)
        loss = F.cross_entropy(out["logits"], target[rank::world])
        if "value" in out:
            loss = loss + 0.1 * out["value"].pow(2).mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(ddp_model.parameters(), max_norm=10.0)
        optimizer.step()
        losses = [torch.zeros_like(loss) for _ in range(world)]
        dist.all_gather(losses, loss.detach())
        if rank == 0:
            values = " ".join(f"{value.item():.10f}" for value in losses)
            print(f"step {step}: losses {values} norm {norm.item():.10f} {gradients(ddp_model)}")

    # Outputs that are left out of the loss leave no gradient either.
    optimizer.zero_grad(set_to_none=True)
    out = ddp_model(x[rank::world], 0, warm_up=True)
    out["value"].mean().backward()
    if rank == 0:
        print("only the auxiliary output:", gradients(ddp_model))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = DDP(nn.Linear(5, 2).double(), find_unused_parameters=True)
        plain(x[rank::world]).sum().backward()
    state = {k: v.shape for k, v in ddp_model.module.state_dict().items()}
    if rank == 0:
        print(len(state), "entries, e.g.", list(state.items())[2])
        print(plain.module.bias.grad)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
