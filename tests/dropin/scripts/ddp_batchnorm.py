"""Batch norm in data parallel training: whose running statistics, when, and in evaluation."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1, bias=False),
            nn.BatchNorm2d(6, momentum=0.2),
            nn.LeakyReLU(0.1),
            nn.AvgPool2d(2),
            nn.Conv2d(6, 6, 3, padding=1, groups=2, bias=False),
            nn.BatchNorm2d(6, momentum=None),
            nn.ReLU(inplace=True),
        )
        self.fc = nn.Linear(6, 2)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.ones(2, dtype=torch.float64))

    def forward(self, x):
        if self.training:
            self.seen += x.size(0)
        x = self.features(x)
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)) * self.scale


def everyone(value):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def statistics(ddp):
    first, second = ddp.module.features[1], ddp.module.features[5]
    return (
        first.running_mean.sum().item(),
        second.running_var.sum().item(),
        first.num_batches_tracked.item(),
        ddp.module.seen.item(),
    )


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for broadcast in (True, False):
        torch.manual_seed(8)
        ddp = DDP(ConvNet().double(), broadcast_buffers=broadcast)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
        generator = torch.Generator().manual_seed(rank)  # every rank draws its own data
        for step in range(3):
            x = torch.randn(5, 2, 6, 6, generator=generator, dtype=torch.float64) + rank
            y = torch.randint(0, 2, (5,), generator=generator)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(ddp(x), y)
            loss.backward()
            optimizer.step()
            lines = everyone((loss.item(), *statistics(ddp)))
            if rank == 0:
                for r, (value, mean, var, batches, seen) in enumerate(lines):
                    print(
                        f"broadcast={broadcast} step {step} rank {r} loss {value:.10f} "
                        f"mean {mean:.10f} var {var:.10f} batches {batches} seen {seen}"
                    )

        # The ranks differ after a forward. Evaluate rank 0's model everywhere, without DDP.
        for buffer in ddp.module.buffers():
            dist.broadcast(buffer, src=0)
        ddp.eval()
        with torch.no_grad():
            x = torch.linspace(-1, 1, 4 * 72, dtype=torch.float64).reshape(4, 2, 6, 6)
            probabilities = ddp.module(x).softmax(dim=1)[:, 1]
        values = everyone([f"{p:.10f}" for p in probabilities.tolist()])
        if rank == 0:
            print("evaluation agrees:", values[0] == values[1], *values[0])

    # Statistics frozen for fine-tuning: batch norm in eval mode inside a training model.
    ddp.train()
    for module in ddp.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    before = statistics(ddp)
    optimizer.zero_grad()
    ddp(x * (rank + 1)).pow(2).mean().backward()
    after = statistics(ddp)
    if rank == 0:
        print("frozen:", before[:3] == after[:3], after[3] - before[3])
        for name, parameter in ddp.named_parameters():
            print(f"{name} {parameter.grad.norm().item():.10f}")
        print([(name, tuple(b.shape), str(b.dtype)) for name, b in ddp.named_buffers()][-3:])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
