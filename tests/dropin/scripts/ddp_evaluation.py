"""Metrics over a DistributedSampler: its padding counts twice unless one takes it out again."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def dataset(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=g, dtype=torch.float64)
    y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0.8).long()
    return TensorDataset(x, y, torch.arange(count))


def all_reduced(*values):
    t = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    return t.tolist()


@torch.no_grad()
def evaluate(model, loader):
    """Predictions, targets and sample numbers of this rank's share."""
    model.eval()
    parts = [(model(x).argmax(dim=1), y, i) for x, y, i in loader]
    if not parts:
        return [torch.zeros(0, dtype=torch.int64)] * 3
    return [torch.cat(column) for column in zip(*parts)]


def gather_uneven(tensor, world):
    """All ranks' values, of different lengths, by padding to the longest."""
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world)]
    dist.all_gather(lengths, torch.tensor([len(tensor)]))
    longest = max(int(n) for n in lengths)
    padded = torch.full((longest,), -1, dtype=tensor.dtype)
    padded[: len(tensor)] = tensor
    rows = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(rows, padded)
    return torch.cat([row[: int(n)] for row, n in zip(rows, lengths)])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(6)
    ddp = DDP(nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3)).double())
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.02)
    train, test = dataset(45, seed=1), dataset(27, seed=2)
    sampler = DistributedSampler(train, shuffle=True, drop_last=True)
    loader = DataLoader(train, batch_size=8, sampler=sampler, drop_last=True)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        ddp.train()
        loss_sum, correct, seen = 0.0, 0, 0
        for x, y, _ in loader:
            optimizer.zero_grad()
            logits = ddp(x)
            loss = nn.functional.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(y)
            correct += (logits.argmax(1) == y).sum().item()
            seen += len(y)
        loss_sum, correct, seen = all_reduced(loss_sum, correct, seen)
        if rank == 0:
            print(f"epoch {epoch} loss {loss_sum / seen:.12f} accuracy {correct:.0f}/{seen:.0f}")

    padded = DistributedSampler(test, shuffle=False)
    predicted, target, number = evaluate(ddp.module, DataLoader(test, 5, sampler=padded))
    hits, total = all_reduced((predicted == target).sum().item(), len(target))
    if rank == 0:
        print(f"with the padding: {hits:.0f} of {total:.0f}, of {len(test)} samples")

    # Right, way 1: gather with the samples' numbers, and keep each once.
    everything = {}
    rows = [gather_uneven(t, world) for t in (predicted, target, number)]
    for p, t, i in zip(*(row.tolist() for row in rows)):
        everything[i] = p == t
    # Right, way 2: every rank takes its share of the real indices.
    share = Subset(test, range(rank, len(test), world))
    predicted, target, _ = evaluate(ddp.module, DataLoader(share, batch_size=5))
    exact_hits, exact_total = all_reduced((predicted == target).sum().item(), len(target))
    # The truth: one process, everything.
    p, t, _ = evaluate(ddp.module, DataLoader(test, batch_size=27))
    if rank == 0:
        print(f"each sample once: {sum(everything.values())} of {len(everything)}")
        print(f"by real shares: {exact_hits:.0f} of {exact_total:.0f}")
        print(f"one process: {(p == t).sum().item()} of {len(t)}")

    confusion = torch.zeros(3, 3, dtype=torch.int64)
    for guess, truth in zip(predicted.tolist(), target.tolist()):
        confusion[truth, guess] += 1
    dist.reduce(confusion, dst=0, op=dist.ReduceOp.SUM)
    if rank == 0:
        print(confusion)
        recall = confusion.diag().double() / confusion.sum(dim=1).clamp(min=1)
        print("recall", *(f"{v:.12f}" for v in recall.tolist()))
    shares = [None] * world
    dist.all_gather_object(shares, (len(padded), len(share), list(padded)[-2:], len(sampler)))
    if rank == 0:
        print(shares)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
