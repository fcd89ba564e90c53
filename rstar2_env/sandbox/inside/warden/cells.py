"""The warden's part in sessions: give a cell to its process, interrupt it, and report how it went.

Between cells nothing is read from a session's process: what its threads print stays in the pipes, whose size bounds it,
and comes with the next cell. Covered: cells. Not covered: names, turns and bounds (``sessions``), and what sessions
share with other calls: workers, deadlines, the end of processes (``supervisor``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..orders import HALT, INTERRUPT, RESUME
from .loop import IN
from .sessions import Sessions
from .verdict import signal_name

if TYPE_CHECKING:
    from .backlog import Backlog
    from .child import Call, Child, Session
    from .loop import EventLoop

_HALT_AFTER_S = 0.1
"""Seconds that a session rests before it is halted: cells that follow at once do not pay for a halt."""
_END = b'{"done": '
_GRACE_S = 1.0
"""Seconds in which an interrupted cell has to stop."""
MAX_RESTARTS = 5
"""How many times a call is restarted here when none of it ran."""
_USED_UP = {
    "memory": "it used up its memory.",
    "processes": "it had more processes and threads than its limit.",
    "files": "it wrote more files than its working folder may hold.",
    "forged": "its process reported the end of a cell that had not run.",
    "rest": "processes that it left behind could not be halted between two cells.",
}
_BROKEN = {"timeout": "ran past its wall-clock limit", "output_limit": "wrote more than its output limit"}
_Answer = Callable[["Call", dict[str, Any], tuple[bytes, bytes]], None]


class Cells:
    """Runs the cells of sessions.

    Args:
        options: As for ``Sessions``.
        loop: The warden's loop.
        queue: Where calls wait for a worker.
        kill: Ends a child.
        answer: Sends an outcome, unless it is no longer needed.
        lose: Reports that a call was lost without a fault of its program.
    """

    def __init__(
        self,
        options: dict[str, Any],
        loop: EventLoop,
        queue: Backlog,
        kill: Callable[[Child], None],
        answer: _Answer,
        lose: Callable[[Call, str], None],
    ) -> None:
        self._loop = loop
        self._queue = queue
        self._kill = kill
        self._answer = answer
        self._lose = lose
        self.book = Sessions(options, loop, queue, self._evict)

    def begin(self, child: Child, call: Call) -> None:
        """Prepare for sending a cell to its process, which may be a new one."""
        session = call.session
        assert session is not None
        if session.child is None:
            session.child = child
            call.state, call.note = self.book.take_end(session.name) or ("new", None)
        else:
            call.state, call.note, session.note = "kept", session.note, None
            if child.halted:
                child.halted = False
                child.order(RESUME)
            if child.muted:
                for descriptor in child.listening():
                    if descriptor in child.muted:
                        self._loop.rewatch(descriptor, IN)
                child.muted.clear()
        self._keep_time(session, child.started_at + call.limits["wall_s"])

    def mute(self, child: Child, descriptor: int) -> None:
        """Leave what a session's process wrote while it rests, and what it writes next, for its next cell."""
        if descriptor not in child.muted:
            child.muted.append(descriptor)
            self._loop.rewatch(descriptor, 0)

    def note_restart(self, names: list[str]) -> None:
        """Note which sessions were lost with an earlier warden."""
        for name in names:
            self.book.note_end(name, "The sandbox was restarted, and the earlier session went with it.")

    def is_end(self, child: Child, message: bytes) -> bool:
        """Whether a message says that a cell has come to its end, this one or, in a forgery, another."""
        return child.call is not None and message.startswith(_END)

    def finish(self, child: Child, message: bytes) -> None:
        """Handle the end of a cell whose session continues."""
        call, session = child.call, child.session
        assert call is not None
        assert session is not None
        # The harness ends a cell that it has read, and no other.
        if child.unread() or not message.startswith((b"%b%d," % (_END, call.id), b"%b%d}" % (_END, call.id))):
            child.stopped_for = child.stopped_for or "forged"
            self._kill(child)
            return
        interrupted = child.stopped_for
        header, blobs = child.finish_cell(message)
        child.rests_from = time.monotonic()
        self._halt_later(child)
        session.turn = None
        if call.cancelled:
            session.note = "The cell before this one was cancelled and interrupted; what it had done by then is kept."
            if call.note is not None:
                session.note = f"{call.note} {session.note}"
        else:
            header |= {"session": call.state, "session_note": call.note}
            if interrupted in _BROKEN:
                note = f"The cell {_BROKEN[interrupted]} and was interrupted; what it had done by then is kept."
                earlier = f"{call.note} " if call.note is not None else ""
                header |= {"session": "interrupted", "session_note": earlier + note}
            self._answer(call, header, blobs)
        self.book.advance(session)

    def _halt_later(self, child: Child) -> None:
        """Halt a session that rests, with one timer for many short cells."""
        if not child.halt_due:
            child.halt_due = True
            self._loop.call_at(child.rests_from + _HALT_AFTER_S, lambda: self._halt(child), child)

    def _halt(self, child: Child) -> None:
        child.halt_due = False
        if child.call is not None or child.wait_status is not None or child.discarded:
            return  # a cell runs, after which it comes here again, or the process is gone
        if child.rests_from + _HALT_AFTER_S > time.monotonic():
            self._halt_later(child)
            return
        child.halted = True
        child.order(HALT)

    def stop(self, child: Child, why: str) -> None:
        """Interrupt a cell, and end its session if it does not stop soon."""
        call, session = child.call, child.session
        if call is None or session is None or child.stopped_for is not None or child.wait_status is not None:
            return
        child.stopped_for = why
        session.signalled = True
        child.order(INTERRUPT)
        self._loop.call_at(
            time.monotonic() + _GRACE_S, lambda: self._kill(child) if child.call is call else None, child
        )

    def interrupted(self, child: Child) -> None:
        """Note that the interrupt was sent, so it can no longer reach a later cell."""
        if child.session is not None:
            child.session.signalled = False
            if child.session.child is child:
                self.book.advance(child.session)

    def cancel(self, call: Call) -> None:
        """Cancel a call of a session, whose outcome is no longer needed."""
        session = call.session
        assert session is not None
        if self.book.withdraw(call):
            return
        if call.child is not None:
            call.cancelled = True
            self.stop(call.child, "cancelled")
            return
        self.book.recall(session)
        session.pending.remove(call)
        if session.child is None:
            self.book.lose_process(session)
        else:
            self.book.advance(session)

    def end(self, name: str) -> None:
        """End a session, whether or not it runs a cell."""
        found = self.book.end(name)
        if found is None:
            return
        child, calls = found
        if child is not None:
            self._evict(child)
        for call in calls:
            self._answer(call, *_ended_by_caller())

    def settle(self, child: Child) -> None:
        """Handle the end of a session's process, in a cell or between cells."""
        session, call = child.session, child.call
        assert session is not None
        if child.discarded:  # ended by the warden
            if call is not None:
                self._answer(call, *_ended_by_caller())
            return
        if call is None:
            self._lose_between_cells(session, child)
            return
        if not (
            child.reached or child.stopped_for or call.cancelled
        ):  # it was dead already, but its end had not been reported yet
            session.turn, call.child = None, None
            session.pending.appendleft(call)
            self._lose_between_cells(session, child)
            return
        why = None if call.cancelled else child.lost()
        if why is not None and not child.compiled and call.restarts < MAX_RESTARTS:
            call.restarts += 1  # none of it ran, so this does not count as a start
            call.child = session.child = None
            if call.note is not None:
                self.book.note_end(session.name, call.note, call.state)
            self._queue.appendleft(call)
            return
        told_next = None
        if call.cancelled:
            told_next = "The earlier session was ended: a cell was cancelled and did not stop when it was interrupted."
        elif why is not None:
            self._lose(call, why)
        else:
            header, blobs = child.outcome()
            earlier = f"{call.note} " if call.note is not None else ""
            header |= {"session": "ended", "session_note": f"{earlier}The session was ended: {_why_ended(child)}"}
            self._answer(call, header, blobs)
        self.book.lose_process(session, told_next)

    def _lose_between_cells(self, session: Session, child: Child) -> None:
        why = "The earlier session was ended between two cells: " + _why_ended(child)
        self.book.lose_process(session, why, "replaced" if child.broken else "died")

    def _evict(self, child: Child) -> None:
        child.discarded = True
        self._kill(child)

    def _keep_time(self, session: Session, deadline: float) -> None:
        """Ensure that a cell is stopped in time, with one timer for many short cells."""
        if not 0 < session.deadline_at <= deadline:
            session.deadline_at = deadline
            self._loop.call_at(deadline, lambda: self._on_deadline(session, deadline), session.child)

    def _on_deadline(self, session: Session, at: float) -> None:
        if session.deadline_at != at:
            return  # an earlier one came after this was set
        session.deadline_at = 0.0
        child = session.child
        if child is None or child.call is None:
            return
        deadline = child.started_at + child.call.limits["wall_s"]
        if deadline <= time.monotonic():
            self.stop(child, "timeout")
        else:
            self._keep_time(session, deadline)


def _why_ended(child: Child) -> str:
    if child.stopped_for in _BROKEN:
        return f"the cell {_BROKEN[child.stopped_for]} and did not stop when it was interrupted."
    if child.stopped_for is not None or child.out_of_memory():
        return _USED_UP[child.stopped_for or "memory"]
    how = os.waitstatus_to_exitcode(child.wait_status or 0)
    return f"its process exited with code {how}." if how >= 0 else f"its process was ended by {signal_name(-how)}."


def _ended_by_caller() -> tuple[dict[str, Any], tuple[bytes, bytes]]:
    why = "The session was ended by its caller before this cell had finished."
    header = {
        "status": "unavailable",
        "reason": "session_ended",
        "exit_code": None,
        "signal": None,
        "error_type": "SandboxUnavailableError",
        "error_message": why,
        "wall_s": 0.0,
        "cpu_s": 0.0,
        "peak_memory_mb": 0.0,
        "stdout_left_out": 0,
        "stderr_left_out": 0,
        "session": "ended",
        "session_note": why,
    }
    return header, (b"", b"")
