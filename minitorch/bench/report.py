"""Figures as a table for people and as JSON for machines."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.table import Table

from .measure import Figure

__all__ = ["machine", "seconds_text", "table", "verdict", "write_json"]


def machine() -> dict[str, Any]:
    """Say what this was measured on, and how busy it was before it began."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor()


def seconds_text(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return "-"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def verdict(figure: Figure) -> str:
    """One word, and what was asked for."""
    if figure.target is None:
        return ""
    wanted = f"{'≤' if figure.most else '≥'} {figure.target:g}"
    if figure.met is None:
        return f"[yellow]not compared[/] ({wanted})"
    return f"[green]met[/] ({wanted})" if figure.met else f"[red]missed[/] ({wanted})"


def table(figures: Iterable[Figure], title: str = "") -> Table:
    """Return the figures as a rich table."""
    out = Table(title=title or None, title_justify="left", show_lines=False)
    for column, justify in (
        ("benchmark", "left"),
        ("what", "left"),
        ("ours", "right"),
        ("peer", "right"),
        ("ratio", "right"),
        ("quartiles", "right"),
        ("target", "left"),
    ):
        out.add_column(column, justify=justify, no_wrap=column not in ("what", "target"))  # type: ignore[arg-type]
    for f in figures:
        ratio = "-" if f.ratio is None else f"{f.ratio:.2f} {'×' if f.most else '× faster'}"
        spread = "-" if f.low is None or f.high is None else f"{f.low:.2f} … {f.high:.2f}"
        peer = seconds_text(f.peer) + (f"\n[dim]{f.peer_name}[/]" if f.peer_name else "")
        out.add_row(f.benchmark, f.name, seconds_text(f.ours), peer, ratio, spread, verdict(f))
    return out


def write_json(
    path: Path, about: dict[str, Any], figures: list[Figure], skipped: dict[str, str]
) -> None:
    """Write everything to `path`."""
    content = {"machine": about, "figures": [f.as_json() for f in figures], "skipped": skipped}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
