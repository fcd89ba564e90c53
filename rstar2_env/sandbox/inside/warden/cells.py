"""``Cells``: runs the cells (calls) of sessions: sends a cell to its process, interrupts it, and reports its outcome.

Between cells, nothing is read from the process of a session: output of its threads stays in the pipes, which limit its
size, and is reported with the next cell. Not covered: names of sessions, the order of their calls, and limits on
sessions (``sessions``); the number of programs that run at once, and the end of processes (``supervisor``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..orders import HALT, INTERRUPT, RESUME
from .loop import IN
from .sessions import Sessions
from .verdict import signal_name

if TYPE_CHECKING:
    from .backlog import Backlog
    from .child import Call, Child, Session
    from .loop import EventLoop
    from .pool import ChildPool

_HALT_AFTER_S = 0.1
"""Seconds without a cell (call) after which a session's processes are halted; shorter pauses cause no halt."""
_END = b'{"done": '
_GRACE_S = 1.0
"""Seconds within which a cell (call of a session) must stop after an interrupt; otherwise, its session is ended."""
_EXCEEDED = {
    "memory": "it exceeded its memory limit.",
    "processes": "it exceeded its limit on processes and threads.",
    "files": "it exceeded the size limit of its working folder.",
    "pipes": "it exceeded its limit on pipes.",
    "forged": "its process forged the end of a cell.",
    "rest": "its remaining processes could not be halted between two cells.",
}
_BROKEN = {"timeout": "exceeded its wall-clock limit", "output_limit": "exceeded its output limit"}
_Answer = Callable[["Call", dict[str, Any], tuple[bytes, bytes]], None]


