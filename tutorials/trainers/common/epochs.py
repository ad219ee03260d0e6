"""The loop over epochs of trainers that keep the weights of their best epoch."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from typing import Any

from minitorch import profiler

from .checkpoint import save_checkpoint
from .counting import sum_over_ranks
from .history import History
from .show import Show

TRACED_STEPS = 40  # a timeline of more is a large file that shows nothing new

AfterStep = Callable[[float, int], None]


def run_epochs(
    show: Show,
    args: argparse.Namespace,
    settings: dict[str, Any],
    parts: dict[str, Any],
    done: int,
    steps: int,
    train_epoch: Callable[[int, AfterStep], None],
    validate: Callable[[], dict[str, float]],
    unit: tuple[float, str],
) -> float:
    """Train until the last epoch, `--stop-after` or early stopping; return samples per second.

    Parameters
    ----------
    parts : dict
        What the checkpoint holds: `model`, `optimizer`, `history`.
    done, steps : int
        Epochs that are done; steps per epoch.
    train_epoch : callable
        Called with the epoch's number and a function to call after every step, with the mean loss
        and the number of samples of this rank.
    validate : callable
        The figures of the validation data, the same on all ranks.
    unit : tuple
        What a training loss is multiplied with, and what it is then called.
    """
    history: History = parts["history"]
    factor, name = unit
    loss, rate, taken = profiler.Average(), profiler.Throughput(), 0
    show.steps(args.epochs * steps, done * steps)
    with contextlib.ExitStack() as recording:
        if args.trace is not None:
            recording.enter_context(profiler.trace(args.trace, metadata=settings))

        def after_step(batch_loss: float, samples: int) -> None:
            nonlocal taken
            taken += 1
            loss.update(batch_loss, samples)
            rate.update(samples)
            show.step(lambda: f"{loss.value * factor:.3f} {name}")
            if taken == TRACED_STEPS:
                rate.stop()
                recording.close()
                rate.start()

        for epoch in range(done, min(args.epochs, args.stop_after or args.epochs)):
            if history.is_over:
                show.line(f"no better validation for {args.patience} epochs: that is enough")
                break
            loss.reset()
            cpu = time.process_time()
            rate.start()
            train_epoch(epoch, after_step)
            rate.stop()
            total, count = sum_over_ranks(loss.total, loss.weight)
            figures = {"train": factor * total / count} | validate()
            cpu = time.process_time() - cpu
            better = history.add(parts["model"], **figures, cpu_seconds=cpu)
            save_checkpoint(args.checkpoint, settings, epoch + 1, **parts)
            texts = "  ".join(f"{key} {value:.4f}" for key, value in figures.items())
            best = "  best" if better else ""
            show.line(f"epoch {epoch + 1:>2} of {args.epochs}  {texts} {name}{best}")
    return rate.per_second
