"""Train an LSTM to classify images that it sees one pixel at a time, in a random order.

    mpirun -n 2 python tutorials/trainers/sequential_images.py
    python tutorials/trainers/sequential_images.py --regularizer zoneout --epochs 60

The pixels of an image are one sequence, in an order that is random but the same for all images, so
that neighbours in the picture are far apart in time: what the LSTM needs to remember lies anywhere.
The task is the zoneout paper's "permuted sequential MNIST", smaller: a subset of the images, and by
default averaged down to 14 x 14 pixels, 196 steps instead of 784 (`--rows 28` has them all).

The recipe follows the paper: RMSProp at 1e-3 with a decay of 0.5, gradients clipped to norm 1, one
zoneout mask for cell and hidden state. The forget gate's bias starts at 1, so that an untrained
LSTM remembers. Masks differ from rank to rank: with a regularizer, the number of ranks does change
the (random) result.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import common
import numpy as np

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, nn
from minitorch.random.addressed import addressed_permutation
from minitorch.utils.data import DataLoader, TensorDataset
from minitorch.utils.data.distributed import DistributedSampler

ORDER = 3  # what random numbers are for: a stream of addressed draws
RATES = {"dropout": (0.25,), "recurrent-dropout": (0.25,), "zoneout": (0.15, 0.15)}


class SequenceClassifier(nn.Module):
    """LSTM over pixels, scores of the classes from its last state; by default 42,200 parameters."""

    def __init__(self, hidden: int, classes: int, **options: Any) -> None:
        super().__init__()
        self.lstm = nn.ZoneoutLSTM(1, hidden, **options)
        self.scores = nn.Linear(hidden, classes)
        with torch.no_grad():
            for name, weight in self.lstm.named_parameters():
                if name.startswith("bias_ih"):
                    weight[hidden : 2 * hidden] = 1.0

    def forward(self, sequences: Any) -> Any:
        """Sequences (B, T, 1) to scores (B, classes)."""
        _, (hidden, _) = self.lstm(sequences.transpose(0, 1))
        return self.scores(hidden[-1])


class Parts(NamedTuple):
    """Sequences (N, T, 1) with labels, to train on, to choose by, and to report."""

    train: TensorDataset
    valid: TensorDataset
    test: TensorDataset
    classes: int


def load_sequences(name: str, rows: int, order_seed: int | None, limit: int | None) -> Parts:
    """Return images as sequences of pixels; the last eighth of the training images validates.

    With `order_seed=None` pixels come line by line; with `limit`, so many of each part, of all
    classes.
    """
    try:
        split = datasets.load(name)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from error
    height = split.train.tensors[0].shape[-1]
    if height % rows:
        raise SystemExit(f"--rows {rows} does not divide the images' {height} rows")
    pixels = rows * rows
    order = np.arange(pixels)
    if order_seed is not None:
        order = addressed_permutation(order_seed, 0, ORDER, pixels)
    labels = split.train.tensors[1].numpy()
    # Of each class the last eighth, in file order; within a class images are in no order.
    rank_in_class = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        rank_in_class[places] = np.arange(len(places)) * 8 // len(places)
    validates = rank_in_class == 7
    chosen = (
        (split.train, np.flatnonzero(~validates)),
        (split.train, np.flatnonzero(validates)),
        (split.test, np.arange(len(split.test))),
    )
    return Parts(
        *(as_sequences(data, thinned(places, limit), rows, order) for data, places in chosen),
        len(split.classes),
    )


def thinned(places: np.ndarray, limit: int | None) -> np.ndarray:
    """Take every k-th: files are sorted by class, so the first `limit` would be of one."""
    if limit is None or limit >= len(places):
        return places
    return places[:: len(places) // limit][:limit]


def as_sequences(
    data: TensorDataset, places: np.ndarray, rows: int, order: np.ndarray
) -> TensorDataset:
    """Average images down to `rows` rows and columns, then lay their pixels out in `order`."""
    images, labels = (tensor.numpy()[places] for tensor in data.tensors)
    size = images.shape[-1] // rows
    blocks = images.reshape(len(images), rows, size, rows, size).mean(axis=(2, 4))
    sequences = np.ascontiguousarray(blocks.reshape(len(images), rows * rows)[:, order, None])
    return TensorDataset(torch.from_numpy(sequences), torch.from_numpy(labels))


def evaluate(model: nn.Module, data: TensorDataset, batch: int = 250) -> tuple[float, float, int]:
    """Return mean loss, share of errors and the number of samples over *all* ranks.

    Rank r takes samples r, r + W, r + 2W, ...: no padding, so that each is seen exactly once. The
    bare module is called, as ranks need not meet.

    Cost: one all-reduce of 24 bytes.
    """
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    sequences, labels = (tensor[mine] for tensor in data.tensors)
    loss = wrong = 0.0
    training = model.training
    model.eval()
    with torch.no_grad():
        for start in range(0, len(labels), batch):
            target = labels[start : start + batch]
            scores = model(sequences[start : start + batch])
            loss += nn.functional.cross_entropy(scores, target, reduction="sum").item()
            wrong += (scores.argmax(dim=1) != target).sum().item()
    model.train(training)
    loss, wrong, seen = common.sum_over_ranks(loss, wrong, len(labels))
    return loss / seen, wrong / seen, int(seen)


def train_epoch(ddp: Any, loader: DataLoader, optimizer: Any, clip: float, after_step: Any) -> None:
    """One pass over this rank's share of the training images."""
    for sequences, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(sequences), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), clip)
        optimizer.step()
        after_step(loss.item(), len(labels))


