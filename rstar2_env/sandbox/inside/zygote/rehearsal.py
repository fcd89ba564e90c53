"""Runs the code of a child in its parent process beforehand, so that children find a specialized interpreter.

The interpreter specializes code that runs often, and caches attribute lookups. In a child, both changes would write to
memory pages that are shared with its parent, and so copy these pages. Therefore a parent runs the code of a child, from
the layers of isolation to the report, until the interpreter has adapted. Functions that would change the parent are
replaced by functions that do nothing; descriptors are really moved and closed, and then restored.

Covered: the steps of a child, without the effects of isolation. Not covered: the layout of memory (``warm``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import linecache
import operator
import os
import resource
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import wire
from ..kernel import linux
from ..kernel.isolation import WORKDIR, Isolation
from . import child, intake, program, seeds

if TYPE_CHECKING:
    from ..kernel.plan import IsolationPlan

_TIMES = 20
_CELLS = ("print(1)", "x = 1\nx", "1 / 0", "x =")
_LOW, _HIGH = 16, 128
"""Bounds of descriptor numbers: the code of a child uses only numbers below ``_LOW``; the rehearsal's own descriptors
have numbers from ``_HIGH`` on."""
_FILE_BYTES = 1 << 20


def rehearse(plan: IsolationPlan, readable: list[str]) -> None:
    """Run a child's code in this parent process, often enough for the interpreter to specialize its bytecode.

    Args:
        plan: The active layers of isolation.
        readable: Paths that programs can read.
    """
    main = vars(sys.modules["__main__"])
    pristine, lines, path = dict(main), dict(linecache.cache), list(sys.path)
    job = wire.pack(child.EXAMPLE, (_CELLS[0].encode(), b""))
    with _restored_descriptors(), _inert():
        # A nested user namespace is not rehearsed, since its maps are files of this process.
        isolation = Isolation(dataclasses.replace(plan, user=plan.user and plan.users_from > 0), readable)
        isolation.prepare(0, _FILE_BYTES)
        null = _move_high(os.open(os.devnull, os.O_RDWR))
        for _ in range(_TIMES):
            with _restored_descriptors():
                read, write = (_move_high(end) for end in os.pipe())
                os.write(write, job)
                isolation.enter((null, null), null, WORKDIR, 0, _FILE_BYTES)
                child.arrange((read, null, null, null))
                isolation.seal()
                frame = intake.read_job()
                assert frame is not None
                seeds.seed_everything(1)
                intake.find_own_modules()
                intake.bound(frame.header["limits"], isolation)
                for cell in _CELLS:
                    program.encode_report(program.run_cell(cell, main, bool)[1])
                    main.clear()
                    main.update(pristine)
                program.finish()
    sys.path[:] = path
    linecache.cache.clear()
    linecache.cache.update(lines)


@contextlib.contextmanager
def _inert() -> Iterator[None]:
    """Replace functions that would change this process with functions that take the same arguments and do nothing."""
    harmless = operator.is_  # built in and with two arguments like the originals, which matters for specialization
    replaced = ((os, "closerange"), (os, "chdir"), (os, "chown"), (resource, "setrlimit"))
    kept = [getattr(module, name) for module, name in replaced]
    environment = dict(os.environ)
    try:
        for module, name in replaced:
            setattr(module, name, harmless if name in ("closerange", "setrlimit") else _nothing)
        with linux.inert():
            yield
    finally:
        for (module, name), function in zip(replaced, kept, strict=True):
            setattr(module, name, function)
        os.environ.update(environment)


def _nothing(*_: object) -> None:
    """Accept any arguments and do nothing."""


@contextlib.contextmanager
def _restored_descriptors() -> Iterator[None]:
    """After the ``with`` block, restore the descriptors below ``_LOW`` that were open before, and close new ones."""
    before = _open_descriptors()
    kept = {number: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number in before if number < _LOW}
    flags = {number: os.get_inheritable(number) for number in kept}
    try:
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number, inheritable=flags[number])
        for number in _open_descriptors() - before:
            os.close(number)


def _open_descriptors() -> set[int]:
    found = set(map(int, os.listdir("/proc/self/fd")))
    for number in list(found):
        try:
            fcntl.fcntl(number, fcntl.F_GETFD)
        except OSError:  # the descriptor of the listing
            found.discard(number)
    return found


def _move_high(descriptor: int) -> int:
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(descriptor)
    return high
