"""Prepares an interpreter, so that its forks are ready to run programs and cost little memory and time.

A fork copies the page tables of all memory. Later, each page is copied when a process writes to it, even if only a
reference count changes. Therefore the heap is moved to huge pages (one table entry for 2 MiB instead of 512). Since a
write to a shared huge page splits it, the memory that every child touches is separated from the preloaded modules,
whose memory is mostly unused.

Covered: imports, caches that a first use fills, the layout of memory. Not covered: forking (``server``).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import mmap
import os
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..kernel.plan import IsolationPlan

_HUGE = 2 << 20
_MADV_COLLAPSE = 25
_SMALLEST, _LARGEST, _BYTES_HEAD, _MOST_FILLERS = 48, 4096, 33, 20_000
_FILLERS: list[bytes] = []


def find(names: list[str], site_dirs: list[str]) -> None:
    """Add folders of installed packages to the import path, and check that modules exist, without importing them.

    Args:
        names: Names of the modules to check.
        site_dirs: Folders of installed packages.

    Raises:
        ModuleNotFoundError: A module is not installed.
    """
    sys.path.extend(site_dirs)
    for name in names:
        package = name.partition(".")[0]
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}")


def load(names: list[str], warmup: str) -> None:
    """Import modules, and run a warm-up program once.

    Args:
        names: Names of modules to import.
        warmup: Source of the warm-up program, which fills caches.

    Raises:
        Exception: Any exception of an import or of the warm-up.
    """
    site = importlib.import_module("site")
    for step in (site.setquit, site.setcopyright, site.sethelper):  # exit(), quit() and help() are missing with -S
        step()
    for name in names:
        importlib.import_module(name)
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")  # loads lazily; most programs that draw random numbers need it
    if warmup:
        exec(compile(warmup, "<warmup>", "exec"), {"__name__": "warmup"})


def fill_gaps() -> None:
    """Fill the free gaps between the objects of the preloaded modules, so that later objects go to other pages."""
    atexit._clear()
    gc.collect()
    gc.disable()
    old = _writable_spans()
    for size in range(_SMALLEST, _LARGEST, 16):
        for _ in range(_MOST_FILLERS):
            filler = bytes(size - _BYTES_HEAD)
            _FILLERS.append(filler)
            if not any(start <= id(filler) < end for start, end in old):
                break


def settle(plan: IsolationPlan, readable: list[str]) -> None:
    """Install import hooks for programs, and arrange memory so that children copy few pages; call this before forking.

    Args:
        plan: The active layers of isolation.
        readable: Paths that programs can read.
    """
    from . import program, seeds
    from .databases import lock_databases_by_folders
    from .rehearsal import rehearse

    lock_databases_by_folders()
    seeds.watch_imports()
    _prepare_main()
    program.remember()
    sys._clear_type_cache()  # otherwise each new entry in a child would write to the entry that it replaces
    rehearse(plan, readable)
    fill_gaps()  # again: memory freed since then is between the modules and would be reused first
    gc.freeze()
    use_huge_pages()
    inherit_code_pages()


def _prepare_main() -> None:
    """Prepare the initial state of every program: an empty module ``__main__``, the import path and the streams."""
    from ..kernel import isolation
    from . import program

    main = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]  # as in the interpreter's own
    sys.modules["__main__"] = main
    sys.path.insert(0, isolation.WORKDIR)
    # The streams examine their descriptors when they are created, so use pipes, as in a child.
    kept = [os.dup(1), os.dup(2)]
    read, write = os.pipe()
    for descriptor in (1, 2):
        os.dup2(write, descriptor)
    program.open_streams()
    for descriptor, old in zip((1, 2), kept, strict=True):
        os.dup2(old, descriptor)
    for descriptor in (*kept, read, write):
        os.close(descriptor)


def use_huge_pages() -> int:
    """Move the heap to huge pages; return the number of these pages (0 before Linux 6.1)."""
    libc = ctypes.CDLL(None, use_errno=True)
    made = 0
    for start, end in _writable_spans():
        for address in range(-(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE, _HUGE):
            made += libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(_HUGE), _MADV_COLLAPSE) == 0
    return made


def inherit_code_pages() -> None:
    """Let forks inherit the page table entries for the code of Python and the C library.

    Otherwise every child would map this code again, by a page fault for each few pages that it runs. At a fork, the
    kernel copies the entries of a mapping only if a page of it is private. Therefore one byte of each mapping is
    overwritten with its own value. If the kernel refuses this, only the speedup is missing.

    Raises:
        OSError: The kernel refuses to make the code read-only again.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for start, end in code_spans():
        span = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
        if libc.mprotect(*span, mmap.PROT_READ | mmap.PROT_EXEC | mmap.PROT_WRITE) == 0:
            ctypes.memmove(start, start, 1)
            if libc.mprotect(*span, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
                raise OSError(
                    ctypes.get_errno(), "the memory that holds Python's code could not be made read-only again"
                )


def code_spans() -> list[tuple[int, int]]:
    """Return the address ranges (start, end) of the machine code of Python and of the C library."""
    functions = (ctypes.pythonapi.Py_GetVersion, ctypes.CDLL(None).fork)
    wanted = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    spans = []
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for line in file.readlines():
            span, permissions, *_ = line.split()
            start, end = (int(address, 16) for address in span.split("-"))
            if permissions == "r-xp" and any(start <= address < end for address in wanted):
                spans.append((start, end))
    return spans


def _writable_spans() -> list[tuple[int, int]]:
    """Return the address ranges (start, end) of this process's writable memory that is not mapped from a file."""
    spans = []
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for line in file.readlines():
            span, permissions, _, _, inode, *name = line.split()
            if "w" in permissions and inode == "0" and (not name or name[0] == "[heap]"):
                start, end = (int(address, 16) for address in span.split("-"))
                spans.append((start, end))
    return spans
