"""Fit a multinomial logistic regression on several ranks, by SAGA or one of its relatives.

    mpirun -n 2 python tutorials/trainers/linear.py
    python tutorials/trainers/linear.py --threads 2 --method sgd

Minimises mean cross-entropy + penalty. Samples are sharded: a rank sees its own only, keeps their
gradients, and in every step draws one of its fixed mini-batches; what ranks exchange is one sum of
the directions per step. (`distributed/saga.py` tells why that is right.)

How far it is from the optimum is not guessed from small steps: after every pass the gradient of the
whole sum is taken, and its gradient mapping |w - prox(w - s f'(w))| / s, which is zero at the
minimiser and nowhere else, is printed. `--method sgd` shows what the table is for: it stops getting
better long before.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, nn, profiler
from minitorch.distributed.saga import (
    DistributedProxSGD,
    DistributedSAG,
    DistributedSAGA,
    DistributedSVRG,
)
from minitorch.optim.prox import L1, L2, ElasticNet, Prox
from minitorch.random.addressed import addressed_integers

TRACED_STEPS = 40  # a timeline of more is a large file that shows nothing new

METHODS = {
    "saga": DistributedSAGA,
    "sag": DistributedSAG,
    "svrg": DistributedSVRG,
    "sgd": DistributedProxSGD,
}
PENALTIES: dict[str, Callable[[float], Prox]] = {
    "l1": L1,
    "l2": L2,
    "elasticnet": lambda strength: ElasticNet(strength / 2, strength / 2),
}


class Shard:
    """This rank's samples, cut into fixed mini-batches: those are SAGA's "samples".

    Rank r has samples r, r + W, ... of N. A batch's loss is the sum of its samples' losses times
    batches / N, so that the mean over all batches is the mean over all samples, whatever the sizes.
    """

    def __init__(self, inputs: torch.Tensor, labels: torch.Tensor, size: int) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        self.inputs, self.labels = inputs[rank::world], labels[rank::world]
        self.batches = [slice(i, i + size) for i in range(0, len(self.labels), size)]
        counts = [-(-len(range(r, len(labels), world)) // size) for r in range(world)]
        self.weight = sum(counts) / len(labels)
        self.samples = len(labels)

    def loss(self, model: nn.Module, batch: int) -> torch.Tensor:
        """The loss that belongs to a batch's row of the table."""
        where = self.batches[batch]
        scores = model(self.inputs[where])
        total = nn.functional.cross_entropy(scores, self.labels[where], reduction="sum")
        return total * self.weight

    def smoothness(self) -> float:
        """L of the batches' losses: 1/2 |(x, 1)|^2 of each sample, for softmax and a bias."""
        squares = 1.0 + (self.inputs.numpy() ** 2).sum(axis=1)
        return max(0.5 * self.weight * float(squares[b].sum()) for b in self.batches)


def objective(model: nn.Module, shard: Shard, prox: Prox) -> tuple[float, float]:
    """Return the objective, over all ranks, and the norm of the gradient mapping.

    Cost: one all-reduce of the parameters and one number more.
    """
    model.zero_grad()
    scores = model(shard.inputs)
    loss = nn.functional.cross_entropy(scores, shard.labels, reduction="sum") / shard.samples
    loss.backward()
    parts = [loss.detach().reshape(1), *(p.grad.flatten() for p in model.parameters())]
    everything = torch.cat(parts)
    dist.all_reduce(everything)
    weight, bias = (p.detach().numpy() for p in model.parameters())
    value, slopes = everything.numpy()[0], everything.numpy()[1:]
    step = 1.0  # any: the mapping is zero for all or for none
    moved = prox.prox(weight - step * slopes[: weight.size].reshape(weight.shape), step)
    away = math.hypot(np.linalg.norm(weight - moved) / step, np.linalg.norm(slopes[weight.size :]))
    return float(value) + prox.value(weight), away


