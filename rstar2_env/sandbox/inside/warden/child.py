"""The warden's records of a child process (``Child``), of a call (``Call``) and of a session (``Session``).

The three classes are in one module because they refer to one another. Covered: the pipes, reports and times of a child.
Not covered: its slot (``slot``), and scheduling (``supervisor``, ``cells``).
"""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import socket
import struct
import tempfile
import termios
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..orders import BROKEN, FORK, KILL, WATCH, OrderReply, pack_order
from ..wire import STARTED
from .slot import ChildSlot
from .stream import Stream
from .verdict import Seen, verdict

if TYPE_CHECKING:
    from .parent import Parent

_READ = 1 << 18
_FED_AT_ONCE = 1 << 20
"""Maximum number of bytes of a job that are written to a child in one round of the event loop."""
_CREDENTIALS = struct.Struct("iii")
_LIMITS = ("wall_s", "cpu_s", "memory_bytes", "processes", "output_bytes", "file_bytes")
_MOST = 1 << 62
_MAX_REPORTS = 16
_MAX_REPORT_BYTES = 1 << 19


@dataclass(slots=True, eq=False)
class Call:
    """The warden's record of one job.

    Attributes:
        id: Id of the call.
        limits: Limits of the job, as in its frame.
        raw: Frame of the job.
        parent: Parent process whose child should run the job.
        line: Key of the call's queue in the backlog: its parent, or ``None`` if its session already has a process.
        order: Position in the order of arrival (see ``backlog``).
        child: The child process that runs the job; ``None`` until the job is sent to a child.
        session: Session of the call, or ``None``.
        state: State of the session, for the outcome's field ``session``.
        note: Note about the session, for the outcome's field ``session_note``; ``None`` for no note.
        cancelled: Whether the outcome is no longer needed.
        restarts: Number of times that the job was started again because its program had not begun to run.

    Raises:
        ValueError: The limits are invalid.
    """

    id: int
    limits: dict[str, Any]
    raw: bytes | bytearray
    parent: Parent
    line: Parent | None = None
    order: int = 0
    child: Child | None = None
    session: Session | None = None
    state: str = "new"
    note: str | None = None
    cancelled: bool = False
    restarts: int = 0

    def __post_init__(self) -> None:
        """Check that every limit is a number in range."""
        for name in _LIMITS:
            number = self.limits.get(name)
            if not (isinstance(number, (int, float)) and 0 < number < _MOST):
                raise ValueError(
                    f"a call must have the limits {', '.join(_LIMITS)}, each positive and below {_MOST}, "
                    f"not {self.limits}"
                )


@dataclass(slots=True, eq=False)
class Session:
    """The warden's record of one session, from its first to its last call. The session's process may be replaced.

    Attributes:
        name: Name of the session.
        pending: Calls that wait for their turn.
        turn: The call whose turn it is, which waits for a process or runs; ``None`` if the session is idle.
        child: Process of the session; ``None`` if it has none now.
        held: Whether the session counts towards the limits on sessions.
        memory: Bytes of memory that the session counts towards the memory limit of all sessions.
        note: Note for the outcome of the next cell, or ``None``.
        signalled: Whether an interrupt was ordered, and the parent has not confirmed yet that it was sent. Until then,
            the next cell waits, so that the interrupt does not reach that cell.
        deadline_at: Time (of ``time.monotonic``) at which the current deadline timer fires; 0 if there is none.
    """

    name: str
    pending: deque[Call] = field(default_factory=deque)
    turn: Call | None = None
    child: Child | None = None
    held: bool = False
    memory: int = 0
    note: str | None = None
    signalled: bool = False
    deadline_at: float = 0.0