@dataclass(eq=False)
class Cells:
    """Runs the cells (calls) of all sessions of a warden.

    Attributes:
        options: Options, as for ``Sessions``.
        loop: The event loop of the warden.
        queue: The calls that wait for a process.
        pool: The pool of child processes, which also ends the processes of sessions.
        answer: Function that sends an outcome to the caller, unless the outcome is no longer needed.
        lose: Function that reports that a call was lost through no fault of its program.
    """

    options: dict[str, Any]
    loop: EventLoop
    queue: Backlog
    pool: ChildPool
    answer: _Answer
    lose: Callable[[Call, str], None]

    def __post_init__(self) -> None:
        """Create ``sessions``, which manages the sessions of the warden."""
        self.sessions = Sessions(self.options, self.loop, self.queue, self.pool.discard)

    def begin(self, child: Child, call: Call) -> None:
        """Prepare a cell (call of a session), before it is sent to its session's process, which may be new."""
        session = call.session
        assert session is not None
        if session.child is None:
            session.child = child
            call.state, call.note = self.sessions.take_end(session.name) or ("new", None)
        else:
            call.state, call.note, session.note = "kept", session.note, None
            if child.halted:
                child.halted = False
                child.order(RESUME)
            for descriptor in set(child.muted) & set(child.listening()):
                self.loop.rewatch(descriptor, IN)
            child.muted.clear()
        self._keep_time(session, child.started_at + call.limits["wall_s"])

    def mute(self, child: Child, descriptor: int) -> None:
        """Stop reading an output stream of an idle session; its data is read with the next cell."""
        if descriptor not in child.muted:
            child.muted.append(descriptor)
            self.loop.rewatch(descriptor, 0)

    def note_restart(self, names: list[str]) -> None:
        """Record which sessions were lost with an earlier warden, so that the next cell of each reports the loss."""
        for name in names:
            self.sessions.note_end(name, "The sandbox was restarted, and the earlier session was lost.")

    def is_end(self, child: Child, message: bytes) -> bool:
        """Whether a message claims to report the end of the current cell (call); ``finish`` detects forged messages."""
        return child.call is not None and message.startswith(_END)

    def finish(self, child: Child, message: bytes) -> None:
        """Report the outcome of a cell that has ended in a live session; a forged ``message`` ends the session."""
        call, session = child.call, child.session
        assert call is not None
        assert session is not None
        # The harness reports the end of the cell that it has read; any other report is forged.
        if child.unread() or not message.startswith((b"%b%d," % (_END, call.id), b"%b%d}" % (_END, call.id))):
            child.stopped_for = child.stopped_for or "forged"
            self.pool.kill(child)
            return
        interrupted = child.stopped_for
        header, blobs = child.finish_cell(message)
        child.idle_since = time.monotonic()
        self._halt_later(child)
        session.turn = None
        if call.cancelled:
            note = "The previous cell was cancelled and interrupted; its effects until then are kept."
            session.note = _after(call.note, note)
        else:
            header |= {"session": call.state, "session_note": call.note}
            if interrupted in _BROKEN:
                note = f"The cell {_BROKEN[interrupted]} and was interrupted; its effects until then are kept."
                header |= {"session": "interrupted", "session_note": _after(call.note, note)}
            self.answer(call, header, blobs)
        self.sessions.advance(session)

    def _halt_later(self, child: Child) -> None:
        """Halt a session's process once it has run no cell for ``_HALT_AFTER_S`` seconds.

        If the timer of the session's process already runs, no second timer is set.
        """
        if not child.halt_due:
            child.halt_due = True
            self.loop.call_at(child.idle_since + _HALT_AFTER_S, lambda: self._halt(child), child)

    def _halt(self, child: Child) -> None:
        child.halt_due = False
        if child.call is not None or child.wait_status is not None or child.discarded:
            return  # a cell runs and will schedule the halt again, or the process is gone
        if child.idle_since + _HALT_AFTER_S > time.monotonic():
            self._halt_later(child)
            return
        child.halted = True
        child.order(HALT)

    def stop(self, child: Child, why: str) -> None:
        """Interrupt a cell for the reason ``why``; end its session if the cell does not stop within ``_GRACE_S``."""
        call, session = child.call, child.session
        if call is None or session is None or child.stopped_for is not None or child.wait_status is not None:
            return
        child.stopped_for = why
        session.signalled = True
        child.order(INTERRUPT)
        self.loop.call_at(
            time.monotonic() + _GRACE_S, lambda: self.pool.kill(child) if child.call is call else None, child
        )

    def interrupted(self, child: Child) -> None:
        """Handle the reply that an interrupt was sent: the session's next cell may start now."""
        if child.session is not None:
            child.session.signalled = False
            if child.session.child is child:
                self.sessions.advance(child.session)

    def cancel(self, call: Call) -> None:
        """Cancel a call of a session, whether it waits or runs."""
        session = call.session
        assert session is not None
        if self.sessions.withdraw(call):
            return
        if call.child is not None:
            call.cancelled = True
            self.stop(call.child, "cancelled")
            return
        self.sessions.recall(session)
        session.pending.remove(call)
        if session.child is None:
            self.sessions.lose_process(session)
        else:
            self.sessions.advance(session)

    def end(self, name: str) -> None:
        """End a session, even while a cell runs."""
        found = self.sessions.end(name)
        if found is None:
            return
        child, calls = found
        if child is not None:
            self.pool.discard(child)
        for call in calls:
            self.answer(call, *_ended_by_caller())

    def settle(self, child: Child) -> None:
        """Handle the end of a session's process: report the outcome of the running cell, or retry the cell.

        A cell is retried only if it has not begun to run.
        """
        session, call = child.session, child.call
        assert session is not None
        if child.discarded:  # ended by the warden
            if call is not None:
                self.answer(call, *_ended_by_caller())
            return
        if call is None:
            self._lose_between_cells(session, child)
            return
        if not (
            child.reached or child.stopped_for or call.cancelled
        ):  # the process had ended before the cell, but its end was not yet reported
            session.turn, call.child = None, None
            session.pending.appendleft(call)
            self._lose_between_cells(session, child)
            return
        why = None if call.cancelled else child.lost()
        session.child = None  # a retried call waits for a new process
        if why is not None and not child.compiled and self.queue.retry(call):
            if call.note is not None:
                self.sessions.note_end(session.name, call.note, call.state)
            return
        next_note = None
        if call.cancelled:
            next_note = "The earlier session was ended: a cell was cancelled and did not stop when it was interrupted."
        elif why is not None:
            self.lose(call, why)
        else:
            header, blobs = child.outcome()
            note = _after(call.note, f"The session was ended: {_why_ended(child)}")
            header |= {"session": "ended", "session_note": note}
            self.answer(call, header, blobs)
        self.sessions.lose_process(session, next_note)

    def _lose_between_cells(self, session: Session, child: Child) -> None:
        why = "The earlier session was ended between two cells: " + _why_ended(child)
        self.sessions.lose_process(session, why, "replaced" if child.broken else "died")

    def _keep_time(self, session: Session, deadline: float) -> None:
        """Schedule the check of a cell's deadline, unless a timer of the session already fires before it."""
        if not 0 < session.deadline_at <= deadline:
            session.deadline_at = deadline
            self.loop.call_at(deadline, lambda: self._on_deadline(session, deadline), session.child)

    def _on_deadline(self, session: Session, at: float) -> None:
        if session.deadline_at != at:
            return  # an earlier deadline replaced this one
        session.deadline_at = 0.0
        child = session.child
        if child is None or child.call is None:
            return
        deadline = child.started_at + child.call.limits["wall_s"]
        if deadline <= time.monotonic():
            self.stop(child, "timeout")
        else:
            self._keep_time(session, deadline)


def _after(earlier: str | None, note: str) -> str:
    """Return the note, preceded by the earlier note if there is one."""
    return note if earlier is None else f"{earlier} {note}"


def _why_ended(child: Child) -> str:
    if child.stopped_for in _BROKEN:
        return f"the cell {_BROKEN[child.stopped_for]} and did not stop when it was interrupted."
    if child.stopped_for is not None or child.out_of_memory():
        return _EXCEEDED[child.stopped_for or "memory"]
    how = os.waitstatus_to_exitcode(child.wait_status or 0)
    return f"its process exited with code {how}." if how >= 0 else f"its process was ended by {signal_name(-how)}."


def _ended_by_caller() -> tuple[dict[str, Any], tuple[bytes, bytes]]:
    why = "The caller ended the session before this cell finished."
    header = {
        "status": "unavailable",
        "reason": "session_ended",
        "error_type": "SandboxUnavailableError",
        "error_message": why,
        "session": "ended",
        "session_note": why,
    }
    return header, (b"", b"")
