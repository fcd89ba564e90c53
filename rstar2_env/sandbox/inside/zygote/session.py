"""Runs the cells of a session in its child process, one after the other, with the same globals.

A session ends when the program exits or is ended. Covered: the loop, interrupts, and the state that is reset between
cells. Not covered: how one cell runs (``program``), and the lifetime of sessions (the warden's ``sessions``). The
report that ends a cell is sent by the program's own process; a program that forges it ends its own cell early, and its
later actions count for the next cell.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C module behind ``signal``; it has no stub
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
"""Limit on the total CPU seconds of a session, which also bounds threads that run between cells."""


def _too_late(number: int, frame: types.FrameType | None) -> None:
    """Signal handler between cells (calls of a session): ignore an interrupt that arrived after its cell ended."""


def serve(frame: wire.Frame, isolation: Isolation) -> int:
    """Run the cell in ``frame`` and all later cells; return the exit code when the warden closes the job pipe."""
    # Cells can change anything that they can reach, so everything needed between them is kept in local variables.
    exit_now, finish, flush, encode, write = os._exit, program.finish, program.flush, program.encode_report, os.write
    back, restored, read, run = program.restore, program._REMEMBERED, intake.read_job, program.run_cell
    quiet, any_exception, arm = contextlib.suppress, BaseException, _prepare
    # Avoid the enumerations of ``signal``, which cost more than everything else between two cells.
    handle, number, raising = _signal.signal, int(signal.SIGINT), signal.default_int_handler
    intake.find_own_modules()
    intake.bound(frame.header["limits"], isolation, _CPU_OVER_LIFE_S)
    gc.enable()
    state = _State()

    def disarm() -> None:
        """Ignore interrupts from now on, replacing any handler that the cell has set."""
        handle(number, _too_late)

    disarm()
    main = vars(sys.modules["__main__"])
    following: wire.Frame | None = frame
    del frame
    while following is not None:
        call_id, source = following.header["id"], ""
        try:
            source = arm(following, state)
            following = None  # frees a large cell when it ends
            handle(number, raising)
            name = f"<cell {state.cells}>"
            code, report = run(source, main, state.started, disarm, name, state.flags)
            disarm()
        except any_exception as error:  # files that exceed the limit, or an interrupt exactly at the end
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
    """The state of a session in addition to its global variables."""

    def __init__(self) -> None:
        self.cells = 0
        self.had_input = False
        self.flags = 0
        self.seed: int | None = None
        self.memory = resource.getrlimit(resource.RLIMIT_AS)

    def started(self, code: types.CodeType) -> None:
        """Record a compiled cell, so that its ``__future__`` features apply to later cells, as in a notebook.

        For the first cell, also report that the program starts.
        """
        self.flags |= code.co_flags & program.FUTURE_FLAGS
        if self.cells == 1:
            os.write(intake.REPORT_FD, wire.STARTED)

    def lower_memory(self) -> None:
        """Restore the soft memory limit that was raised to report a ``MemoryError``."""
        with contextlib.suppress(OSError, ValueError):
            if resource.getrlimit(resource.RLIMIT_AS) != self.memory:
                resource.setrlimit(resource.RLIMIT_AS, self.memory)


def _prepare(frame: wire.Frame, state: _State) -> str:
    """Set up files, standard input, random states and limits of a cell (call of a session); return its source."""
    header, given = frame.header, frame.view(1)
    state.cells += 1
    if header["files"]:
        intake.write_files(header["files"], frame)
    if given or state.had_input:
        intake.set_stdin(given)
        program.fresh_stdin()
        state.had_input = bool(given)
    if header["seed"] != state.seed:  # the same seed again continues the stream
        state.seed = header["seed"]
        seeds.seed_everything(header["seed"])
    intake.bound_cpu(header["limits"])
    return frame.blob(0).decode("utf-8", "surrogatepass")