class Child:
    """The warden's record of one child process, from the order to fork it until all its processes have ended.

    Args:
        number: Number that identifies the child in orders and replies.
        slot: Slot whose user, control group and working folder the child uses.
        file_bytes: Size of the child's private file system in bytes.
        parent: Process from which the child is forked.
    """

    def __init__(self, number: int, slot: ChildSlot, file_bytes: int, parent: Parent) -> None:
        self.number = number
        self.slot = slot
        self.parent = parent
        self.file_bytes = file_bytes
        self.workdir = "/tmp" if slot.scratch is None else tempfile.mkdtemp(prefix="call-", dir=slot.scratch)
        job_r, self.job_fd = os.pipe()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        self.report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.theirs: tuple[int, ...] = (job_r, theirs.detach(), out_w, err_w)
        self.report.setblocking(False)
        for descriptor in (self.job_fd, out_r, err_r):
            os.set_blocking(descriptor, False)
        self.streams = (Stream(out_r), Stream(err_r))
        self.open_ends = 3
        self.call: Call | None = None
        self.limits: dict[str, Any] = {}  # limits of its first job, which apply for its lifetime
        self.ready = False
        self.failure: str | None = None
        self.job_left = memoryview(b"")
        self.cpu_at_start = self.cpu_s = 0.0
        self.peak_kb = 0
        self.started_at = self.ended_at = 0.0
        self.wait_status: int | None = None
        self.gone = self.settled = self.discarded = self.broken = False
        self.muted: list[int] = []  # descriptors that are not read until the next cell
        self.halted = self.halt_due = False  # whether it is stopped between two cells; whether that is scheduled
        self.idle_since = 0.0
        self.ending = self.written_off = False  # whether it was ordered to end; whether its end is no longer awaited
        self._due_from = time.monotonic()  # when it was ordered to start or to end; 0 while neither is awaited
        self.stopped_for: str | None = None
        self.compiled = False
        self.reached = False  # whether any part of the job was written to it
        self.session: Session | None = None
        self._pid = 0
        self._reports: list[bytes] = []
        self._reported = 0

    def fork(self) -> None:
        """Order the parent process to fork this child.

        Raises:
            OSError: The parent has ended.
        """
        order = pack_order(FORK, self.number, self.slot.index, self.file_bytes, workdir=self.workdir)
        self.parent.link.fork(order, [*self.theirs, *self.slot.entrances])
        self.close_theirs()

    def watch(self, tasks: int, memory: int, files: int, pipes: int) -> None:
        """Order the parent process to limit the resources of the child's process tree; 0 means unlimited.

        Args:
            tasks: Largest number of processes and threads.
            memory: Largest memory in bytes.
            files: Largest total size of files below the working folder, in bytes.
            pipes: Largest number of pipes.

        Raises:
            OSError: The parent has ended.
        """
        self.parent.link.send(pack_order(WATCH, self.number, tasks, memory, files, pipes, self.workdir))

    def order(self, kind: int) -> None:
        """Send the parent process an order without arguments, such as ``KILL``, ``HALT`` or ``INTERRUPT``.

        Raises:
            OSError: The parent has ended.
        """
        if kind == KILL:
            self.note_ending(time.monotonic())
        self.parent.link.send(pack_order(kind, self.number))

    @property
    def is_idle(self) -> bool:
        """Whether the child is the process of a session in which no cell runs now."""
        return self.session is not None and self.call is None

    @property
    def output_limit(self) -> int:
        """Limit of each output stream in bytes; 0 before the child has a job."""
        return int(self.call.limits["output_bytes"]) if self.call is not None else 0

    def note(self, message: bytes) -> None:
        """Store a message from the child, up to a total size, since a program can send any number of messages."""
        if not self.compiled and message == STARTED:
            self.compiled = True
            if self.call is not None:
                self.call.raw = b""  # it will not be sent again
            return
        self._reported += len(message)
        if self._reported <= _MAX_REPORT_BYTES:
            self._reports = [*self._reports[-_MAX_REPORTS:], message]

    def feed(self) -> bool:
        """Write the next part of the job to the child, up to a limit, so that a long job does not delay other calls.

        Returns:
            Whether nothing is left to write: the job was written completely, or the child can no longer read.
        """
        room = _FED_AT_ONCE
        try:
            while self.job_left and room > 0:
                written = os.write(self.job_fd, self.job_left[:room])
                self.job_left = self.job_left[written:]
                room -= written
                self.reached = True
        except BlockingIOError:
            return False
        except OSError:
            self.job_left = memoryview(b"")
        if self.job_left:
            return False
        self.job_left = memoryview(b"")  # an empty view of the rest would keep the whole job in memory
        return True

    def unread(self) -> bool:
        """Whether a part of the job has not been written to the process yet, or the process has not read it yet."""
        if self.job_left:
            return True
        waiting = array.array("i", [0])
        fcntl.ioctl(self.job_fd, termios.FIONREAD, waiting)
        return waiting[0] > 0

    def begin(self, call: Call) -> None:
        """Assign a call to the child: its only job, or the next cell of the child's session."""
        if self.session is not None:
            self._reports, self._reported, self.stopped_for = [], 0, None
            self.compiled = True  # like the earlier cells of the session
            self.cpu_at_start = self._cpu_now()
        elif call.session is not None:
            self.session = call.session
            self.report.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.limits = self.limits or call.limits
        self.call, call.child = call, self
        self.job_left = memoryview(call.raw)
        self.reached = False
        self.started_at = time.monotonic()

    def has_message(self) -> bool:
        """Whether a message from the child, or the end of its socket, can be received without waiting."""
        poll = select.poll()
        poll.register(self.report, select.POLLIN)
        return bool(poll.poll(0))

    def receive(self) -> bytes:
        """Receive the next message from the child; empty if the socket is closed.

        Raises:
            BlockingIOError: There is no message now.
        """
        try:
            if self.session is None or self._pid:
                return self.report.recv(_READ)
            # The first message is from the harness; the kernel adds the id of the sender.
            message, ancillary, _, _ = self.report.recvmsg(_READ, socket.CMSG_SPACE(_CREDENTIALS.size))
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                    self._pid = _CREDENTIALS.unpack(data)[0]
            return message
        except BlockingIOError:
            raise
        except OSError:
            return b""

    def finish_cell(self, message: bytes) -> tuple[dict[str, Any], tuple[bytes, bytes]]:
        """Return the outcome of a cell whose session continues, as ``outcome`` does, and prepare for the next cell.

        Args:
            message: The child's message about the end of the cell.
        """
        for stream in self.streams:
            stream.take(self.output_limit)
        self._reports = [message]
        self.cpu_s = max(0.0, self._cpu_now() - self.cpu_at_start)
        found = self.outcome()
        self.call, self._reports = None, []
        for stream in self.streams:
            stream.kept, stream.left_out = bytearray(), 0
        return found

    def _cpu_now(self) -> float:
        """CPU seconds of the main process, from its CPU clock; 0 if unknown."""
        try:
            return time.clock_gettime((~self._pid << 3) | 2) if self._pid else 0.0
        except OSError:
            return 0.0

    def become_ready(self, cpu_s: float) -> None:
        """Record that the child is isolated and waits for a job, after using ``cpu_s`` CPU seconds."""
        self.ready, self.cpu_at_start = True, cpu_s
        if not self.ending:
            self._due_from = 0.0

    def note_ending(self, now: float) -> None:
        """Record that the end of the child began at the time ``now``, unless an earlier time is recorded already."""
        if not self.ending:
            self.ending, self._due_from = True, now

    def is_overdue(self, now: float, timeout_s: float) -> bool:
        """Whether the child takes more than ``timeout_s`` seconds to become ready, or to end after an order to end."""
        return self._due_from > 0 and now - self._due_from > timeout_s

    def end(self, reply: OrderReply, now: float) -> None:
        """Record the end of the child process, which its parent process reported."""
        self.note_ending(now)  # other processes of its tree may still run
        self.wait_status, self.peak_kb, self.ended_at = reply.status, reply.peak_kb, now
        self.broken = reply.kind == BROKEN
        self.cpu_s = max(0.0, reply.cpu_s - self.cpu_at_start)

    def lost(self) -> str | None:
        """Return the reason if the call was lost through no fault of its program; ``None`` in any other case."""
        if self.stopped_for is not None or self.wait_status != signal.SIGKILL:
            return None
        if self.broken:
            return "the process above the program (pid 1 of its namespace) was killed from outside"
        assert self.call is not None
        if self.compiled or self.cpu_s >= self.call.limits["cpu_s"] or self.out_of_memory():
            return None
        return "its process was killed from outside before the program began"

    def out_of_memory(self) -> bool:
        """Whether the kernel killed processes of this call because they exceeded the memory limit."""
        return self.slot.group is not None and self.slot.group.out_of_memory()

    def outcome(self) -> tuple[dict[str, Any], tuple[bytes, bytes]]:
        """Return the outcome of the child's call: the fields of ``Outcome``, and the bytes of (stdout, stderr)."""
        assert self.call is not None
        out, err = self.streams
        group = self.slot.group
        found = verdict(
            Seen(
                wait_status=self.wait_status,
                stopped_for=self.stopped_for,
                out_of_memory=self.out_of_memory(),
                started=self.compiled,
                cpu_s=self.cpu_s,
                cpu_limit_s=self.call.limits["cpu_s"],
                output=bool(out.kept or err.kept),
                over_output=bool(out.left_out or err.left_out),
                reports=self._reports,
                lives=self.wait_status is None and self.session is not None and not self.written_off,
            )
        )
        found |= {
            "stdout_left_out": out.left_out,
            "stderr_left_out": err.left_out,
            "wall_s": (self.ended_at or time.monotonic()) - self.started_at,
            "cpu_s": self.cpu_s,
            "peak_memory_mb": (group.peak_bytes() if group is not None else 0) / 2**20 or self.peak_kb / 1024,
        }
        return found, (bytes(out.kept), bytes(err.kept))

    def close_job(self) -> None:
        """Close the pipe through which the child receives jobs."""
        if self.job_fd >= 0:
            os.close(self.job_fd)
            self.job_fd = -1

    def close_stream(self, stream: Stream) -> None:
        """Close an output stream of the child after the end of the stream was read."""
        if stream.descriptor >= 0:
            os.close(stream.descriptor)
            stream.descriptor = -1
            self.open_ends -= 1

    def close_report(self) -> None:
        """Close the socket of the child's reports after the end of the socket's data was read."""
        if self.report.fileno() >= 0:
            self.report.close()
            self.open_ends -= 1

    def close_ends(self) -> None:
        """Close the output streams and the report socket, even if a process of the child still has the other ends."""
        for stream in self.streams:
            self.close_stream(stream)
        self.close_report()

    def close_theirs(self) -> None:
        """Close the child's ends of the pipes in this process, after the fork."""
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = ()

    def listening(self) -> list[int]:
        """Return the open descriptors to watch while a cell of a session runs."""
        ends = (self.report.fileno(), *(stream.descriptor for stream in self.streams))
        return [descriptor for descriptor in ends if descriptor >= 0]

    def descriptors(self) -> list[int]:
        """Return all descriptors that the warden has for this child, with -1 for each closed descriptor."""
        return [self.job_fd, self.report.fileno(), *(stream.descriptor for stream in self.streams)]

    def close(self) -> None:
        """Close all open descriptors of this child, and drop its stored output."""
        self.call, self._reports = None, []
        self.close_theirs()
        self.close_job()
        self.close_ends()
        for stream in self.streams:
            stream.kept = bytearray()  # the deadline timer may keep this record for a while
