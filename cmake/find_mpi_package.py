"""Print `<include directory>;<libmpi>` of an MPI package from PyPI: `find_mpi_package.py mpich`."""

import re
import sys
from importlib import metadata
from pathlib import Path


def find(package: str) -> str:
    """Return both paths; exit with the reason if there is something missing."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise SystemExit(f"the package {package} is not installed for {sys.executable}") from None
    header = [f for f in files if f.parts[-2:] == ("include", "mpi.h")]
    # The versioned file: `libmpi.so` is a linker script in these packages.
    library = [f for f in files if re.fullmatch(r"libmpi\.(so\.\d+|\d+\.dylib)", f.name)]
    if not header or not library:
        raise SystemExit(f"the package {package} has no mpi.h or no libmpi")
    found = [Path(str(f.locate())).resolve() for f in (header[0], library[0])]
    missing = [str(path) for path in found if not path.exists()]
    if missing:
        raise SystemExit(f"the package {package} is damaged, missing: {', '.join(missing)}")
    return f"{found[0].parent};{found[1]}"


if __name__ == "__main__":
    print(find(sys.argv[1]))
