"""What a program sees of the file system: a small root of its own, read-only, with Python and the system's libraries.

Covered: which folders are shown and where, and building that root in a new mount namespace. Not covered: the private
``/tmp`` and ``/proc`` of each call, which the child mounts (``child``). Nothing of the user's home is shown: an
interpreter or packages that live there appear under ``/python`` and ``/packages``.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field

from . import linux

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"dev/fd": "/proc/self/fd", "dev/stdin": "/proc/self/fd/0", "dev/stdout": "/proc/self/fd/1", "dev/shm": "/tmp"}
_FILES = {
    "etc/passwd": "sandbox:x:{user}:{user}:sandbox:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "sandbox:x:{user}:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
HARNESS = "/sandbox"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of these programs: ``inside``, with all of its subfolders."""


@dataclass(slots=True)
class View:
    """Where things are for the zygote and its children.

    Attributes:
        python: The interpreter's path.
        launch: Path of ``launch.py``.
        site_dirs: Folders of installed packages.
        library_path: ``LD_LIBRARY_PATH``, or empty.
        readable: Everything that is visible, read-only.
        binds: Mounts: pairs of the path outside and the path inside.
    """

    python: str
    launch: str
    site_dirs: list[str]
    library_path: str = ""
    readable: list[str] = field(default_factory=list)
    binds: list[tuple[str, str]] = field(default_factory=list)


def plain_view(site_dirs: list[str], readable: list[str]) -> View:
    """The machine's own paths, for use without a mount namespace."""
    prefix = os.path.realpath(sys.base_prefix)
    shown = [prefix, *site_dirs, *readable, *_SYSTEM, *(f"/etc/{name}" for name in _ETC), FOLDER]
    return View(sys.executable, _launch_file(), site_dirs, readable=[path for path in shown if os.path.exists(path)])


def private_view(site_dirs: list[str], readable: list[str]) -> View:
    """The layout of the small root.

    Args:
        site_dirs: Folders of installed packages, real paths.
        readable: Additional paths, visible at the same place.
    """
    base = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    prefix = os.path.realpath(sys.base_prefix)
    view = View(base, f"{HARNESS}/launch.py", [])
    for folder in _SYSTEM:
        if os.path.isdir(folder) and not os.path.islink(folder):
            view.binds.append((folder, folder))
    view.binds += [(path, path) for path in readable]
    if not _shown(prefix, view):
        view.binds.append((prefix, "/python"))
        libraries = os.path.join(prefix, "lib")
        if any(name.startswith("libpython") for name in os.listdir(libraries)):
            view.library_path = "/python/lib"  # built to find its library by the path it no longer has
    if not _shown(base, view):
        raise OSError(0, f"the interpreter {base} lies outside its own prefix {prefix}; name its folder in readable")
    for number, folder in enumerate(site_dirs):
        if not _shown(folder, view):
            view.binds.append((folder, f"/packages/{number}"))
    view.python = _inside(base, view)
    view.site_dirs = [_inside(folder, view) for folder in site_dirs]
    view.readable = ["/"]
    return view


def build(view: View, root: str, user: int) -> None:
    """Build the small root at ``root`` and move into it. The mount namespace must be this process's own.

    Args:
        view: What to show.
        root: An empty folder.
        user: The user that programs run as, for ``/etc/passwd``.
    """
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=16m,mode=755")
    for name in ("tmp", "proc", "dev", "etc"):
        os.mkdir(os.path.join(root, name))
    for source, target in view.binds:
        place = root + target
        if os.path.isdir(source):
            os.makedirs(place, exist_ok=True)
        else:
            _touch(place)
        linux.bind_read_only(source, place)
    for folder in _SYSTEM:
        if os.path.islink(folder):
            os.symlink(os.readlink(folder), root + folder)
    for name in _ETC:
        _copy(f"/etc/{name}", f"{root}/etc/{name}")
    for name, text in _FILES.items():
        with open(os.path.join(root, name), "w") as file:
            file.write(text.format(user=user))
    for name in _DEVICES:
        _touch(f"{root}/dev/{name}")
        linux.mount(f"/dev/{name}", f"{root}/dev/{name}", None, linux.MS_BIND)
    for name, target in _LINKS.items():
        os.symlink(target, os.path.join(root, name))
    shutil.copytree(FOLDER, root + HARNESS)
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.pivot_root(root)
    linux.mount(
        "none", "/", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    )


def _shown(path: str, view: View) -> bool:
    return _inside(path, view) != ""


def _inside(path: str, view: View) -> str:
    """Where a path of this machine appears inside; empty when it does not."""
    for source, target in view.binds:
        if path == source or path.startswith(source + "/"):
            return target + path[len(source) :]
    return ""


def _launch_file() -> str:
    return os.path.join(FOLDER, "launch.py")


def _touch(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w"):
        pass


def _copy(source: str, target: str) -> None:
    if os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True)
    elif os.path.exists(source):
        shutil.copyfile(source, target)
