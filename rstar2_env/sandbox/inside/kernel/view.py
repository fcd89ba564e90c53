"""Builds a program's file system: a small private root, read-only, with Python and the system's libraries.

Covered: the visible folders and their locations, and the construction of the root in a new mount namespace. Not
covered: the private ``/tmp`` and ``/proc`` of each call, which the child mounts (``isolation``). The user's home is not
visible: an interpreter or packages in it appear below ``/python`` and ``/packages``. Installed packages that the option
``packages`` does not name are hidden (module ``packages``).
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field

from . import linux, packages

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types")
_DEVICES = ("null", "full", "random", "urandom")  # not zero: mapping it makes shared anonymous memory
_LINKS = {"dev/fd": "/proc/self/fd", "dev/stdin": "/proc/self/fd/0", "dev/stdout": "/proc/self/fd/1", "dev/shm": "/tmp"}
_FILES = {
    "etc/passwd": "sandbox:x:{user}:{user}:sandbox:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "sandbox:x:{user}:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
HARNESS = "/sandbox"
PACKAGES = "/packages"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package ``inside``, which holds the programs of the sandbox."""


@dataclass(slots=True)
class FileView:
    """The files that a program can see, and their paths.

    Attributes:
        python: Path of the interpreter.
        launch: Path of ``launch.py``, which starts the programs of the sandbox itself.
        site_dirs: Folders of installed packages.
        library_path: ``LD_LIBRARY_PATH``, or empty.
        readable: All visible paths, read-only.
        binds: Bind mounts: pairs of a path on this machine and its path in the private root.
        covered: Paths in the private root that are replaced by empty folders.
        copies: Files to copy: pairs of a path on this machine and its path in the private root.
        links: Without a mount namespace: links to packages, which are created in the only folder of ``site_dirs``; the
            target of each link, by the link's name.
        root_folders: Names of folders in ``/tmp``; the root folder gets a link of the same name to each of them.
    """

    python: str
    launch: str
    site_dirs: list[str]
    library_path: str = ""
    readable: list[str] = field(default_factory=list)
    binds: list[tuple[str, str]] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    copies: list[tuple[str, str]] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    root_folders: list[str] = field(default_factory=list)


def plain_view(site_dirs: list[str], readable: list[str], named: list[str] | None, scratch: str) -> FileView:
    """Return a view with the machine's own paths, for use without a mount namespace.

    Args:
        site_dirs: Folders of installed packages, real paths.
        readable: Additional paths that programs can read.
        named: The packages to show; ``None`` shows all.
        scratch: The warden's folder, in which the folder of links to packages is created.
    """
    prefix = os.path.realpath(sys.base_prefix)
    system = [prefix, *_SYSTEM, *(f"/etc/{name}" for name in _ETC)]
    view = FileView(sys.executable, os.path.join(FOLDER, "launch.py"), site_dirs)
    if named is not None:
        links = os.path.join(scratch, "packages")
        view.site_dirs, view.links = [links], packages.shown(named, site_dirs)
        left_out = packages.hidden(site_dirs, readable)
        system = [path for one in system if os.path.exists(one) for path in packages.without(one, left_out)]
        system += [links, *map(os.path.realpath, view.links.values())]
    else:
        system += site_dirs
    view.readable = [
        path for path in dict.fromkeys([*system, *readable, FOLDER]) if os.path.exists(path) or path in view.site_dirs
    ]
    return view


def private_view(
    site_dirs: list[str], readable: list[str], named: list[str] | None, root_folders: list[str]
) -> FileView:
    """Return a view with the paths of the private root.

    Args:
        site_dirs: Folders of installed packages, real paths.
        readable: Additional paths, visible at the same path.
        named: The packages to show; ``None`` shows all.
        root_folders: Names of folders in ``/tmp`` that programs also find at the root.

    Raises:
        OSError: The Python interpreter is outside of its installation folder, and not below a readable path.
    """
    base = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    prefix = os.path.realpath(sys.base_prefix)
    view = FileView(base, f"{HARNESS}/launch.py", [], root_folders=root_folders)
    for folder in _SYSTEM:
        if os.path.isdir(folder) and not os.path.islink(folder):
            view.binds.append((folder, folder))
    view.binds += [(path, path) for path in readable]
    if not _inside(prefix, view):
        libraries = os.path.join(prefix, "lib")
        for name in dict.fromkeys(("lib", sys.platlibdir)):  # such as lib64
            if os.path.isdir(folder := os.path.join(prefix, name)):
                view.binds.append((folder, f"/python/{name}"))
        if base.startswith(prefix + "/"):  # without the scripts next to it, such as pip
            view.binds.append((base, "/python" + base[len(prefix) :]))
        if any(name.startswith("libpython") for name in os.listdir(libraries)):
            view.library_path = "/python/lib"  # the interpreter's built-in path is not valid inside
    if not _inside(base, view):
        raise OSError(
            0,
            f"the Python interpreter {base} is outside of its installation folder {prefix}: add the "
            "interpreter's folder to the option `readable`",
        )
    view.python = _inside(base, view)
    view.readable = ["/"]
    if named is None:
        for number, folder in enumerate(site_dirs):
            if not _inside(folder, view):
                view.binds.append((folder, f"{PACKAGES}/{number}"))
        view.site_dirs = [_inside(folder, view) for folder in site_dirs]
        return view
    view.covered = [inside for path in packages.hidden(site_dirs, readable) if (inside := _inside(path, view))]
    view.site_dirs = [PACKAGES]
    for name, source in packages.shown(named, site_dirs).items():
        if name.endswith((".dist-info", ".egg-info")):  # copy only the text: each mount slows down every call
            text = os.path.join(source, "METADATA")
            view.copies.append((text, f"{PACKAGES}/{name}/METADATA"))
        else:
            view.binds.append((source, f"{PACKAGES}/{name}"))
    return view


def link(view: FileView) -> None:
    """Create the folder of links to packages in the warden's scratch folder, for use without a mount namespace."""
    if view.links:
        (folder,) = view.site_dirs
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)
        for name, source in view.links.items():
            os.symlink(source, os.path.join(folder, name))


def build(view: FileView, root: str, user: int) -> None:
    """Build the private root in the folder ``root``, and make it this process's root.

    Args:
        view: The visible files.
        root: An empty folder. The process must have its own mount namespace.
        user: User id of programs, for ``/etc/passwd``.
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
    os.makedirs(root + PACKAGES, exist_ok=True)
    for source, target in view.copies:
        if os.path.isfile(source):
            os.makedirs(os.path.dirname(root + target), exist_ok=True)
            shutil.copyfile(source, root + target)
    for target in view.covered:
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_RDONLY
        linux.mount("tmpfs", root + target, "tmpfs", flags, "size=4k,mode=755")
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
    for name in view.root_folders:
        os.symlink(f"/tmp/{name}", os.path.join(root, name))
    shutil.copytree(FOLDER, root + HARNESS)
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.pivot_root(root)
    linux.mount(
        "none", "/", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    )


def _inside(path: str, view: FileView) -> str:
    """Convert a path of this machine to its path in the private root; empty if it is not visible there."""
    for source, target in view.binds:
        if path == source or path.startswith(source + "/"):
            return target + path[len(source) :]
    return ""


def _touch(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w"):
        pass


def _copy(source: str, target: str) -> None:
    if os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True)
    elif os.path.exists(source):
        shutil.copyfile(source, target)
