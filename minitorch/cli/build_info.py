"""Fingerprint of the C++ sources as they are now, to compare with what a module was built from."""

from __future__ import annotations

import hashlib
from pathlib import Path


def source_fingerprint(csrc: Path) -> str:
    """Return the fingerprint of the sources below `csrc`, as cmake/BuildInfo.cmake computes it."""
    files = [
        path.relative_to(csrc).as_posix()
        for suffix in ("*.cpp", "*.hpp")
        for path in csrc.rglob(suffix)
    ]
    lines = [
        f"{name} {hashlib.sha256((csrc / name).read_bytes()).hexdigest()}\n"
        for name in sorted(files)
        if not name.startswith("tests/")
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def source_folder() -> Path | None:
    """Return the `csrc` beside the imported package; None if minitorch came without sources."""
    import minitorch

    folder = Path(str(minitorch.__file__)).resolve().parent.parent / "csrc"
    return folder if folder.is_dir() else None
