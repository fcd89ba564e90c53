"""Finds the files of the installed packages that a program may import, and the folders to hide from it.

Covered: packages by pip name, with their installed requirements; the folders to hide. Not covered: packages in a source
checkout (an editable installation has no files to show), and folders that several packages share, which programs see
completely.
"""

from __future__ import annotations

import glob
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import Distribution

EVERYTHING = "*"
"""Value of the option ``packages`` that allows all installed packages."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOLDERS = ("site-packages", "dist-packages", "ensurepip/_bundled")
"""Folders that contain packages, below the standard library; ``ensurepip/_bundled`` contains the wheel of pip."""
_LIBRARIES = ("/usr/lib/python3*", "/usr/local/lib/python3*")
_ARCHIVES = "/usr/share/python-wheels"
"""Folder in which Debian stores the wheel of pip, instead of ``ensurepip/_bundled``."""


def shown(packages: Iterable[str], site_dirs: list[str]) -> dict[str, str]:
    """Return the files and folders of the named packages and of the packages that these require.

    Args:
        packages: Names for pip, or names of modules; packages that are not installed are skipped.
        site_dirs: Folders of installed packages, in order of precedence.

    Returns:
        For each top-level file or folder of these packages, by name: the path on this machine.
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
    """Return the names of ``packages`` and of all packages that these require, each once; extras are ignored."""
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
    """Return the folders of installed packages on this machine that must be hidden from programs.

    Args:
        site_dirs: Folders of packages from which the caller imports.
        readable: Paths that stay visible to programs in any case.
    """
    own = f"{glob.escape(os.path.realpath(sys.base_prefix))}/{sys.platlibdir}/python3*"
    lib = f"{glob.escape(os.path.realpath(sys.base_prefix))}/lib/python3*"
    libraries = dict.fromkeys((own, lib, *_LIBRARIES))
    there = [path for library in libraries for name in _FOLDERS for path in glob.glob(f"{library}/{name}")]
    there += [_ARCHIVES, sysconfig.get_config_var("WHEEL_PKG_DIR") or _ARCHIVES]
    found = dict.fromkeys(os.path.realpath(path) for path in (*site_dirs, *there) if os.path.isdir(path))
    return [path for path in found if not any(path == one or path.startswith(one + "/") for one in readable)]


def without(folder: str, left_out: list[str]) -> list[str]:
    """Return paths that together cover a folder except the subfolders ``left_out``."""
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
    """Return the top-level names of a distribution's files: its modules, their bundled libraries, and its metadata."""
    record = distribution.read_text("RECORD")
    if record is None:  # an old format, used by packages of Debian
        return _tops((distribution.read_text("top_level.txt") or distribution.metadata["Name"]).split())
    paths = (line.partition(",")[0].strip('"') for line in record.splitlines())
    tops = dict.fromkeys(path.partition("/")[0] for path in paths if path and not path.startswith(("..", "/")))
    return [top for top in tops if top != "__pycache__" and not top.endswith(".pth")]


def _tops(modules: Iterable[str]) -> list[str]:
    """Return, for each module, the names that its folder, file, and folder of bundled libraries would have."""
    return [entry for module in modules for entry in (module, f"{module}.py", f"{module}.libs")]
