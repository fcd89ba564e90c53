"""``Job`` and ``Outcome``: input and output of a sandbox; ``Sandbox``: the interface of every provider.

Not covered: limits (``limits``), how a job runs (the providers), and the text of a result for a model
(``rstar2_env.tools``).
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
"""State of a session after one of its calls; see ``Outcome.session``."""
OutcomeReason = Literal[
    "wall_clock", "cpu", "memory", "processes", "files", "pipes", "rest", "output", "system_call", "signal",
    "exit", "compile", "raised", "forged", "lost", "closed", "session_ended",
]  # fmt: skip
"""Cause of an outcome's status; see ``Outcome.reason``."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Job:
    """One Python program to run in a sandbox.

    Attributes:
        code: Python source.
        stdin: Contents of standard input; empty by default.
        limits: Limits of the program.
        files: Contents of files to write into the working folder before the program starts, by relative path.
        seed: Seed of ``random`` and ``numpy.random``, 0 by default, so that a call can be replayed exactly. In a
            session, a cell reseeds only if its seed differs from the seed of the previous cell.
        session: Name of a session, which keeps its Python state across calls; its calls (cells) run one after the
            other. ``None`` runs the program in a fresh process. The first job of a session creates it with that job's
            limits on memory, processes and file size; the limits on wall clock, CPU time and output apply to each cell.
    """

    code: str
    stdin: str = ""
    limits: Limits = field(default_factory=Limits)
    files: Mapping[str, bytes] = field(default_factory=dict)
    seed: int = 0
    session: str | None = option(None, least=1, most=_LONGEST_NAME)

    def __post_init__(self) -> None:
        """Reject a job that no provider could run.

        Raises:
            ConfigurationError: A field has the wrong type, or the name of the session is empty or too long.
        """
        if not self._is_plainly_valid():
            check_options(self, "Job.")

    def _is_plainly_valid(self) -> bool:
        """Whether every field has exactly its declared type; this is faster than the generic option checks."""
        session = self.session
        return (
            type(self.code) is str
            and type(self.stdin) is str
            and type(self.limits) is Limits
            and type(self.files) is dict
            and not self.files
            and type(self.seed) is int
            and (session is None or (type(session) is str and 0 < len(session) <= _LONGEST_NAME))
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one job.

    The warden and the kernel determine the status, exit code, signal, times and memory. The program itself reports the
    value, the error's type and message, and the traceback: they are shown to the model, but never override an
    observation of the warden.

    Attributes:
        status: The status of the call.
        exit_code: Exit code; ``None`` if a signal ended the program, if it never ran, or if its session continues.
        signal: Name of the signal that ended the program ("SIGKILL"), or ``None``.
        stdout: Standard output; undecodable bytes are replaced.
        stderr: Standard error, without the traceback of the exception that ended the program.
        value: ``repr`` of a trailing expression, as in a notebook; ``None`` without one.
        error_type: Name of the exception's class ("ZeroDivisionError"), or ``None``.
        error_message: Message of the exception, or the reason why the program was ended.
        traceback: Traceback; its line numbers refer to ``Job.code``.
        wall_s: Seconds from the start of the program to its end, including time that its limit does not count.
        cpu_s: CPU seconds of the program and its children; 0 if unknown.
        peak_memory_mb: Peak memory use in MiB; 0 if unknown.
        truncated: Whether output, or a part of ``value``, was dropped.
        stdout_left_out: Number of dropped bytes of stdout.
        stderr_left_out: Number of dropped bytes of stderr.
        attempts: Number of times that the call was started; more than one after a failure of the sandbox itself.
        session: ``None`` without a session. ``"new"``: first cell of a new session. ``"kept"``: the cell ran in the
            existing session, which continues. ``"interrupted"``: the cell exceeded its time or output limit and was
            interrupted; the state is kept. ``"ended"``: the session ended in this cell (a limit, a crash, an exit); the
            next cell starts in a new session. ``"died"``: the process of the earlier session exited on its own between
            two cells (a thread that exits, a timer), which is the program's fault; this cell started in a new session.
            ``"replaced"``: the earlier session was lost for another reason (idle too long, least recently used while
            there were too many, provider restarted); this cell started in a new session.
        session_note: Reason in one sentence for "interrupted", "ended", "died" and "replaced".
        reason: Machine-readable cause of the status; ``None`` for a successful call. Observed by the warden or the
            kernel: ``"wall_clock"``, ``"cpu"``, ``"memory"``, ``"processes"``, ``"files"``, ``"pipes"``, ``"output"``
            (limits), ``"rest"`` (a session could not be halted between cells), ``"forged"`` (the program forged a
            message of the sandbox), ``"system_call"``, ``"signal"``, ``"exit"`` (nonzero exit code). Reported by the
            process of the program: ``"compile"``, ``"raised"`` (an exception in a session that continues). Failures of
            the sandbox or acts of the caller, with status ``unavailable``: ``"lost"``, ``"closed"``,
            ``"session_ended"``.
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
        active: Whether the layer is active.
        detail: The mechanism if the layer is active, or the reason why it is not.
        required: Whether ``isolation="strict"`` requires the layer.
    """

    name: str
    active: bool
    detail: str = ""
    required: bool = False


@runtime_checkable
class Sandbox(Protocol):
    """Interface of every sandbox. Safe to call from any thread; ``arun`` from any event loop."""

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for its outcome, which has the status ``unavailable`` if the sandbox itself fails."""
        ...

    async def arun(self, job: Job) -> Outcome:
        """Run one job without blocking the event loop. Cancelling the coroutine ends the program."""
        ...

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs, as many in parallel as there are workers; return the outcomes in the order of the jobs."""
        ...

    def capabilities(self) -> Sequence[Capability]:
        """Return each layer of isolation, and whether it is active."""
        ...

    def end_session(self, name: str) -> None:
        """End a session and delete its state; an unknown name is ignored."""
        ...

    def close(self) -> None:
        """End all processes of the sandbox; closing again has no effect."""
        ...

    def __enter__(self) -> Self:
        """Return the sandbox itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> Any:
        """Close the sandbox."""
        self.close()
