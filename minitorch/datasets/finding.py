"""Where data sets are looked for, and what is said when they are not there."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

SHARED = ("share", "minitorch")  # inside the environment; `make` puts archives there


def own_folders() -> list[Path]:
    """The folders that the user named."""
    named = os.environ.get("MINITORCH_DATA", "")
    return [Path(folder).expanduser() for folder in named.split(os.pathsep) if folder]


def package_folder(package: str, *inside: str) -> list[Path]:
    """A folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    roots = [] if spec is None else list(spec.submodule_search_locations or [])
    return [Path(root, *inside) for root in roots]


def shared_folder() -> Path:
    """Where this Python environment keeps archives that are read and not installed."""
    return Path(sys.prefix, *SHARED)


def find(name: str, folders: list[Path], files: tuple[str, ...], remedy: str) -> list[Path]:
    """The first folder's files, plain or gzipped, that are all there."""
    for folder in folders:
        found = [
            path
            for file in files
            for path in (folder / file, folder / f"{file}.gz")
            if path.is_file()
        ]
        if len(found) == len(files):
            return found
    raise not_found(name, folders, f"{', '.join(files)} (plain or .gz)", remedy)


def not_found(name: str, folders: list[Path], what: str, remedy: str) -> FileNotFoundError:
    """The error that says where `what` was looked for and what to do."""
    places = "".join(f"\n  {folder}" for folder in folders) or "\n  (no folder to look in)"
    return FileNotFoundError(
        f"data set {name!r} was not found. Looked for {what} in:{places}\n{remedy}\n"
        "A copy of your own is found if MINITORCH_DATA names its folder."
    )
