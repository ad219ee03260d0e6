"""The build backend: scikit-build-core, with what a rebuild on import needs kept in place.

An editable install rebuilds the C++ core when `minitorch` is imported after an edit. Two things
would make that fail, and are mended here:

* `pip install -e .` builds in a temporary environment which is gone afterwards, and with it
  CMake, Ninja, pybind11 and the MPI headers that the build directory refers to. They are copied to
  `build/tools` first, and the build uses the copy.
* the rebuild calls `cmake` and `ninja` by name, which may be installed only inside a virtual
  environment that is not activated. `build/bin` gets links to both, and a `.pth` file puts that
  folder at the end of PATH.

Everything else is handed on. (`make build` and `pip install --no-build-isolation -e .` use tools
that stay where they are: nothing is copied then.)
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

Config = dict[str, Any] | None

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "build" / "tools"
LINKS = ROOT / "build" / "bin"
PATH_FILE = ROOT / "build" / "minitorch_tools.pth"  # pyproject.toml ships it in editable wheels


def _temporary_environment() -> Path | None:
    """The folder of pip's temporary build environment, None when we build in a lasting one."""
    site = Path(str(metadata.distribution("scikit-build-core").locate_file(""))).resolve()
    return next((p for p in site.parents if p.name.startswith("pip-build-env-")), None)


def _keep_tools() -> bool:
    """Copy pip's temporary build environment, if there is one, and continue with the copy."""
    temporary = _temporary_environment()
    if temporary is None:
        return False
    shutil.rmtree(TOOLS, ignore_errors=True)
    shutil.copytree(temporary, TOOLS, symlinks=True)

    def moved(entry: str) -> str:
        path = Path(entry).resolve()
        inside = path.is_relative_to(temporary)
        return str(TOOLS / path.relative_to(temporary)) if inside else entry

    sys.path[:] = [moved(entry) for entry in sys.path]
    os.environ["PATH"] = os.pathsep.join(moved(p) for p in os.environ["PATH"].split(os.pathsep))
    # Child processes (CMake asks Python for pybind11 and the MPI package) get the environment from
    # a sitecustomize that names the temporary folders: the copied ones go in front of those.
    copied = [entry for entry in sys.path if Path(entry).is_relative_to(TOOLS)]
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*copied, *([inherited] if inherited else [])])
    return True


def _link_tools() -> None:
    """Links to cmake and ninja in build/bin, and the `.pth` file that puts those on PATH."""
    LINKS.mkdir(parents=True, exist_ok=True)
    for tool, module, attribute in (
        ("cmake", "cmake", "CMAKE_BIN_DIR"),
        ("ninja", "ninja", "BIN_DIR"),
    ):
        try:
            found = shutil.which(tool, path=getattr(import_module(module), attribute))
        except (ImportError, AttributeError):
            found = None
        found = found or shutil.which(tool)
        link = LINKS / tool
        if found is not None and Path(found) != link:
            link.unlink(missing_ok=True)
            link.symlink_to(found)
    PATH_FILE.write_text(
        "import os; os.environ['PATH'] = "
        f"os.environ.get('PATH', os.defpath) + os.pathsep + {str(LINKS)!r}\n",
        encoding="utf-8",
    )


def build_editable(
    wheel_directory: str, config_settings: Config = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable install, from tools that will still be there later."""
    settings = dict(config_settings or {})
    copied = _keep_tools()
    _link_tools()
    if copied and (LINKS / "ninja").exists():
        # By its path: another Ninja on PATH, of another version, would build everything again.
        settings.setdefault("cmake.define.CMAKE_MAKE_PROGRAM", str(LINKS / "ninja"))
    from scikit_build_core import build

    return build.build_editable(wheel_directory, settings, metadata_directory)


def build_wheel(
    wheel_directory: str, config_settings: Config = None, metadata_directory: str | None = None
) -> str:
    """Build an ordinary wheel."""
    from scikit_build_core import build

    return build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Config = None) -> str:
    """Build the source distribution."""
    from scikit_build_core import build

    return build.build_sdist(sdist_directory, config_settings)


def get_requires_for_build_wheel(config_settings: Config = None) -> list[str]:
    """CMake and Ninja where the machine has none, and the chosen MPI."""
    from scikit_build_core import build

    return build.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: Config = None) -> list[str]:
    """The same for an editable install."""
    from scikit_build_core import build

    return build.get_requires_for_build_editable(config_settings)


def get_requires_for_build_sdist(config_settings: Config = None) -> list[str]:
    """What a source distribution needs."""
    from scikit_build_core import build

    return build.get_requires_for_build_sdist(config_settings)


def prepare_metadata_for_build_wheel(directory: str, config_settings: Config = None) -> str:
    """Metadata without a build."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_wheel(directory, config_settings)


def prepare_metadata_for_build_editable(directory: str, config_settings: Config = None) -> str:
    """Metadata of an editable install without a build."""
    from scikit_build_core import build

    return build.prepare_metadata_for_build_editable(directory, config_settings)
