"""What a forked child does: isolate itself, wait for its job, run it, report, and exit.

Covered: the order of those steps, rlimits, the working folder and the descriptors. Not covered: what a program does
inside (``program``), and every judgement on it, which is the warden's (``judge``).
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import resource
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from . import program, seeds, wire

if TYPE_CHECKING:
    from .isolation import Isolation
    from .orders import Order

JOB_FD, REPORT_FD, STDIN_FD = 3, 4, 5
EXAMPLE = {
    "limits": {"wall_s": 5.0, "cpu_s": 6.0, "memory_bytes": 1, "processes": 1, "output_bytes": 1, "file_bytes": 1},
    "seed": 0,
    "files": [],
}
"""The header of a job, as the caller sends it."""
_OPEN_FILES = 256
_SPARE_MEMORY = 32 << 20
"""Bytes between the soft and the hard limit on memory: room to report a MemoryError."""


def main(descriptors: tuple[int, ...], order: Order, isolation: Isolation, init: int) -> NoReturn:
    """Isolate this process, which was just forked, run one job in it, and exit.

    Args:
        descriptors: The job pipe's reading end, the report socket, the writing ends of stdout and stderr, and the
            entrances of the control group.
        order: What the warden said about this child.
        isolation: The layers.
        init: Descriptor of the pausing process that holds the child's namespaces, or -1.
    """
    code = 1
    try:
        os.setsid()
        try:
            isolation.enter(descriptors[4:], init, order.workdir, order.slot, order.value)
            _arrange(descriptors[:4])
            _limit(resource.RLIMIT_CORE, 0, 0)
            _limit(resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES)
            isolation.seal()
        except BaseException as error:
            os.write(descriptors[1], f"failed {type(error).__name__}: {error}".encode())
            os._exit(1)
        os.write(REPORT_FD, b"ready %d" % time.process_time_ns())
        code = _serve(isolation)
    finally:
        os._exit(code)


def _serve(isolation: Isolation) -> int:
    """Read the job, run it, report; returns the exit code when there is no program to be ended for."""
    exit_now, finish, encode, write = os._exit, program.finish, program.encode_report, os.write
    try:
        frame = _read_job()
        if frame is None:
            return 0
        header, blobs = frame.header, frame.blobs
        if header["files"]:
            _write_files(header["files"], blobs[2:])
        if blobs[1]:
            _set_stdin(blobs[1])
        os.close(STDIN_FD)
        source = blobs[0].decode("utf-8", "surrogatepass")
        del frame, blobs
        seeds.seed_everything(header["seed"])
        if sys.path[0] != os.getcwd():
            sys.path.insert(0, os.getcwd())
        _dynamic_limits(header["limits"], isolation)
        gc.enable()
    except (OSError, MemoryError) as error:  # files that do not fit, a job larger than its memory
        write(REPORT_FD, encode(program.describe(error, None)))
        return 1
    code, result = program.run_cell(source, vars(sys.modules["__main__"]), lambda: write(REPORT_FD, wire.STARTED))
    if result:
        with contextlib.suppress(BaseException):
            write(REPORT_FD, encode(result))
    with contextlib.suppress(BaseException):
        finish()
    exit_now(code)


def _arrange(descriptors: tuple[int, ...]) -> None:
    """Lay the descriptors out at their fixed numbers and close every other one."""
    # First far above, so that no move lands on one that is still to be moved.
    job, report, out, err = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64) for descriptor in descriptors)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (err, 2), (job, JOB_FD), (report, REPORT_FD)):
        os.dup2(source, target, inheritable=target < 3)
    os.closerange(STDIN_FD, 65536)
    os.memfd_create("stdin")  # takes the first free number; the filter will allow no other


def _dynamic_limits(limits: dict[str, Any], isolation: Isolation) -> None:
    """Apply the job's own limits, last of all before its code runs."""
    spent = time.process_time()
    cpu = limits["cpu_s"] + spent
    cpu_whole = max(1, int(-(-cpu // 1)))
    _limit(resource.RLIMIT_CPU, cpu_whole, cpu_whole + 1)
    _limit(resource.RLIMIT_FSIZE, limits["file_bytes"], limits["file_bytes"])
    memory = limits["memory_bytes"] + isolation.base_memory
    _limit(resource.RLIMIT_AS, memory, memory + _SPARE_MEMORY)
    if (most := isolation.most_processes(limits["processes"])) is not None:
        _limit(resource.RLIMIT_NPROC, most, most)


def _limit(kind: int, soft: int, hard: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, old_hard = resource.getrlimit(kind)
    if old_hard != resource.RLIM_INFINITY:
        hard = min(hard, old_hard)
    resource.setrlimit(kind, (min(soft, hard), hard))


def _read_job() -> wire.Frame | None:
    """Read the one frame that comes down the job pipe; ``None`` when it closes empty."""
    chunks, have, want = [], 0, wire.PREFIX_BYTES
    whole = False
    while have < want:
        data = os.read(JOB_FD, min(want - have, 1 << 20))
        if not data:
            return None
        chunks.append(data)
        have += len(data)
        if not whole and have >= wire.PREFIX_BYTES:
            chunks = [b"".join(chunks)]
            want, whole = wire.frame_bytes(chunks[0]), True
    os.close(JOB_FD)
    return wire.unpack(b"".join(chunks))


def _write_files(names: list[str], contents: list[bytes]) -> None:
    for name, content in zip(names, contents, strict=True):
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as file:
            file.write(content)


def _set_stdin(data: bytes) -> None:
    """Put ``data`` behind descriptor 0, which is at its end from the start without any."""
    view = memoryview(data)
    while view:
        view = view[os.write(STDIN_FD, view) :]
    os.lseek(STDIN_FD, 0, os.SEEK_SET)
    os.dup2(STDIN_FD, 0)
