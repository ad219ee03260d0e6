"""Scripts written for PyTorch run here with nothing changed but their imports.

`record.py` keeps what PyTorch 2.13.0 (CPU) printed; here the same files run with ``torch`` replaced
by ``minitorch`` in import statements, and must print the same: words exactly, numbers to 1e-3
relative (they are printed with five digits after several float32 training steps, whose sums are
taken in another order).
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "scripts").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def with_imports_changed(source: str) -> str:
    source = re.sub(r"^import torch$", "import minitorch as torch", source, flags=re.M)
    source = re.sub(
        r"^import torch\.(\S+) as (\w+)$", r"import minitorch.\1 as \2", source, flags=re.M
    )
    return re.sub(r"^from torch(\.\S+)? import", r"from minitorch\1 import", source, flags=re.M)


def assert_same_text(got: str, expected: str) -> None:
    got_lines, expected_lines = got.splitlines(), expected.splitlines()
    assert len(got_lines) == len(expected_lines), f"printed\n{got}\nPyTorch printed\n{expected}"
    for ours, theirs in zip(got_lines, expected_lines, strict=True):
        ours = ours.replace("minitorch.", "torch.")
        numbers = list(zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=False))
        assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs), (
            f"printed {ours!r}, PyTorch printed {theirs!r}"
        )
        for a, b in numbers:
            assert math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-4), (
                f"printed {ours!r}, PyTorch printed {theirs!r}"
            )


@pytest.mark.parametrize(
    "script", [s for s in SCRIPTS if not s.stem.startswith("ddp_")], ids=lambda path: path.stem
)
def test_script_prints_what_pytorch_prints(script, tmp_path):
    changed = tmp_path / script.name
    changed.write_text(with_imports_changed(script.read_text()))
    run = subprocess.run(
        [sys.executable, changed],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert_same_text(run.stdout, (HERE / "expected" / f"{script.stem}.txt").read_text())


@pytest.mark.mpi
@pytest.mark.parametrize(
    "script", [s for s in SCRIPTS if s.stem.startswith("ddp_")], ids=lambda path: path.stem
)
def test_distributed_script_prints_what_pytorch_prints(script, tmp_path):
    changed = tmp_path / script.name
    changed.write_text(with_imports_changed(script.read_text()))
    command = [sys.executable, "-m", "minitorch", "launch", "-n", "2", str(changed)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert_same_text(run.stdout, (HERE / "expected" / f"{script.stem}.txt").read_text())
