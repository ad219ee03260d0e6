"""A small language model whose output layer is its input embedding."""

import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

TEXT = (
    "the ring is as slow as its slowest link and the step is as slow as its slowest rank "
    "so put the links to work while the ranks still compute "
)


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width=12, context=8, layers=1):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(1, context, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                3,
                2 * width,
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.unembed = nn.Linear(width, vocabulary, bias=False)
        self.unembed.weight = self.token.weight  # tied
        mask = torch.full((context, context), float("-inf"), dtype=torch.float64).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.1)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids, targets=None):
        length = ids.size(1)
        x = self.token(ids) * math.sqrt(self.token.embedding_dim) + self.position[:, :length]
        for layer in self.layers:
            x = layer(x, src_mask=self.mask[:length, :length])
        logits = self.unembed(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def batches(ids, steps, size, length, rank, world):
    generator = torch.Generator().manual_seed(31)
    for _ in range(steps):
        starts = torch.randint(0, len(ids) - length - 1, (size * world,), generator=generator)
        rows = starts[rank::world]
        x = torch.stack([ids[i : i + length] for i in rows])
        y = torch.stack([ids[i + 1 : i + 1 + length] for i in rows])
        yield x, y


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    symbols = sorted(set(TEXT))
    index = {symbol: i for i, symbol in enumerate(symbols)}
    ids = torch.tensor([index[c] for c in TEXT])

    torch.manual_seed(rank)
    model = LanguageModel(len(symbols)).double()
    ddp = DDP(model, bucket_cap_mb=0.01, gradient_as_bucket_view=True)
    if rank == 0:
        print("parameters", sum(p.numel() for p in ddp.parameters()), "symbols", len(symbols))
        print("tied:", model.unembed.weight is model.token.weight)
        print(
            "in the state twice:",
            [k for k in ddp.state_dict() if k.endswith(("token.weight", "embed.weight"))],
        )
    no_decay = [p for p in ddp.parameters() if p.dim() == 1]
    decay = [p for p in ddp.parameters() if p.dim() > 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}],
        lr=1e-2,
        betas=(0.9, 0.95),
    )
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, total_iters=2)
    decline = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, decline], milestones=[2])
    for step, (x, y) in enumerate(batches(ids, 6, 4, 8, rank, world)):
        _, loss = ddp(x, targets=y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        rate = scheduler.get_last_lr()[0]
        optimizer.step()
        scheduler.step()
        mean = loss.detach().clone()
        dist.reduce(mean, dst=0)
        if rank == 0:
            mean = mean.item() / world
            print(
                f"step {step} loss {mean:.10f} perplexity {math.exp(mean):.9f} "
                f"norm {norm.item():.10f} lr {rate:.8f}"
            )

    model.eval()
    with torch.inference_mode():
        logits, none = model(ids[:8].unsqueeze(0))
    if rank == 0:
        print(none, logits.shape, f"{logits.logsumexp(-1).mean().item():.10f}")
        print("still tied:", torch.equal(model.unembed.weight, model.token.weight))
    sums = [torch.zeros(1, dtype=torch.float64) for _ in range(world)]
    dist.all_gather(sums, model.token.weight.detach().sum().reshape(1))
    if rank == 0:
        print("ranks agree:", len({s.item() for s in sums}) == 1, f"{sums[0].item():.10f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
