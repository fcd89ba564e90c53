"""Running in a parent what every child runs, so that no child has to prepare the interpreter for it.

An interpreter specializes code that runs often, and remembers where it found each attribute. Done in a child, both
write to memory that it shares with its parent, and each such page is copied. So a parent does what a child does, from
the layers of isolation to the report, until nothing is left to learn. What would change the parent is replaced for that
time by calls that do nothing; descriptors are real, and put back.

Covered: one child's way, without its isolation. Not covered: where memory lies (``warm``).
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
"""Below the first, descriptors are used by number; from the second on, they are out of the way."""
_FILE_BYTES = 1 << 20


def rehearse(plan: IsolationPlan, readable: list[str]) -> None:
    """Do what a child does, as often as the interpreter needs to specialize it.

    Args:
        plan: The active layers.
        readable: Paths that programs may read.
    """
    main = vars(sys.modules["__main__"])
    pristine, lines, path = dict(main), dict(linecache.cache), list(sys.path)
    job = wire.pack(child.EXAMPLE, (_CELLS[0].encode(), b""))
    with _descriptors_put_back(), _inert():
        # A nested user namespace is not rehearsed: its maps are files of this very process.
        isolation = Isolation(dataclasses.replace(plan, user=plan.user and plan.users_from > 0), readable)
        isolation.prepare(0, _FILE_BYTES)
        null = _out_of_the_way(os.open(os.devnull, os.O_RDWR))
        for _ in range(_TIMES):
            with _descriptors_put_back():
                read, write = (_out_of_the_way(end) for end in os.pipe())
                os.write(write, job)
                isolation.enter((null, null), null, WORKDIR, 0, _FILE_BYTES)
                child.arrange((read, null, null, null))
                intake.limit(resource.RLIMIT_NOFILE, child.OPEN_FILES, child.OPEN_FILES)
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
    """Replace what would change this process by functions that take the same arguments and do nothing."""
    harmless = operator.is_  # like the others it is built in and takes two values, which counts for specialization
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
    """Do nothing."""


@contextlib.contextmanager
def _descriptors_put_back() -> Iterator[None]:
    """Close what is opened meanwhile, and put back what was behind the low numbers."""
    before = _open_ones()
    kept = {number: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number in before if number < _LOW}
    flags = {number: os.get_inheritable(number) for number in kept}
    try:
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number, inheritable=flags[number])
        for number in _open_ones() - before:
            os.close(number)


def _open_ones() -> set[int]:
    found = set(map(int, os.listdir("/proc/self/fd")))
    for number in list(found):
        try:
            fcntl.fcntl(number, fcntl.F_GETFD)
        except OSError:  # the one that listed them
            found.discard(number)
    return found


def _out_of_the_way(descriptor: int) -> int:
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(descriptor)
    return high
