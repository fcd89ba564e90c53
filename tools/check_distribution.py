"""Check that built distributions have the files that git ignores: ``python tools/check_distribution.py FOLDER``.

``make dist`` runs it. Covered: that the folder has one wheel and one source distribution, and both have the page of
``rstar2 view``. Not covered: everything else in them (``tests/test_distribution.py``).
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

PAGE = tuple(f"rstar2_env/view/static/{name}" for name in ("index.html", "app.js", "text.js", "app.css", "icon.svg"))
"""Files that ``make view`` builds, by their path in the package."""


def problems(folder: Path) -> list[str]:
    """Return the faults of the distributions of a folder; empty if they can be uploaded."""
    found = []
    for kind, pattern in (("wheel", "*.whl"), ("source distribution", "*.tar.gz")):
        files = sorted(folder.glob(pattern))
        if len(files) != 1:
            found.append(f"{folder} has {len(files)} files {pattern}, and one {kind} is expected: run `make dist`.")
        found += [_lacking(path, missing) for path in files if (missing := _missing(path))]
    return found


def _missing(path: Path) -> list[str]:
    """Return the files of the viewer's page that are missing in a distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            inside = set(archive.namelist())
    else:
        with tarfile.open(path) as archive:
            inside = {name.partition("/")[2] for name in archive.getnames()}
    return [name for name in PAGE if name not in inside]


def _lacking(path: Path, missing: list[str]) -> str:
    return (
        f"{path} lacks the page of `rstar2 view` ({', '.join(missing)}): run `make view`, which needs npm and "
        "Node 20.19 or newer, and build it again; `make dist` does both."
    )


def main() -> int:
    """Print the faults; return 1 if there are any, else 0."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    found = problems(folder)
    print("\n".join(found or [f"The distributions in {folder} have the page of `rstar2 view`."]))
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
