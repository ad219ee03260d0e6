"""Train an image classifier on several ranks.

    mpirun -n 2 python tutorials/trainers/images.py
    python tutorials/trainers/images.py --threads 2 --epochs 1 --link 100Mbit/s,100us

Real images (a subset of MNIST; `--data fashion-mnist` where that is installed), a small CNN or an
MLP, PyTorch's DistributedDataParallel. Every rank trains on its share of each batch; the held-out
images are evaluated once each, by whichever rank's turn it is.

The recipe is a usual one: SGD, momentum 0.9, weight decay 5e-4, a cosine from `--lr` to zero.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from itertools import pairwise
from typing import Any

import common

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, interpret, nn, profiler
from minitorch.nn.parallel import DistributedDataParallel
from minitorch.optim.lr_scheduler import CosineAnnealingLR
from minitorch.utils.data import DataLoader, TensorDataset
from minitorch.utils.data.distributed import DistributedSampler

TRACED_STEPS = 40  # a timeline of more is a large file that shows nothing new


def cnn() -> nn.Module:
    """98,442 parameters; most of the arithmetic is in the second and third convolution."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def mlp() -> nn.Module:
    """567,434 parameters: much to communicate for what there is to compute."""
    widths = (784, 512, 256, 128)
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 10))


MODELS = {"cnn": cnn, "mlp": mlp}


def load_data(name: str, limit: int | None) -> datasets.Split:
    """Return a data set; with `limit`, so many images of each part, of all classes."""
    try:
        split = datasets.load(name)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from error
    train, test = (thinned(part, limit) for part in (split.train, split.test))
    return split._replace(train=train, test=test)