def main(rank: int, args: argparse.Namespace) -> common.Summary:
    """Train and evaluate; every rank runs this."""
    began = time.perf_counter()
    share = common.share_of_batch(args)
    settings = common.recurrent_settings(args, "data limit rows order")
    parts = load_sequences(args.data, args.rows, args.order, args.limit)
    sampler = DistributedSampler(parts.train, shuffle=True, seed=args.seed)
    loader = DataLoader(parts.train, batch_size=share, sampler=sampler)

    torch.manual_seed(args.seed)
    options = common.recurrent_options(args)
    if args.regularizer == "zoneout":
        options["shared_mask"] = options["zoneout_cell"] == options["zoneout_hidden"]
    model = SequenceClassifier(args.hidden, parts.classes, **options)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr, alpha=0.5)
    history = common.History("valid", args.patience)
    state = {"model": model, "optimizer": optimizer, "history": history}
    free = ("epochs", "patience")
    done = common.load_checkpoint(args.checkpoint, settings, free, **state) if args.resume else 0

    ddp = common.data_parallel(model, args)  # after loading: it sends rank 0's weights to all
    common.rebuild_buckets_now(ddp, parts.train.tensors[0][:2])

    def one_epoch(epoch: int, after_step: Any) -> None:
        sampler.set_epoch(epoch)
        train_epoch(ddp, loader, optimizer, args.clip, after_step)

    def validate() -> dict[str, float]:
        loss, errors, _ = evaluate(model, parts.valid)
        return {"valid": errors, "valid_loss": loss}

    with common.Show(rank) as show:
        show.line(
            f"LSTM of {args.hidden} units, regularizer: {common.regularizer_text(args)}, "
            f"{sum(p.numel() for p in model.parameters()):,} parameters, on "
            f"{len(parts.train)} images of {args.data} as sequences of {args.rows**2} pixels; "
            f"{dist.get_world_size()} x {share} images per step"
        )
        if args.resume:
            show.line(f"{done} epochs are done, says {common.where(args.checkpoint)}")
        rate = common.run_epochs(
            show, args, settings, state, done, len(loader), one_epoch, validate, (1.0, "loss")
        )
    summary = summarize(args, ddp, history, parts, rate)
    common.write_json(args.history, summary.values["record"] | {"settings": settings})
    summary.rows.append(("time", f"{time.perf_counter() - began:.1f} s"))
    summary.show(show, f"LSTM on {args.data}, pixel by pixel")
    return summary


def summarize(
    args: argparse.Namespace, ddp: Any, history: common.History, parts: Parts, rate: float
) -> common.Summary:
    """Evaluate the best weights on the test images and put the table together; all ranks call."""
    last = [p.detach().numpy().copy() for p in ddp.parameters()]
    ddp.module.load_state_dict(history.best_weights)
    loss, errors, seen = evaluate(ddp.module, parts.test)
    (per_second,) = common.sum_over_ranks(rate)
    curves = {name: history.curve(name) for name in ("train", "valid_loss")}
    picture = common.draw_curves(args.curve, curves, "cross entropy", history.best_epoch)
    advice = "--regularizer zoneout --epochs 60, beside the same without: a short run misleads"
    if args.regularizer != "none" and args.epochs >= 60:
        advice = "make reproduce-zoneout: several seeds, tuned rates, a table"
    return common.Summary(
        rows=[
            ("validation errors", f"{history.best:.2%}, in epoch {history.best_epoch}"),
            ("test errors", f"{errors:.2%} of {seen} images, each counted once"),
            ("test loss", f"{loss:.4f}"),
            ("validation by epoch", common.sparkline(history.curve("valid"))),
            ("throughput", f"{per_second:.0f} images/s over {dist.get_world_size()} rank(s)"),
            *common.communication_rows(ddp),
            ("checkpoint", common.where(args.checkpoint)),
            ("learning curve", picture),
            ("figures", common.where(args.history)),
            ("timeline, for ui.perfetto.dev", common.where(args.trace)),
        ],
        values={
            "parameters": last,
            "seen": seen,
            "record": history.record("sequential-images", test=errors, test_loss=loss),
        },
        next_step=advice,
    )


def order_seed(text: str) -> int | None:
    """For argparse: a seed, or `lines`."""
    return None if text == "lines" else int(text)


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    runs = "runs/sequential-images"
    out = common.parser(
        "Classify images pixel by pixel on several ranks (mpirun -n N, or --threads N).",
        epochs=12,
        batch_size=50,
        lr=0.001,
        bucket_cap_mb=0.002,
        runs=runs,
    )
    common.add_recurrent_arguments(out, hidden=100, clip=1.0, rates=RATES, runs=runs)
    add = out.add_argument_group("images").add_argument
    add("--data", choices=["mnist-subset", "fashion-mnist"], default="mnist-subset")
    text = "use only N images of each part"
    add("--limit", type=common.positive_int, metavar="N", help=text)
    text = "average images down to N x N pixels, which are N * N steps: 28, 14 or 7"
    add("--rows", type=common.positive_int, default=14, metavar="N", help=text)
    text = "seed of the pixels' order, or `lines` for line by line"
    add("--order", type=order_seed, default=0, metavar="SEED", help=text)
    return out


if __name__ == "__main__":
    command = arguments()
    common.launch(main, command.parse_args(), command)
