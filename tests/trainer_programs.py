"""What tests of trainers share: to run one here, or under mpirun, or to be refused by it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tutorials" / "trainers"


def run_trainer(trainer: ModuleType, *arguments: object) -> Any:
    """Run a trainer in this process, as its command line would; return its summary."""
    common = importlib.import_module("common")
    command = trainer.arguments()
    return common.launch(trainer.main, command.parse_args([*map(str, arguments)]), command)


def output_of_two_processes(script: str, *options: str) -> str:
    """Run a trainer's script under mpirun; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "minitorch", "launch", "-n", "2", str(FOLDER / script), *options],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def usage_error(
    run: Callable[..., Any], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> str:
    """Run a trainer with arguments that its command line refuses; return what it says."""
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err
