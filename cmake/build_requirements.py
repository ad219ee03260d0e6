"""Print requirements from pyproject.toml, one a line, for the Makefile.

Without arguments those of a build with the MPI named by MINITORCH_MPI; `--extra test` those of an
extra. pip can install an extra only together with the project, which would build it again.
"""

import os
import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(arguments: list[str]) -> list[str]:
    """Return what the arguments ask for."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    if arguments:
        return project["project"]["optional-dependencies"][arguments[1]]
    settings = project["tool"]["scikit-build"]
    chosen = settings["build"]["requires"]
    choice = os.environ.get("MINITORCH_MPI", "")
    for override in settings["overrides"]:
        pattern = override["if"].get("env", {}).get("MINITORCH_MPI")
        if pattern is not None and re.search(pattern, choice):
            chosen = override["build"]["requires"]
    return [*project["build-system"]["requires"], *chosen]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
