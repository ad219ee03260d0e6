"""Speed, measured side by side: what `minitorch bench` and `make bench` run.

Every figure is a ratio of two contenders that took turns in one run, since this machine's next
minute is not like its last. The rooms: `measure.py` turns and ratios, `peers.py` worker processes,
`workers/` what runs in them, `registry.py` the list, one file per kind of benchmark (`compute`,
`collectives`, `overlapping`, `network`), `command.py` the command, `report.py` its table.
"""

from .registry import BENCHMARKS, Benchmark, Settings, Skipped, benchmark, chosen

__all__ = ["BENCHMARKS", "Benchmark", "Settings", "Skipped", "benchmark", "chosen", "main"]


def main(argv: list[str] | None = None) -> int:
    """Run `minitorch bench` with these arguments; the command's exit status."""
    from .command import main as run  # needs rich, which importing the package does not

    return run(argv)