def accuracy(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> tuple[float, int]:
    """Return the share of right answers over all ranks, each sample counted once, and their number.

    Cost: one all-reduce of 16 bytes.
    """
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    with torch.no_grad():
        right = (model(inputs[mine]).argmax(dim=1) == labels[mine]).sum().item()
    sums = torch.tensor([right, len(labels[mine])], dtype=torch.float64)
    dist.all_reduce(sums)
    return sums[0].item() / sums[1].item(), int(sums[1].item())


class AllShards:
    """The optimizer states of all ranks, as one part of a checkpoint."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.states: list[Any] = []

    def collect(self) -> None:
        """Bring them to rank 0; all ranks call. Cost: their tables."""
        self.states = [None] * dist.get_world_size()
        here = dist.get_rank() == 0
        dist.gather_object(self.optimizer.state_dict(), self.states if here else None, dst=0)

    def state_dict(self) -> dict[str, Any]:
        """As collected."""
        return {"ranks": self.states}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take this rank's."""
        states = saved["ranks"]
        if len(states) != dist.get_world_size():
            raise SystemExit(
                f"--resume: the checkpoint holds the tables of {len(states)} ranks, and there are "
                f"{dist.get_world_size()}: use as many"
            )
        self.optimizer.load_state_dict(states[dist.get_rank()])


def load_data(args: argparse.Namespace) -> tuple[tuple[torch.Tensor, ...], ...]:
    """Return training and held-out pixels (float64) and labels; with `--limit`, so many of each.

    Every pixel is shifted to mean 0 over the training images: left as they are, all pixels share a
    large component with the bias, and the problem is that much worse conditioned.
    """
    try:
        split = datasets.load(args.data)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from error
    parts = []
    for part in (split.train, split.test):
        images, labels = part.tensors
        every = 1 if args.limit is None else max(1, len(labels) // args.limit)
        images, labels = (t[::every][: args.limit] for t in (images, labels))
        parts.append((images.flatten(1).double(), labels))
    mean = parts[0][0].mean(dim=0)
    return tuple((images - mean, labels) for images, labels in parts)


def main(rank: int, args: argparse.Namespace) -> common.Summary:
    """Fit and evaluate; every rank runs this."""
    share = common.share_of_batch(args)
    (inputs, labels), held_out = load_data(args)
    shard = Shard(inputs, labels, share)
    prox = PENALTIES[args.penalty](args.strength)

    model = nn.Linear(inputs.shape[1], 10).double()
    with torch.no_grad():  # a convex problem: begin at zero
        for parameter in model.parameters():
            parameter.zero_()
    groups = [{"params": [model.weight], "prox": prox}, {"params": [model.bias]}]
    constants = {"lr": args.lr} if args.lr is not None else {"L": shard.smoothness()}
    optimizer = METHODS[args.method](groups, len(shard.batches), **constants)

    def backward(batch: int) -> torch.Tensor:
        optimizer.zero_grad()
        loss = shard.loss(model, batch)
        loss.backward()
        return loss

    names = ("method", "penalty", "strength", "data", "limit", "epochs", "batch_size", "lr", "seed")
    settings = {name: getattr(args, name) for name in names}
    tables = AllShards(optimizer)
    state = {"model": model, "optimizer": tables}
    free = ("epochs",)
    done = common.load_checkpoint(args.checkpoint, settings, free, **state) if args.resume else 0
    if done and args.method == "svrg":
        optimizer.closure = backward
    elif not done:
        optimizer.init_table(backward)

    began, steps, last = time.perf_counter(), 0, min(args.epochs, args.stop_after or args.epochs)
    per_pass = -(-len(labels) // args.batch_size)
    with common.Show(rank) as show, contextlib.ExitStack() as recording:
        show.line(
            f"{args.method}, step size {optimizer.param_groups[0]['lr']:.3g}, on {len(labels)} "
            f"images of {args.data}, {len(held_out[1])} held out; {dist.get_world_size()} x "
            f"{share} images per step, penalty {prox!r}"
        )
        if args.resume:
            show.line(f"{done} epochs are done, says {common.where(args.checkpoint)}")
            if done and objective(model, shard, prox)[1] <= args.tol:
                last = done
        show.steps(args.epochs * per_pass, done * per_pass)
        if args.trace is not None:
            recording.enter_context(profiler.trace(args.trace, metadata=settings))
        for epoch in range(done, last):
            draws = addressed_integers(args.seed, epoch, rank, per_pass, high=len(shard.batches))
            for batch in draws.tolist():
                loss = backward(batch)
                optimizer.step(batch)
                steps += 1
                show.step(lambda loss=loss: f"loss {loss.item():.3f}")
                if steps == TRACED_STEPS:
                    recording.close()
            value, certificate = objective(model, shard, prox)
            if args.checkpoint is not None:
                tables.collect()
            common.save_checkpoint(args.checkpoint, settings, epoch + 1, **state)
            finished = certificate <= args.tol
            if finished or (epoch + 1) % args.every == 0 or epoch + 1 == last:
                show.line(
                    f"pass {epoch + 1:>3}  objective {value:.10f}  gradient mapping "
                    f"{certificate:.2e}"
                )
            if finished:
                break
        recording.close()
        summary = summarize(args, model, shard, prox, held_out, steps)
        summary.rows.append(("time", f"{time.perf_counter() - began:.1f} s"))
        summary.show(show, f"{args.method} on {args.data}")
    return summary


def summarize(
    args: argparse.Namespace,
    model: nn.Module,
    shard: Shard,
    prox: Prox,
    held_out: tuple[torch.Tensor, ...],
    steps: int,
) -> common.Summary:
    """Put the final table together; all ranks must call."""
    value, certificate = objective(model, shard, prox)
    share_right, seen = accuracy(model, *held_out)
    weight = model.weight.detach().numpy()
    certified = certificate <= args.tol
    verdict = f"below --tol {args.tol:g}: certified" if certified else f"above --tol {args.tol:g}"
    sent = dist.meter().get("all_reduce", {}).get("bytes_sent", 0) if steps else 0
    if args.method == "sgd":
        advice = "the same with --method saga: what is the noise floor, and where is it gone?"
    elif not certified:
        advice = "more --epochs, or a larger --strength (a better conditioned problem)"
    elif args.penalty == "l2":
        advice = "--penalty l1: how many weights are needed?"
    else:
        advice = "--method svrg, which keeps no table: how many passes does it take?"
    return common.Summary(
        rows=[
            ("objective", f"{value:.12f}"),
            ("gradient mapping", f"{certificate:.2e}, {verdict}"),
            ("weights that are not zero", f"{np.count_nonzero(weight)} of {weight.size}"),
            ("held-out accuracy", f"{share_right:.2%} of {seen} images, each counted once"),
            ("sent by rank 0, per step", f"{sent / max(1, steps):.0f} bytes"),
            ("checkpoint", common.where(args.checkpoint)),
            ("timeline, for ui.perfetto.dev", common.where(args.trace)),
        ],
        values={
            "objective": value,
            "gradient_mapping": certificate,
            "certified": certified,
            "accuracy": share_right,
            "seen": seen,
            "steps": steps,
            "parameters": [p.detach().numpy().copy() for p in model.parameters()],
        },
        next_step=advice,
    )


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    out = common.parser(
        "Fit a multinomial logistic regression by SAGA (mpirun -n N, or --threads N).",
        epochs=200,
        batch_size=12,
        lr=None,
        bucket_cap_mb=None,
        runs="runs/linear",
    )
    add = out.add_argument_group("model and method").add_argument
    add("--method", choices=sorted(METHODS), default="saga")
    add("--data", choices=["digits", "mnist-subset", "fashion-mnist"], default="digits")
    text = "use only N images of each part"
    add("--limit", type=common.positive_int, metavar="N", help=text)
    add("--penalty", choices=sorted(PENALTIES), default="l2", help="on the weights, not the bias")
    add("--strength", type=common.positive_float, default=0.01, help="of the penalty")
    text = "stop when the gradient mapping is below this"
    add("--tol", type=common.positive_float, default=1e-4, help=text)
    text = "print after every so many passes"
    add("--every", type=common.positive_int, default=20, metavar="N", help=text)
    return out


if __name__ == "__main__":
    command = arguments()
    common.launch(main, command.parse_args(), command)
