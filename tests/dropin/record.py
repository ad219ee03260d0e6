"""Run every drop-in script under PyTorch and keep what it prints in ``expected/``.

Usage, in an environment with ``torch==2.13.0`` (CPU)::

    python tests/dropin/record.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    for script in sorted((HERE / "scripts").glob("*.py")):
        command = [sys.executable, str(script)]
        if script.stem.startswith("ddp_"):
            command = [
                sys.executable,
                "-m",
                "torch.distributed.run",
                "--standalone",
                "--nproc-per-node=2",
                str(script),
            ]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        (HERE / "expected" / f"{script.stem}.txt").write_text(output)
        print(script.stem, len(output.splitlines()), "lines")


if __name__ == "__main__":
    main()
