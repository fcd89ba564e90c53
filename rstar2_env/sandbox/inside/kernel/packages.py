"""Which installed packages a program may import, and what of them is shown to it.

Covered: packages by the names that pip knows them by, with all that they require, as far as it is installed; the
folders of packages that are to be out of sight. Not covered: packages in a source checkout (an editable installation
has no files to show), and folders that several packages share, which are shown whole.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution

EVERYTHING = "*"
"""In place of a name: all that is installed."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SITES = ("/usr/lib/python3*/dist-packages", "/usr/local/lib/python3*/dist-packages")


def shown(packages: Iterable[str], site_dirs: list[str]) -> dict[str, str]:
    """What a folder of packages holds that shows these packages and no other.

    Args:
        packages: Their names for pip, or those of modules; what is not installed is left out.
        site_dirs: Folders of installed packages, the first before the others.

    Returns:
        Files and folders by their name in that folder. Of the description of a package only its ``METADATA``.
    """
    found: dict[str, str] = {}
    for name in required(packages, site_dirs):
        distribution = _distribution(name, site_dirs)
        for entry in _tops([name]) if distribution is None else _entries(distribution):
            for folder in site_dirs:
                source = os.path.join(folder, entry)
                if os.path.exists(source):
                    found.setdefault(entry, source)
                    break
    return found


def required(packages: Iterable[str], site_dirs: list[str]) -> list[str]:
    """These packages and all that they require, extras aside; each once."""
    names: dict[str, str] = {}
    waiting = list(packages)
    while waiting:
        name = waiting.pop(0)
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in names:
            continue
        names[key] = name
        distribution = _distribution(name, site_dirs)
        for line in (distribution.requires if distribution is not None else None) or ():
            requirement, _, marker = line.partition(";")
            if "extra" not in marker and (match := _NAME.match(requirement)):
                waiting.append(match[0])
    return list(names.values())


def hidden(site_dirs: list[str], readable: list[str]) -> list[str]:
    """The folders of packages of this machine's Python, which are to be out of sight.

    Args:
        site_dirs: Those that the caller imports from.
        readable: Paths that programs may read whatever they hold.
    """
    prefix = os.path.realpath(sys.base_prefix)
    own = [
        path for name in ("site", "dist") for path in glob.glob(f"{glob.escape(prefix)}/lib/python3*/{name}-packages")
    ]
    system = [path for pattern in _SITES for path in glob.glob(pattern)]
    found = dict.fromkeys(os.path.realpath(path) for path in (*site_dirs, *own, *system) if os.path.isdir(path))
    return [path for path in found if not any(path == one or path.startswith(one + "/") for one in readable)]


def without(folder: str, left_out: list[str]) -> list[str]:
    """Paths that together hold all of a folder but some folders below it."""
    folder = os.path.realpath(folder)
    if folder in left_out:
        return []
    if not any(path.startswith(folder.rstrip("/") + "/") for path in left_out):
        return [folder]
    below = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    return [path for one in below if not os.path.islink(one) for path in without(one, left_out)]


def _distribution(name: str, site_dirs: list[str]) -> Distribution | None:
    return next(iter(Distribution.discover(name=name, path=site_dirs)), None)


def _entries(distribution: Distribution) -> list[str]:
    """The names at the top of a package's folder: modules, libraries beside them, and where its description is."""
    record = distribution.read_text("RECORD")
    if record is None:  # an old format, as Debian's packages have it
        return _tops((distribution.read_text("top_level.txt") or distribution.metadata["Name"]).split())
    paths = (line.partition(",")[0].strip('"') for line in record.splitlines())
    tops = dict.fromkeys(path.partition("/")[0] for path in paths if path and not path.startswith(("..", "/")))
    return [top for top in tops if top != "__pycache__" and not top.endswith(".pth")]


def _tops(modules: Iterable[str]) -> list[str]:
    """What modules may be at the top: a folder, with the libraries that its wheel brought beside it, or a file."""
    return [entry for module in modules for entry in (module, f"{module}.py", f"{module}.libs")]
