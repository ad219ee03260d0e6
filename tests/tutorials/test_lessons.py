"""Every lesson runs from top to bottom, as a script and as a notebook would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "tutorials"
LESSONS = sorted(TUTORIALS.glob("[0-9][0-9]_*.py"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson_runs(lesson):
    """Without MPI, without a display; every unsolved exercise reports itself and nothing raises."""
    environment = os.environ | {
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", lesson],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "not started" in run.stdout
    assert "[✗]" not in run.stdout


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson_is_a_percent_script(lesson):
    """Jupytext finds cells, and each lesson promises, predicts and asks."""
    text = lesson.read_text()
    assert text.count("# %%") >= 10
    for part in ("**After this lesson you can**", "**Predict", "## Exercises", "**Where next?**"):
        assert part in text, f"{lesson.name} lacks {part!r}"
