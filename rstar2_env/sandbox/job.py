"""Input and output of a sandbox: ``Limits``, ``Job``, ``Outcome``; and ``Sandbox``, the protocol of a provider.

Covered: the records. Not covered: how a provider runs a job, and how a result is shown to a model (see
``rstar2_env.tools``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol, Self, runtime_checkable

from rstar2_env.core.options.declare import check_options, option
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.limits import Limits

SessionState = Literal["new", "kept", "interrupted", "ended", "died", "replaced"]
"""State of the session after a cell: see ``Outcome.session``."""
OutcomeReason = Literal[
    "wall_clock", "cpu", "memory", "processes", "files", "rest", "output", "system_call", "signal", "exit",
    "compile", "raised", "forged", "lost", "closed", "session_ended",
]  # fmt: skip
"""Why a call did not go well: see ``Outcome.reason``."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Job:
    """One program to run.

    Attributes:
        code: Python source.
        stdin: What the program reads from standard input.
        limits: What it may use.
        files: Files put into its working folder before it starts, by relative path.
        seed: Seeds ``random`` and ``numpy.random`` before the program starts, so that a call replays exactly. In a
            session, a cell reseeds only if its seed differs from that of the cell before.
        session: Name of a session whose state is kept across calls, which run one after the other; ``None`` runs in a
            fresh process. The first job of a session creates it, with that job's memory, processes and file size;
            wall clock and output count for each cell.
    """

    code: str
    stdin: str = ""
    limits: Limits = field(default_factory=Limits)
    files: Mapping[str, bytes] = field(default_factory=dict)
    seed: int = 0
    session: str | None = option(None, least=1, most=_LONGEST_NAME)

    def __post_init__(self) -> None:
        """Reject what no provider could run.

        Raises:
            ConfigurationError: A field is of the wrong type, or the session's name is empty or too long.
        """
        check_options(self, "Job.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program went.

    Status, exit code, signal, limits and times come from the parent and the kernel. The value, the error's type and
    message, and the traceback are the program's own report: shown to the model, but never able to override the rest.

    Attributes:
        status: The status of the call.
        exit_code: Exit code, or ``None`` when it was ended by a signal, never ran, or its session continues.
        signal: Name of the signal that ended it ("SIGKILL"), or ``None``.
        stdout: Standard output, undecodable bytes replaced.
        stderr: Standard error, without the traceback of the exception that ended the program.
        value: ``repr`` of a trailing expression, as a notebook echoes it; ``None`` without one.
        error_type: Name of the exception's class ("ZeroDivisionError"), or ``None``.
        error_message: Its message, or what ended the program.
        traceback: Traceback text whose line numbers are those of ``Job.code``.
        wall_s: Seconds from the program's start to its end, with time that its limit does not count.
        cpu_s: CPU seconds of the program and its children, as far as known.
        peak_memory_mb: Peak memory use in MiB, as far as known.
        truncated: Whether output was left out.
        stdout_left_out: Bytes of stdout left out.
        stderr_left_out: Bytes of stderr left out.
        attempts: How many times it was started; more than one after a failure of the sandbox itself.
        session: ``None`` without a session. ``"new"``: the first cell of a fresh session, as expected. ``"kept"``: ran
            in the existing session, which continues. ``"interrupted"``: ran out of time, or wrote too much, and
            was interrupted; the state is kept. ``"ended"``: the session died in this cell (a limit, a crash, an exit);
            the next cell starts clean. ``"died"``: the earlier session of that name ended its own process between two
            cells (a thread that exits, a timer), which is the program's doing; this cell started in a clean one.
            ``"replaced"``: the earlier session was gone for other reasons (idle too long, least recently used when
            there were too many, provider restarted); this cell started in a clean one.
        session_note: Why, in one sentence, for the last four.
        reason: What decided the status, for programs to read; ``None`` for a call that went well. Seen by the warden or
            the kernel: ``"wall_clock"``, ``"cpu"``, ``"memory"``, ``"processes"``, ``"files"``, ``"output"`` (limits),
            ``"rest"`` (a session could not be halted between cells), ``"forged"`` (a session's process spoke for the
            sandbox), ``"system_call"``, ``"signal"``, ``"exit"`` (its own, with a code that is not 0). Told by the
            program's process: ``"compile"``, ``"raised"`` (in a session that continues). Of ours, and ``unavailable``:
            ``"lost"`` (a part of the sandbox failed), ``"closed"``, ``"session_ended"`` (by the caller).
    """

    status: ToolStatus
    exit_code: int | None = None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    traceback: str | None = None
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_mb: float = 0.0
    truncated: bool = False
    stdout_left_out: int = 0
    stderr_left_out: int = 0
    attempts: int = 1
    session: SessionState | None = None
    session_note: str | None = None
    reason: OutcomeReason | None = None


@dataclass(frozen=True, slots=True)
class Capability:
    """One layer of isolation on this machine.

    Attributes:
        name: The layer ("network namespace").
        active: Whether it is active.
        detail: Why not, or by what mechanism.
        required: Whether ``isolation="strict"`` refuses to start without it.
    """

    name: str
    active: bool
    detail: str = ""
    required: bool = False


@runtime_checkable
class Sandbox(Protocol):
    """What every provider implements. Safe to call from any thread; ``arun`` from any event loop."""

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for it. A failure of the sandbox itself is an ``unavailable`` outcome, not an error."""
        ...

    async def arun(self, job: Job) -> Outcome:
        """The same, without blocking the event loop. Cancelling it ends the program."""
        ...

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs in parallel, as many at once as there is room for; returns outcomes in the order of the jobs."""
        ...

    def capabilities(self) -> Sequence[Capability]:
        """Each layer of isolation and whether it is active."""
        ...

    def end_session(self, name: str) -> None:
        """End a session and forget its state. Unknown names are ignored."""
        ...

    def close(self) -> None:
        """End every process that belongs to the sandbox. Idempotent."""
        ...

    def __enter__(self) -> Self:
        """Return the sandbox itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> Any:
        """Close it."""
        ...
