"""Checkpoints: all that the next epoch depends on, in one file.

Since every epoch's shuffling comes from seed and epoch number, weights, optimizer, schedule and the
state of the random numbers are enough to go on as if nothing had happened: to the last bit, with
the same number of ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import minitorch as torch
import minitorch.distributed as dist

FORMAT = 1


def save_checkpoint(path: Path | None, settings: dict[str, Any], epoch: int, **parts: Any) -> None:
    """Write the state of `parts` (model, optimizer, ...) after `epoch` epochs.

    All ranks may call; rank 0 writes, whole or not at all.
    """
    if path is None or dist.get_rank() != 0:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    states = {name: part.state_dict() for name, part in parts.items()}
    content = {"format": FORMAT, "settings": settings, "epoch": epoch, "states": states}
    torch.save(content | {"random": torch.get_rng_state()}, path)


def load_checkpoint(
    path: Path | None, settings: dict[str, Any], free: tuple[str, ...] = (), **parts: Any
) -> int:
    """Bring back what `save_checkpoint` wrote; return how many epochs are done, 0 without a file.

    The settings must be those of the file, but for the `free` ones, on which the epochs that are
    done do not depend: `epochs`, where no schedule looks ahead to the last one.

    Raises
    ------
    SystemExit
        The file is no checkpoint of a trainer, or one of another run: of another model, other data,
        another schedule. Nothing has been changed then.
    """
    if path is None:
        raise SystemExit("--resume: there is nothing to resume from with --checkpoint none")
    # All ranks must decide alike, whatever their file systems show at this moment.
    there = [path.exists()]
    dist.broadcast_object_list(there, src=0)
    if not there[0]:
        return 0
    try:
        content = torch.load(path)
    except Exception as error:
        raise SystemExit(f"--resume: {path} cannot be read as a checkpoint: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SystemExit(f"--resume: {path} is not a checkpoint of a trainer (format {FORMAT})")
    saved = content["settings"]
    different = [
        f"{name} was {saved.get(name)!r} and is {settings.get(name)!r} now"
        for name in {**saved, **settings}
        if name not in free and saved.get(name) != settings.get(name)
    ]
    if different:
        raise SystemExit(
            f"--resume: {path} is of another run ({'; '.join(different)}). Use the same options, "
            f"or another --checkpoint"
        )
    for name, part in parts.items():
        part.load_state_dict(content["states"][name])
    torch.set_rng_state(content["random"])
    return int(content["epoch"])
