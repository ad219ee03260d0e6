"""The arguments that every trainer has."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from pathlib import Path

from minitorch.distributed._link import parse_link


def parser(
    description: str,
    *,
    epochs: int,
    batch_size: int,
    lr: float | None,
    bucket_cap_mb: float | None,
    runs: str,
) -> argparse.ArgumentParser:
    """Return a parser; the arguments are the trainer's defaults, `runs` is where its files go.

    With `lr=None`, the trainer finds a learning rate where the user gives none; with
    `bucket_cap_mb=None`, it has no DDP, and so neither buckets nor a choice of algorithm.
    """
    out = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = out.add_argument_group("training").add_argument
    add("--epochs", type=positive_int, default=epochs, metavar="N", help="passes over the data")
    text = (
        "samples per step over ALL ranks together, so that their number does not change the result"
    )
    add("--batch-size", type=positive_int, default=batch_size, metavar="N", help=text)
    text = "learning rate at the start" if lr is not None else "step size, instead of theory's"
    add("--lr", type=positive_float, default=lr, help=text)
    add("--seed", type=int, default=0, help="of the initial weights and of the shuffling")

    add = out.add_argument_group("ranks, and what they say to each other").add_argument
    add("--threads", type=positive_int, metavar="N", help="run N ranks as threads of this process")
    if bucket_cap_mb is not None:
        add("--algorithm", type=algorithm, default="ddp", help="how ranks agree on gradients")
        text = (
            "gradients travel in buckets that close at this size; the default makes at least four"
        )
        add("--bucket-cap-mb", type=positive_float, default=bucket_cap_mb, metavar="MB", help=text)
    text = "emulate a slower wire, such as 200Mbit/s,100us"
    add("--link", type=link, metavar="RATE,LATENCY", help=text)

    add = out.add_argument_group("files (`none` writes none)").add_argument
    file = {"type": path_or_none, "metavar": "FILE"}
    add("--checkpoint", default=f"{runs}/checkpoint.pt", help="written after every epoch", **file)
    add("--resume", action="store_true", help="continue from the checkpoint, if there is one")
    text = "end after this epoch, as if interrupted: --resume continues"
    add("--stop-after", type=positive_int, metavar="EPOCH", help=text)
    text = "timeline of all ranks, of the first steps"
    add("--trace", default=f"{runs}/timeline.trace.json", help=text, **file)
    return out


def add_save(out: argparse.ArgumentParser) -> None:
    """Add where the model goes that `minitorch interpret` reads; see :func:`model_file`."""
    text = "model for `minitorch interpret`, or `none` (default: model.pt beside the checkpoint)"
    file = {"type": path_or_none, "metavar": "FILE", "default": argparse.SUPPRESS}
    out.add_argument("--save", help=text, **file)


def model_file(args: argparse.Namespace) -> Path | None:
    """Return where the model goes; nowhere if there is no checkpoint either, unless it is given."""
    if hasattr(args, "save"):
        return args.save
    return None if args.checkpoint is None else args.checkpoint.with_name("model.pt")


def positive_int(text: str) -> int:
    """For argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value


def positive_float(text: str) -> float:
    """For argparse."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def path_or_none(text: str) -> Path | None:
    """For argparse: a path, or `none`."""
    return None if text.lower() == "none" else Path(text)


def link(text: str) -> str:
    """For argparse: the text itself, once it is known to make sense."""
    try:
        parse_link(text, "--link")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def algorithms() -> list[str]:
    """Return what `--algorithm` can be: plain DDP, and the registry's names where there is one."""
    path = "minitorch.distributed.algorithms.registry"
    if importlib.util.find_spec(path) is None:
        return ["ddp"]
    return ["ddp", *(name for name in importlib.import_module(path).names() if name != "ddp")]


def algorithm(text: str) -> str:
    """For argparse: a registered name."""
    known = algorithms()
    if text not in known:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not registered; there is: {', '.join(known)}"
        )
    return text
