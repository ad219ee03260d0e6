"""Scripts written for PyTorch run here with nothing changed but their imports.

`record.py` keeps what PyTorch 2.13.0 (CPU, gloo) printed; here the same files run with ``torch``
replaced by ``minitorch`` in import statements, and must print the same: words and whole numbers
exactly, other numbers within a relative tolerance.

* 1e-6 for the ``ddp_*`` scripts, which print nine digits or more. They run on two ranks, once as
  threads of this process and once as processes under mpirun.
* 1e-3 for the others: they print five digits after several float32 training steps, whose sums are
  taken in another order.
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
ALONE = [s for s in SCRIPTS if not s.stem.startswith("ddp_")]
DISTRIBUTED = [s for s in SCRIPTS if s.stem.startswith("ddp_")]
RANKS = 2  # as recorded
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def with_imports_changed(source: str) -> str:
    source = re.sub(r"^import torch$", "import minitorch as torch", source, flags=re.M)
    source = re.sub(
        r"^import torch\.(\S+) as (\w+)$", r"import minitorch.\1 as \2", source, flags=re.M
    )
    return re.sub(r"^from torch(\.\S+)? import", r"from minitorch\1 import", source, flags=re.M)


def expected_output(script: Path) -> str:
    return (HERE / "expected" / f"{script.stem}.txt").read_text()


def same_number(ours: str, theirs: str, relative: float, absolute: float) -> bool:
    if re.fullmatch(r"-?\d+", theirs):
        return ours == theirs
    return math.isclose(float(ours), float(theirs), rel_tol=relative, abs_tol=absolute)


def assert_same_text(got: str, expected: str, relative: float, absolute: float) -> None:
    got_lines, expected_lines = got.splitlines(), expected.splitlines()
    assert len(got_lines) == len(expected_lines), f"printed\n{got}\nPyTorch printed\n{expected}"
    for ours, theirs in zip(got_lines, expected_lines, strict=True):
        ours = ours.replace("minitorch.", "torch.")
        numbers = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=False)
        same = NUMBER.sub("#", ours) == NUMBER.sub("#", theirs) and all(
            same_number(a, b, relative, absolute) for a, b in numbers
        )
        assert same, f"printed {ours!r}, PyTorch printed {theirs!r}"


@pytest.mark.parametrize("script", ALONE, ids=lambda path: path.stem)
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
    assert_same_text(run.stdout, expected_output(script), 1e-3, 1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", DISTRIBUTED, ids=lambda path: path.stem)
def test_distributed_script_on_threads_prints_what_pytorch_prints(script, capsys):
    dist = pytest.importorskip("minitorch.distributed")
    if not dist.is_available():
        pytest.skip("no compiled core here: `make build` makes it")
    program = compile(with_imports_changed(script.read_text()), script, "exec", dont_inherit=True)

    def rank(r):
        # Every rank executes the whole file, as every process does.
        exec(program, {"__name__": "__main__", "__file__": str(script)})

    dist.run_local(rank, RANKS, timeout=60)
    assert_same_text(capsys.readouterr().out, expected_output(script), 1e-6, 1e-9)


@pytest.mark.mpi
@pytest.mark.parametrize("script", DISTRIBUTED, ids=lambda path: path.stem)
def test_distributed_script_prints_what_pytorch_prints(script, tmp_path):
    changed = tmp_path / script.name
    changed.write_text(with_imports_changed(script.read_text()))
    command = [sys.executable, "-m", "minitorch", "launch", "-n", str(RANKS), str(changed)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert_same_text(run.stdout, expected_output(script), 1e-6, 1e-9)


def test_every_number_counts():
    """The comparison itself: it must tell apart what differs in any word or number."""
    for other in ("loss 0.12346 step 3", "loss 0.12345 step 4", "lost 0.12345 step 3"):
        with pytest.raises(AssertionError, match="PyTorch printed"):
            assert_same_text(other, "loss 0.12345 step 3", 1e-6, 1e-9)
    assert_same_text("loss 0.1234500001 step 3", "loss 0.12345 step 3", 1e-6, 1e-9)
