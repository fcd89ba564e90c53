"""The steps of a forked child process: isolate itself, wait for a job, run it, report, and exit.

Covered: the order of these steps, and the descriptors. Not covered: how a job is read and its limits applied
(``intake``), how a program runs (``program``), the cells of a session (``session``), and the status of the call, which
the warden decides (``verdict``).
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from .. import wire
from . import program, seeds, session
from .intake import JOB_FD, REPORT_FD, STDIN_FD, bound, find_own_modules, read_job, set_stdin, write_files

if TYPE_CHECKING:
    from ..kernel.isolation import Isolation
    from ..orders import Order

EXAMPLE = {
    "limits": {"wall_s": 5.0, "cpu_s": 6.0, "memory_bytes": 1, "processes": 1, "output_bytes": 1, "file_bytes": 1},
    "seed": 0,
    "files": [],
}
"""Header of a small job with which a child's steps are run in advance (``rehearsal``)."""


def main(descriptors: tuple[int, ...], order: Order, isolation: Isolation, init: int) -> NoReturn:
    """Isolate this process, which was just forked, run one job in it, and exit.

    Args:
        descriptors: The job pipe's reading end, the report socket, the writing ends of stdout and stderr, and the
            ``cgroup.procs`` files of the control group.
        order: The warden's message that requested this child.
        isolation: The active layers of isolation.
        init: Descriptor of the process that only holds the child's namespaces (``linux.Pausing``), or -1.
    """
    code = 1
    try:
        os.setsid()
        _, _, slot, file_bytes, _, _, workdir = order
        try:
            isolation.enter(descriptors[4:], init, workdir, slot, file_bytes)
            arrange(descriptors[:4])
            isolation.seal()
        except BaseException as error:
            os.write(descriptors[1], f"failed {type(error).__name__}: {error}".encode())
            os._exit(1)
        os.write(REPORT_FD, b"ready %d" % time.process_time_ns())
        code = _serve(isolation)
    finally:
        os._exit(code)


def _serve(isolation: Isolation) -> int:
    """Read the job, run it, and report its result; return the exit code for this process."""
    exit_now, finish, encode, write = os._exit, program.finish, program.encode_report, os.write
    try:
        frame = read_job()
        if frame is None:
            return 0
        header = frame.header
        if header.get("session") is not None:
            jobs = [frame]
            del frame, header  # otherwise the files of the first cell would stay in memory for the whole session
            return session.serve(jobs.pop(), isolation)
        os.close(JOB_FD)
        if header["files"]:
            write_files(header["files"], frame)
        if given := frame.view(1):
            set_stdin(given)
        os.close(STDIN_FD)
        source = frame.blob(0).decode("utf-8", "surrogatepass")
        del frame, given
        seeds.seed_everything(header["seed"])
        find_own_modules()
        bound(header["limits"], isolation)
        gc.enable()
    except (OSError, MemoryError) as error:  # files or a job that exceed the limits
        write(REPORT_FD, encode(program.describe(error, None)))
        return 1
    code, result = program.run_cell(source, vars(sys.modules["__main__"]), lambda _: write(REPORT_FD, wire.STARTED))
    if result:
        with contextlib.suppress(BaseException):
            write(REPORT_FD, encode(result))
    try:  # noqa: SIM105  # runs in every call, where each touched object costs a page
        finish()
    except BaseException:
        pass
    exit_now(code)


def occupy_fixed_numbers() -> None:
    """In the parent process, occupy the fixed numbers of a child's descriptors, so that no new descriptor gets them."""
    while (null := os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)) <= STDIN_FD:
        pass
    os.close(null)


def arrange(descriptors: tuple[int, ...]) -> None:
    """Copy the file descriptors to their fixed numbers, close all others, and create the file for standard input.

    None of the given descriptors has a fixed number (see ``occupy_fixed_numbers``), so no copy overwrites another.
    """
    job, report, out, err = descriptors
    dup2 = os.dup2
    dup2(os.open("/dev/null", os.O_RDONLY), 0)
    dup2(out, 1)
    dup2(err, 2)
    dup2(job, JOB_FD, False)
    dup2(report, REPORT_FD, False)
    os.closerange(STDIN_FD, 65536)
    os.memfd_create("stdin")  # gets the first free number; the filter will forbid further ones
