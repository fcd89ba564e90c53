"""Warming an interpreter up, so that a fork of it is ready and cheap.

Covered: imports, filling caches by a first use, and laying the heap into huge pages: a fork copies one entry for 2 MiB
instead of 512, which halves its cost. Not covered: forking (``zygote``).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import sys

from . import program

_HUGE = 2 << 20
_MADV_COLLAPSE = 25


def load(preload: list[str], site_dirs: list[str], warmup: str) -> None:
    """Import what every program may want, and run the warm-up program once.

    Raises:
        Exception: Whatever an import or the warm-up raises.
    """
    sys.path.extend(site_dirs)
    site = importlib.import_module("site")
    for step in (site.setquit, site.setcopyright, site.sethelper):  # exit(), quit() and help(), absent with -S
        step()
    for name in preload:
        importlib.import_module(name)
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")  # it loads lazily, and most programs that draw will want it
    if warmup:
        exec(compile(warmup, "<warmup>", "exec"), {"__name__": "warmup"})


def settle() -> None:
    """Bring memory into the state that forks start from. Call it last."""
    atexit._clear()
    program.remember()
    gc.collect()
    gc.disable()
    gc.freeze()
    use_huge_pages()


def use_huge_pages() -> int:
    """Ask the kernel to back the heap by huge pages now; returns how many it made (none before Linux 6.1)."""
    libc = ctypes.CDLL(None, use_errno=True)
    made = 0
    with contextlib.suppress(OSError), open("/proc/self/maps") as file:
        for line in file.readlines():
            span, permissions, _, _, inode, *name = line.split()
            if "w" not in permissions or inode != "0" or (name and name[0] != "[heap]"):
                continue
            start, end = (int(address, 16) for address in span.split("-"))
            for address in range(-(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE, _HUGE):
                made += libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(_HUGE), _MADV_COLLAPSE) == 0
    return made
