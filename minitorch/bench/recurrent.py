"""Benchmarks of recurrent layers: whole sequences as one node, and what zoneout costs.

What separates the fused layer from PyTorch's: both sides spend about two thirds of the time in
the same matrix products, which OpenBLAS and MKL do equally fast at these sizes. The rest is
element-wise work: NumPy makes about twenty-five passes over a step's gates and states, forward and
backward, each a call, where oneDNN fuses them into a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from .measure import Figure, alternate, compare, enough
from .peers import Worker
from .registry import Settings, benchmark

_WHAT = "100 steps, batch 32"
_OURS = "minitorch nn.LSTM"
_ZONEOUT = "minitorch nn.ZoneoutLSTM"
_CELL = "PyTorch's cell loop"
_FUSED = "PyTorch's nn.LSTM"


@benchmark(
    "lstm-sequence",
    "nn.LSTM over 100 steps, batch 32, 64 -> 128, against PyTorch's cell loop: at most 1.0 x",
)
def lstm_sequence(settings: Settings) -> Iterator[Figure]:
    """The fused layer against both ways of PyTorch, and with zoneout against itself."""
    with ExitStack() as stack:
        mine = stack.enter_context(
            Worker.script("framework.py", "minitorch", python=settings.python)
        )
        contenders = {_OURS: (mine, "lstm_sequence"), _ZONEOUT: (mine, "zoneout_lstm")}
        if settings.torch_python:
            peer = stack.enter_context(
                Worker.script("framework.py", "torch", python=settings.torch_python)
            )
            contenders |= {_CELL: (peer, "lstm"), _FUSED: (peer, "lstm_sequence")}
        number = enough(
            lambda n: mine.ask("run", workload="lstm_sequence", number=n),
            0.1 if settings.quick else 0.3,
        )
        timers = {
            name: lambda worker=worker, workload=workload: worker.ask(
                "run", workload=workload, number=number
            )
            for name, (worker, workload) in contenders.items()
        }
        times = alternate(timers, settings.pick(15, 5), warmup=2)
    if _CELL in times:
        for peer_name, target in ((_CELL, 1.0), (_FUSED, None)):
            yield compare("lstm-sequence", _WHAT, times, _OURS, peer_name, target=target)
    else:
        absolute = "no PyTorch to compare with (--torch-python): absolute time"
        yield Figure("lstm-sequence", _WHAT, median(times[_OURS]), target=1.0, note=absolute)
    yield compare("lstm-sequence", "zoneout .5/.05", times, _ZONEOUT, _OURS)