def thinned(data: TensorDataset, limit: int | None) -> TensorDataset:
    """Take every k-th sample: files are sorted by class, so the first `limit` would be of one."""
    if limit is None or limit >= len(data):
        return data
    return TensorDataset(*(tensor[:: len(data) // limit][:limit] for tensor in data.tensors))


def evaluate(model: nn.Module, data: TensorDataset, batch: int = 250) -> tuple[float, float, int]:
    """Return mean loss, accuracy and the number of samples over *all* ranks.

    Rank r takes samples r, r + W, r + 2W, ...: no padding, so that each is seen exactly once
    whatever W is. Ranks may hold different numbers of samples, hence sums and counts are exchanged,
    not means. The bare module is called: in DDP's forward ranks may have to meet, and here they
    need not take equally many steps.

    Cost: one all-reduce of 24 bytes.
    """
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    images, labels = (tensor[mine] for tensor in data.tensors)
    loss = correct = 0.0
    model.eval()
    with torch.no_grad():
        for start in range(0, len(labels), batch):
            target = labels[start : start + batch]
            scores = model(images[start : start + batch])
            loss += nn.functional.cross_entropy(scores, target, reduction="sum").item()
            correct += (scores.argmax(dim=1) == target).sum().item()
    model.train()
    sums = torch.tensor([loss, correct, len(labels)], dtype=torch.float64)
    dist.all_reduce(sums)
    loss, correct, seen = sums.tolist()
    return loss / seen, correct / seen, int(seen)


def train_epoch(ddp: nn.Module, loader: DataLoader, optimizer: Any, after_step: Any) -> None:
    """One pass over this rank's share of the training images."""
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(images), labels)
        loss.backward()
        optimizer.step()
        after_step(loss.item(), len(labels))


def main(rank: int, args: argparse.Namespace) -> common.Summary:
    """Train and evaluate; every rank runs this."""
    share = common.share_of_batch(args)
    split = load_data(args.data, args.limit)
    train, held_out = split.train, split.test
    sampler = DistributedSampler(train, shuffle=True, seed=args.seed)
    loader = DataLoader(train, batch_size=share, sampler=sampler)

    torch.manual_seed(args.seed)
    model = MODELS[args.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)
    names = ("model", "data", "limit", "epochs", "batch_size", "lr", "seed", "algorithm")
    settings = {name: getattr(args, name) for name in names}
    state = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    done = common.load_checkpoint(args.checkpoint, settings, **state) if args.resume else 0

    # After loading: the constructor sends rank 0's weights to all.
    ddp = DistributedDataParallel(
        model, bucket_cap_mb=args.bucket_cap_mb, gradient_as_bucket_view=True
    )
    common.rebuild_buckets_now(ddp, train.tensors[0][:2])

    loss, rate, began, steps = profiler.Average(), profiler.Throughput(), time.perf_counter(), 0
    last = min(args.epochs, args.stop_after or args.epochs)
    with common.Show(rank) as show, contextlib.ExitStack() as recording:
        show.line(
            f"{args.model}, {sum(p.numel() for p in model.parameters()):,} parameters, on "
            f"{len(train)} images of {args.data}, {len(held_out)} held out; "
            f"{dist.get_world_size()} x {share} images per step"
        )
        if args.resume:
            show.line(f"{done} epochs are done, says {common.where(args.checkpoint)}")
        show.steps(args.epochs * len(loader), done * len(loader))
        if args.trace is not None:
            recording.enter_context(profiler.trace(args.trace, metadata=settings))

        def after_step(batch_loss: float, images: int) -> None:
            nonlocal steps
            steps += 1
            loss.update(batch_loss, images)
            rate.update(images)
            show.step(lambda: f"loss {loss.value:.3f}")
            if steps == TRACED_STEPS:
                rate.stop()
                recording.close()
                rate.start()

        evaluation = evaluate(model, held_out) if done >= last else (0.0, 0.0, 0)
        for epoch in range(done, last):
            sampler.set_epoch(epoch)
            loss.reset()
            rate.start()
            train_epoch(ddp, loader, optimizer, after_step)
            rate.stop()
            scheduler.step()
            evaluation = evaluate(model, held_out)
            common.save_checkpoint(args.checkpoint, settings, epoch + 1, **state)
            show.line(
                f"epoch {epoch + 1:>2} of {args.epochs}  loss {loss.value:.4f}  held-out loss "
                f"{evaluation[0]:.4f}  accuracy {evaluation[1]:.2%}"
            )
        recording.close()
    model_file = common.model_file(args)
    if model_file is not None and rank == 0:
        interpret.save_model(model_file, model, split.classes, data=args.data)
    summary = summarize(args, ddp, evaluation, rate.per_second)
    summary.values["training_loss"] = loss.value  # of this rank, in the last epoch
    summary.rows.append(("time", f"{time.perf_counter() - began:.1f} s"))
    summary.show(show, f"{args.model} on {args.data}")
    return summary


def summarize(
    args: argparse.Namespace, ddp: Any, evaluation: tuple[float, float, int], rate: float
) -> common.Summary:
    """Put the final table together; all ranks must call."""
    images_per_second = torch.tensor([rate], dtype=torch.float64)
    dist.all_reduce(images_per_second)
    loss, accuracy, seen = evaluation
    world = dist.get_world_size()
    if world == 1:
        advice = "mpirun -n 2 python tutorials/trainers/images.py"
    elif args.link is None:
        advice = "the same with --link 100Mbit/s,100us: how much of a slower wire is still hidden?"
    else:
        advice = "another --bucket-cap-mb, and a look at both timelines"
    return common.Summary(
        rows=[
            ("held-out loss", f"{loss:.4f}"),
            ("held-out accuracy", f"{accuracy:.2%} of {seen} images, each counted once"),
            ("throughput", f"{images_per_second.item():.0f} images/s over {world} rank(s)"),
            *common.communication_rows(ddp),
            ("checkpoint", common.where(args.checkpoint)),
            ("model, for minitorch interpret", common.where(common.model_file(args))),
            ("timeline, for ui.perfetto.dev", common.where(args.trace)),
        ],
        values={
            "loss": loss,
            "accuracy": accuracy,
            "seen": seen,
            "parameters": [p.detach().numpy().copy() for p in ddp.parameters()],
        },
        next_step=advice,
    )


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    out = common.parser(
        "Train an image classifier on several ranks (mpirun -n N, or --threads N).",
        epochs=15,
        batch_size=64,
        lr=0.05,
        bucket_cap_mb=0.004,
        runs="runs/images",
    )
    out.add_argument("--model", choices=sorted(MODELS), default="cnn")
    out.add_argument("--data", choices=["mnist-subset", "fashion-mnist"], default="mnist-subset")
    common.add_save(out)
    text = "use only N images of each part"
    out.add_argument("--limit", type=common.positive_int, metavar="N", help=text)
    return out


if __name__ == "__main__":
    command = arguments()
    common.launch(main, command.parse_args(), command)
