"""What all trainers share.

A trainer is a file with `main(rank, args) -> Summary`. `launch` runs it in one of three ways, and
`main` cannot tell which:

    mpirun -n 4 python images.py       four processes
    python images.py                   one process, one rank
    python images.py --threads 4       four ranks as threads: to look and to debug, not for speed

The rooms: `arguments.py`, `launch.py` (how ranks start), `show.py` (what they print),
`checkpoint.py` (what makes a resumed run equal to one that was never interrupted).
"""

from .arguments import parser, positive_float, positive_int
from .checkpoint import load_checkpoint, save_checkpoint
from .launch import launch, rebuild_buckets_now, share_of_batch
from .show import Show, Summary, communication_rows, where

__all__ = [
    "Show",
    "Summary",
    "communication_rows",
    "launch",
    "load_checkpoint",
    "parser",
    "positive_float",
    "positive_int",
    "rebuild_buckets_now",
    "save_checkpoint",
    "share_of_batch",
    "where",
]
