"""``Sessions``: keeps the calls of a warden's sessions in order, and ends sessions that exceed the limits.

Covered: the rule that one cell (call) of a session runs at a time; limits on the number, memory and idle time of
sessions; and the reason why a session ended. Not covered: the processes of sessions (module ``cells``), and how a cell
runs inside such a process (module ``session`` of the zygote).
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .child import Call, Child, Session
from .loop import EventLoop

if TYPE_CHECKING:
    from .backlog import Backlog

_MOST_ENDS = 65_536


@dataclass(eq=False)
class Sessions:
    """All sessions of one warden.

    Attributes:
        options: ``max_sessions`` (their maximum number), ``session_timeout_s`` (seconds without a call after which a
            session is ended), ``session_memory_bytes`` (limit of all sessions together; 0 means unlimited).
        loop: Event loop for the timer of idle sessions.
        queue: Queue in which a call waits for a process once its session's earlier calls have ended.
        evict: Called with the child (process) of a session that must end.
    """

    options: dict[str, Any]
    loop: EventLoop
    queue: Backlog
    evict: Callable[[Child], None]

    def __post_init__(self) -> None:
        """Start without sessions."""
        self._most: int = self.options["max_sessions"]
        self._idle_s: float = self.options["session_timeout_s"]
        self._most_memory: int = self.options["session_memory_bytes"]
        self._named: dict[str, Session] = {}
        self._resting: OrderedDict[Session, float] = OrderedDict()  # start of the idle time; least recently used first
        self._waiting: deque[Session] = deque()  # for room; while a session waits, none is idle
        self.count = self._memory = 0
        self._ends: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._timer = False

    def submit(self, call: Call, name: str) -> None:
        """Queue a call in the session ``name``, behind the session's earlier calls."""
        session = self._named.get(name)
        if session is None:
            session = self._named[name] = Session(name)
        call.session = session
        session.pending.append(call)
        self.advance(session)

    def advance(self, session: Session) -> None:
        """Move a session's next call, if any, from the session to ``queue``, if the limits on sessions allow it."""
        if session.turn is not None or session.signalled:
            return
        if not session.pending:
            self._rest(session)
            return
        if not session.held:
            memory = session.pending[0].limits["memory_bytes"]
            if session in self._waiting:
                return
            if not self._make_room(memory):
                self._waiting.append(session)
                return
            session.held, session.memory = True, memory
            self.count += 1
            self._memory += memory
        self._resting.pop(session, None)
        session.turn = session.pending.popleft()
        self.queue.append(session.turn)

    def withdraw(self, call: Call) -> bool:
        """Remove a call that waits for earlier calls of its session; return false if it no longer waits for them."""
        session = call.session
        if session is None or session.turn is call:
            return False
        session.pending.remove(call)
        if not session.pending and session.turn is None and session.child is None:
            self._drop(session)
        return True

    def lose_process(self, session: Session, why: str | None = None, state: str = "replaced") -> None:
        """Handle the end of a session's process; calls that wait get a new process.

        Args:
            session: The session whose process has ended.
            why: The reason, for the outcome of the next call; ``None`` if it was already reported.
            state: State of the session in the outcome of the next call (see ``note_end``).
        """
        self.recall(session)
        self._release(session)
        session.child, session.turn, session.note, session.signalled = None, None, None, False
        if why is not None:
            self.note_end(session.name, why, state)
        if session.pending:
            self.advance(session)
        else:
            self._drop(session)
        self._admit()

    def recall(self, session: Session) -> None:
        """If a call of a session is in ``queue``, move it back to the head of the session's own waiting calls."""
        if session.turn is not None and session.turn.child is None:
            self.queue.remove(session.turn)
            session.pending.appendleft(session.turn)
            session.turn = None

    def end(self, name: str) -> tuple[Child | None, list[Call]] | None:
        """End a session and delete its record.

        Returns:
            The session's process and the calls that never started; ``None`` if there is no such session.
        """
        self._ends.pop(name, None)
        session = self._named.get(name)
        if session is None:
            return None
        self.recall(session)
        found = session.child, list(session.pending)
        session.child = None
        session.pending.clear()
        self._release(session)
        self._drop(session)
        self._admit()
        return found

    def note_end(self, name: str, why: str, state: str = "replaced") -> None:
        """Record why a session ended, to report it with the session's next call.

        Args:
            name: Name of the session.
            why: The reason, as a sentence.
            state: "died" if its process exited on its own; "replaced" for any other reason.
        """
        self._ends[name] = state, why
        while len(self._ends) > _MOST_ENDS:
            self._ends.popitem(last=False)

    def take_end(self, name: str) -> tuple[str, str] | None:
        """Return the state and reason recorded by ``note_end``, and delete them; ``None`` if nothing was recorded."""
        return self._ends.pop(name, None)

    def _rest(self, session: Session) -> None:
        if session.child is None:
            return
        self._resting[session] = time.monotonic()
        self._resting.move_to_end(session)
        self._admit()
        if not self._timer and self._resting:
            self._timer = True
            self.loop.call_at(next(iter(self._resting.values())) + self._idle_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = False
        now = time.monotonic()
        while self._resting:
            session, since = next(iter(self._resting.items()))
            if since + self._idle_s > now:
                self._timer = True
                self.loop.call_at(since + self._idle_s, self._on_timer)
                return
            self._end_idle(session, f"it was idle for {self._idle_s:g} seconds")

    def _make_room(self, memory: int) -> bool:
        """End least recently used idle sessions until one more session fits the limits; return whether it fits."""
        while self.count >= self._most or (
            self._most_memory and self.count and self._memory + memory > self._most_memory
        ):
            if not self._resting:
                return False
            lack = "there were too many sessions" if self.count >= self._most else "the memory for sessions was used up"
            self._end_idle(next(iter(self._resting)), f"{lack}, and this session was the least recently used")
        return True

    def _end_idle(self, session: Session, why: str) -> None:
        child = session.child
        self.note_end(session.name, f"The earlier session was ended because {why}.")
        self._release(session)
        self._drop(session)
        if child is not None:
            session.child = None
            self.evict(child)

    def _admit(self) -> None:
        """Queue the next calls of the sessions that wait for room, as long as the limits on sessions allow it."""
        while self._waiting:
            session = self._waiting[0]
            if not self._make_room(session.pending[0].limits["memory_bytes"]):
                return
            self._waiting.popleft()
            self.advance(session)

    def _release(self, session: Session) -> None:
        """Stop counting a session against the limits."""
        self._resting.pop(session, None)
        if session.held:
            session.held = False
            self.count -= 1
            self._memory -= session.memory

    def _drop(self, session: Session) -> None:
        if session in self._waiting:
            self._waiting.remove(session)
        if self._named.get(session.name) is session:
            del self._named[session.name]
