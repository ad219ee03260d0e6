"""What all trainers share.

A trainer is a file with `main(rank, args) -> Summary`. `launch` runs it in one of three ways, and
`main` cannot tell which:

    mpirun -n 4 python images.py       four processes
    python images.py                   one process, one rank
    python images.py --threads 4       four ranks as threads: to look and to debug, not for speed

The rooms: `arguments.py`, `launch.py` (how ranks start), `show.py` (what they print),
`checkpoint.py` (what makes a resumed run equal to one that was never interrupted), `counting.py`
(figures over all ranks); `regularizer.py` (arguments of recurrent networks), `history.py` (the best
epoch, early stopping), `epochs.py` (the loop around them), `curves.py` (pictures of a run).
"""

from .arguments import add_save, model_file, parser, path_or_none, positive_float, positive_int
from .checkpoint import load_checkpoint, save_checkpoint
from .counting import sum_over_ranks
from .curves import draw_curves, sparkline
from .epochs import run_epochs
from .history import History, write_json
from .launch import data_parallel, launch, rebuild_buckets_now, share_of_batch
from .regularizer import (
    add_recurrent_arguments,
    probability,
    recurrent_options,
    recurrent_settings,
    regularizer_text,
)
from .show import Show, Summary, communication_rows, where

__all__ = [
    "History",
    "Show",
    "Summary",
    "add_recurrent_arguments",
    "add_save",
    "communication_rows",
    "data_parallel",
    "draw_curves",
    "launch",
    "load_checkpoint",
    "model_file",
    "parser",
    "path_or_none",
    "positive_float",
    "positive_int",
    "probability",
    "rebuild_buckets_now",
    "recurrent_options",
    "recurrent_settings",
    "regularizer_text",
    "run_epochs",
    "save_checkpoint",
    "share_of_batch",
    "sparkline",
    "sum_over_ranks",
    "where",
    "write_json",
]
