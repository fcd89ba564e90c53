"""Collects this machine's Python files for an image (``rstar2 sandbox image --from-host``).

Covered: the running interpreter, its standard library without tests, the given modules with their dependencies, a shell
and a few small programs, and all shared libraries that the loader finds for these. The layout is that of an ordinary
Python image: files below ``/usr/local``, libraries in the loader's default search path. Not covered: data outside the
packages, and libraries that a module opens at run time without being linked to them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.sandbox.inside.kernel.packages import shown
from rstar2_env.sandbox.options import site_dirs

_PROGRAMS = ("sh", "cat", "echo", "env", "ls", "sleep", "true")
_LEFT_OUT = frozenset(
    {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "dist-packages"}
)
_FOLDERS = ("/dev", "/etc", "/proc", "/run", "/scratch", "/sys", "/tmp", "/usr/bin", "/usr/sbin", "/var/tmp")
TEXTS = {
    "/etc/passwd": "root:x:0:0:root:/:/bin/sh\nsandbox:x:10001:10001:sandbox:/tmp:/bin/sh\n",
    "/etc/group": "root:x:0:\nsandbox:x:10001:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
"""Contents of small text files of the image, by their path in the image."""
_LIBRARY = re.compile(r"^\s+(?:(\S+) => )?(/\S+) \(0x", re.MULTILINE)
_MISSING = re.compile(r"^\s+(\S+) => not found", re.MULTILINE)
_AT_ONCE = 200


@dataclass
class Tree:
    """The files and links of an image.

    Attributes:
        python: Path of the interpreter on this machine.
        entry: Path of the interpreter in the image.
        files: Path of each file on this machine, by its path in the image.
        links: Target of each link, by its path in the image.
    """

    python: str
    entry: str
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def collect(packages: Sequence[str]) -> Tree:
    """Collect all files that the image needs.

    Raises:
        ConfigurationError: A package is not installed on this machine.
        SandboxUnavailableError: The libraries of a file cannot be determined.
    """
    python = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    tree = Tree(python, f"/usr/local/bin/{name}")
    tree.files[tree.entry] = python
    tree.links |= {"/usr/local/bin/python3": name, "/usr/local/bin/python": name}
    paths = sysconfig.get_paths()
    for folder in dict.fromkeys((paths["stdlib"], paths["platstdlib"])):
        _add(tree, folder, f"/usr/local/lib/{name}")
    installed = f"/usr/local/lib/{name}/site-packages"
    owners = importlib.metadata.packages_distributions()
    for package in packages:
        _add_package(tree, package, installed)
    distributions = [owner for package in packages for owner in owners.get(package, ())]
    for entry, path in shown(distributions, site_dirs()).items():  # with their requirements and metadata
        if os.path.isdir(path):
            _add(tree, path, f"{installed}/{entry}")
        else:
            tree.files[f"{installed}/{entry}"] = path
    for folder in ("bin", "sbin", "lib", "lib32", "lib64"):
        if os.path.islink(f"/{folder}"):
            tree.links[f"/{folder}"] = os.readlink(f"/{folder}").lstrip("/")
    for program in _PROGRAMS:
        if (found := shutil.which(program, path="/usr/bin:/bin")) is not None:
            tree.files[_placed(found)] = found
    _add_libraries(tree)
    return tree


def folders(tree: Tree) -> list[str]:
    """Return all folders of the image, parents before their children."""
    places = (*tree.files, *tree.links, *TEXTS, *(f"{folder}/file" for folder in _FOLDERS))
    found = {os.fspath(folder) for place in places for folder in PurePosixPath(place).parents}
    return sorted(found - set(tree.links) - {"/"})


def _add(tree: Tree, folder: str, place: str) -> None:
    """Add a folder's files to the image, below the path ``place``; skip files that programs do not need."""
    for top, below, names in os.walk(folder):
        below[:] = [name for name in below if name not in _LEFT_OUT and not name.startswith("config-")]
        inner = os.path.relpath(top, folder)
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path) and not name.endswith((".a", ".exe")) and not name.startswith("_tkinter"):
                tree.files[os.path.normpath(f"{place}/{inner}/{name}")] = path


def _add_package(tree: Tree, name: str, place: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            f"The Python module {name!r} is not installed on this machine, so it cannot be added to the "
            "image: install it, or choose other modules with --package."
        )
    if spec.submodule_search_locations is None:
        tree.files[f"{place}/{os.path.basename(spec.origin)}"] = spec.origin
        return
    for folder in spec.submodule_search_locations:
        _add(tree, folder, f"{place}/{name}")


def _add_libraries(tree: Tree) -> None:
    """Add the shared libraries that the loader loads for the programs and libraries of the tree."""
    inside = set(map(os.path.realpath, tree.files.values()))
    programs = [path for path in tree.files.values() if _is_elf(path)]
    found: dict[str, str] = {}
    for start in range(0, len(programs), _AT_ONCE):
        listing = _ldd(programs[start : start + _AT_ONCE])
        for name, path in _LIBRARY.findall(listing):
            if os.path.realpath(path) not in inside:
                found[name or path] = path
        if missing := sorted(set(_MISSING.findall(listing)) - {os.path.basename(path) for path in inside}):
            found |= {name: path for name in missing if (path := _in_prefix(name)) is not None}
    default = os.path.dirname(os.path.realpath(found.get("libc.so.6", "/lib/libc.so.6")))
    for name, path in found.items():
        # The loader keeps the path that programs name; other libraries go to a default search path.
        place = _placed(path) if name.startswith("/") else f"{default}/{name}"
        tree.files[place] = path


def _in_prefix(name: str) -> str | None:
    """Find a library in the interpreter's prefix, where ``ldd`` may not look; ``None`` if the prefix lacks it."""
    path = os.path.join(sys.base_prefix, "lib", name)
    return path if os.path.exists(path) else None


def _ldd(paths: list[str]) -> str:
    try:
        # ldd returns an error if any of the files is statically linked; such a file needs no libraries.
        done = subprocess.run(["ldd", *paths], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailableError(
            f"The program ldd, which lists the libraries of a program, cannot be run: {error}"
        ) from error
    return done.stdout


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError as error:
        raise SandboxUnavailableError(
            f"A file of this machine's Python installation cannot be read: {error}"
        ) from error


def _placed(path: str) -> str:
    """Resolve symbolic links in the folder part of a path, but not in the file name."""
    return f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}"
