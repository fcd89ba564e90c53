"""A session inside its child: cell after cell in one namespace, until the program exits or the warden ends it.

Covered: the loop, interrupts, what is reset between cells. Not covered: running one cell (``program``), and lifetimes
of sessions (``sessions``). The report that ends a cell comes from the program's own process, as every report does; a
program that forges it ends its own cell early, and what it does from then on counts for the next cell.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what signal wraps; it has no stub
import contextlib
import gc
import os
import resource
import signal
import sys
import types
from typing import TYPE_CHECKING

from .. import wire
from . import intake, program, seeds

if TYPE_CHECKING:
    from ..kernel.isolation import Isolation

_CPU_OVER_LIFE_S = 3600
"""CPU seconds that a session's process may use in total, which bounds threads that run between cells."""


def _too_late(number: int, frame: types.FrameType | None) -> None:
    """Answers an interrupt between cells."""


def serve(frame: wire.Frame, isolation: Isolation) -> int:
    """Run the cell of ``frame`` and those that come after it; returns the exit code when no more come."""
    # Cells may change anything that they can reach, so what is needed between them is kept in local variables.
    exit_now, finish, flush, encode, write = os._exit, program.finish, program.flush, program.encode_report, os.write
    back, restored, read, run = program.restore, program._REMEMBERED, intake.read_job, program.run_cell
    quiet, any_exception, arm = contextlib.suppress, BaseException, _prepare
    # Without the enumerations around it, which cost more than all else between two cells.
    handle, number, raising = _signal.signal, int(signal.SIGINT), signal.default_int_handler
    intake.find_own_modules()
    intake.bound(frame.header["limits"], isolation, _CPU_OVER_LIFE_S)
    gc.enable()
    state = _State()

    def disarm() -> None:
        """Ignore interrupts from here on, and remove any handler that the cell set."""
        handle(number, _too_late)

    disarm()
    main = vars(sys.modules["__main__"])
    following: wire.Frame | None = frame
    del frame
    while following is not None:
        call_id, source = following.header["id"], ""
        try:
            source = arm(following, state)
            following = None  # so that a large cell is freed when it ends
            handle(number, raising)
            name = f"<cell {state.cells}>"
            code, report = run(source, main, state.started, disarm, name, state.flags)
            disarm()
        except any_exception as error:  # files that do not fit, or an interrupt exactly at the end
            disarm()
            code, report = 1, program.describe(error, None)
        source = ""
        if report.get("ends"):
            with quiet(any_exception):
                write(intake.REPORT_FD, encode(report))
            with quiet(any_exception):
                finish()
            exit_now(code)
        flush()
        back(restored)
        state.lower_memory()
        write(intake.REPORT_FD, encode({"done": call_id, **report}))
        following = read()
    return 0


class _State:
    """The state of a session besides its namespace."""

    def __init__(self) -> None:
        self.cells = 0
        self.had_input = False
        self.flags = 0
        self.seed: int | None = None
        self.memory = resource.getrlimit(resource.RLIMIT_AS)

    def started(self, code: types.CodeType) -> None:
        """A cell has compiled. Its ``__future__`` features stay on, as in a notebook."""
        self.flags |= code.co_flags & program.FUTURE_FLAGS
        if self.cells == 1:
            os.write(intake.REPORT_FD, wire.STARTED)

    def lower_memory(self) -> None:
        """Restore the soft memory limit that was raised to report a ``MemoryError``."""
        with contextlib.suppress(OSError, ValueError):
            if resource.getrlimit(resource.RLIMIT_AS) != self.memory:
                resource.setrlimit(resource.RLIMIT_AS, self.memory)


def _prepare(frame: wire.Frame, state: _State) -> str:
    """Files, standard input, random states and limits of one cell; returns its source."""
    header, blobs = frame.header, frame.blobs
    state.cells += 1
    if header["files"]:
        intake.write_files(header["files"], blobs[2:])
    if blobs[1] or state.had_input:
        intake.set_stdin(blobs[1])
        program.fresh_stdin()
        state.had_input = bool(blobs[1])
    if header["seed"] != state.seed:  # the same seed again continues the stream
        state.seed = header["seed"]
        seeds.seed_everything(header["seed"])
    intake.bound_cpu(header["limits"])
    return blobs[0].decode("utf-8", "surrogatepass")
