"""Which files of this machine are needed for an image with its Python: for ``rstar2 sandbox image --from-host``.

Covered: the running interpreter, its standard library without tests, modules by name with what they depend on, the
shared libraries of all of these (as the loader finds them), a shell and a few small programs. Everything is placed as
in an ordinary image of Python: below ``/usr/local``, libraries where the loader looks without configuration. Not
covered: data outside of the packages, and libraries that a module opens by itself without linking to them.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError

_PROGRAMS = ("sh", "cat", "echo", "env", "ls", "sleep", "true")
_LEFT_OUT = frozenset(
    {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "dist-packages"}
)
_FOLDERS = ("/dev", "/etc", "/proc", "/run", "/scratch", "/sys", "/tmp", "/usr/bin", "/usr/sbin", "/var/tmp")
_TEXTS = {
    "/etc/passwd": "root:x:0:0:root:/:/bin/sh\nsandbox:x:10001:10001:sandbox:/tmp:/bin/sh\n",
    "/etc/group": "root:x:0:\nsandbox:x:10001:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
_LIBRARY = re.compile(r"^\s+(?:(\S+) => )?(/\S+) \(0x", re.MULTILINE)
_MISSING = re.compile(r"^\s+(\S+) => not found", re.MULTILINE)
_AT_ONCE = 200


@dataclass
class Tree:
    """Files by their place in the image.

    Attributes:
        python: The interpreter on this machine.
        entry: The interpreter in the image.
        files: Place in the image: file on this machine.
        links: Place in the image: target of the link.
        texts: Place in the image: contents.
    """

    python: str
    entry: str
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=lambda: dict(_TEXTS))


def collect(packages: Sequence[str]) -> Tree:
    """Find every file that the image needs.

    Raises:
        ConfigurationError: A package is not installed here.
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
    owners = importlib.metadata.packages_distributions()
    for package in _with_dependencies(packages, owners):
        _add_package(tree, package, f"/usr/local/lib/{name}/site-packages")
        for distribution in owners.get(package, ()):
            _add_description(tree, distribution, f"/usr/local/lib/{name}/site-packages")
    for folder in ("bin", "sbin", "lib", "lib32", "lib64"):
        if os.path.islink(f"/{folder}"):
            tree.links[f"/{folder}"] = os.readlink(f"/{folder}").lstrip("/")
    for program in _PROGRAMS:
        if (path := shutil.which(program, path="/usr/bin:/bin")) is not None:
            tree.files[_placed(path)] = path
    _add_libraries(tree)
    return tree


def folders(tree: Tree) -> list[str]:
    """Every folder of the image, parents first."""
    found = set(_FOLDERS)
    for place in (*tree.files, *tree.links, *tree.texts):
        found.add(os.path.dirname(place))
    for place in list(found):
        while (place := os.path.dirname(place)) != "/":
            found.add(place)
    return sorted(found - set(tree.links) - {"/"})


def _add(tree: Tree, folder: str, place: str) -> None:
    """Add a folder without what no program needs."""
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
            f"No module {name!r} is installed here, so it cannot go into the image: install it, or leave it out "
            "(--package names those that are wanted)."
        )
    if spec.submodule_search_locations is None:
        tree.files[f"{place}/{os.path.basename(spec.origin)}"] = spec.origin
        return
    for folder in spec.submodule_search_locations:
        _add(tree, folder, f"{place}/{name}")
        if os.path.isdir(libraries := f"{folder}.libs"):  # where wheels put their bundled libraries
            _add(tree, libraries, f"{place}/{name}.libs")


def _add_description(tree: Tree, distribution: str, place: str) -> None:
    """Add what says which files a distribution has and what it requires: ``packages=`` goes by it."""
    for path in importlib.metadata.files(distribution) or ():
        if path.name in ("METADATA", "RECORD") and path.parent.suffix == ".dist-info":
            tree.files[f"{place}/{path}"] = os.fspath(path.locate())


def _with_dependencies(packages: Sequence[str], owners: Mapping[str, Sequence[str]]) -> list[str]:
    """Top-level modules, and those of the distributions that theirs require."""
    modules: dict[str, list[str]] = {}
    for module, names in owners.items():
        for name in names:
            modules.setdefault(_normal(name), []).append(module)
    found: dict[str, None] = {}
    rest = list(packages)
    while rest:
        module = rest.pop(0)
        if module in found:
            continue
        found[module] = None
        for distribution in owners.get(module, ()):
            for needed in importlib.metadata.requires(distribution) or ():
                wanted = re.match(r"[A-Za-z0-9._-]+", needed)
                if wanted and "extra ==" not in needed:
                    rest += [name for name in modules.get(_normal(wanted[0]), ()) if _is_importable(name)]
    return list(found)


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _is_importable(module: str) -> bool:
    return module.isidentifier() and importlib.util.find_spec(module) is not None


def _add_libraries(tree: Tree) -> None:
    """Add the libraries that the loader would load for every program and library of the tree."""
    inside = set(map(os.path.realpath, tree.files.values()))
    programs = [path for path in tree.files.values() if _is_elf(path)]
    found: dict[str, str] = {}
    for start in range(0, len(programs), _AT_ONCE):
        said = _ldd(programs[start : start + _AT_ONCE])
        for name, path in _LIBRARY.findall(said):
            if os.path.realpath(path) not in inside:
                found[name or path] = path
        if missing := sorted(set(_MISSING.findall(said)) - {os.path.basename(path) for path in inside}):
            found |= {name: path for name in missing if (path := _beside(name)) is not None}
    default = os.path.dirname(os.path.realpath(found.get("libc.so.6", "/lib/libc.so.6")))
    for name, path in found.items():
        # The loader itself goes to the path by which programs name it; the others to a default search path.
        place = _placed(path) if name.startswith("/") else f"{default}/{name}"
        tree.files[place] = path


def _beside(name: str) -> str | None:
    """A library in the interpreter's own prefix, which ``ldd`` may miss."""
    path = os.path.join(sys.base_prefix, "lib", name)
    return path if os.path.exists(path) else None


def _ldd(paths: list[str]) -> str:
    try:
        # ldd fails when one of several files is statically linked, which needs no libraries.
        done = subprocess.run(["ldd", *paths], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailableError(f"ldd, which lists the libraries of a program, cannot be run: {error}") from error
    return done.stdout


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError as error:
        raise SandboxUnavailableError(f"A file of this machine's Python cannot be read: {error}") from error


def _placed(path: str) -> str:
    """The place of a system file after symbolic links between folders are resolved."""
    return f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}"
