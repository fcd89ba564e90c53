"""The client's records of a call in progress, and of the server that a session lives on.

Covered: the records. Not covered: what is done with them (``dispatch``, ``homes``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from rstar2_env.sandbox.fleet.codec import dump, job_to_json
from rstar2_env.sandbox.fleet.link import Link
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.messages import lost


class FleetCall:
    """One call, from its submission to its outcome.

    Args:
        call_id: Its id for the server.
        job: What to run.
        on_drop: Called with the call when its outcome is no longer needed.

    Attributes:
        id: Its id for the server, the same each time it is sent, until a server's sandbox fails it.
        body: The job as the inside of a JSON object, without the session.
        session: The caller's name of its session.
        home: Where its session lives.
        starts: How many times it was started and lost.
        doubt: The boot of a server that may have accepted it, when the answer was lost.
        since: When it began to wait, by the loop's clock.
        avoid: The server whose sandbox failed it, which gets it again only where there is no other.
        given_up: Whether its outcome is no longer needed.
    """

    __slots__ = ("_on_drop", "avoid", "body", "doubt", "future", "given_up", "home", "id", "session", "since", "starts")

    def __init__(self, call_id: str, job: Job, on_drop: Callable[[Sequence[FleetCall]], None]) -> None:
        self._on_drop = on_drop
        self.id = call_id
        self.body = dump(job_to_json(job))[1:-1]
        self.session = job.session
        self.home: Home | None = None
        self.future: Future[Outcome] = Future()
        self.starts = 0
        self.doubt: str | None = None
        self.since = 0.0
        self.avoid: Link | None = None
        self.given_up = False

    def written(self) -> bytes:
        """The call as JSON, for the server that its session lives on."""
        place = b'","session":"%s",' % self.home.wire.encode() if self.home is not None else b'",'
        return b"".join((b'{"id":"', self.id.encode(), place, self.body, b"}"))

    def drop(self) -> None:
        """Stop waiting for the outcome and end the program."""
        self._on_drop([self])

    def resolve(self, outcome: Outcome) -> None:
        """Resolve the future with the outcome, unless it was cancelled."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_result(outcome)

    def fail(self, error: Exception) -> None:
        """Resolve the future with an error that the caller caused."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)

    def lose(self, why: str) -> None:
        """Resolve the future with the outcome of a call that was lost without a fault of its program."""
        self.resolve(lost(why, self.starts, self.session))


class Home:
    """Where a session lives.

    Attributes:
        wire: Its name on the server; a new one after each move, so that no message for the old one can affect the new.
        link: Its server; ``None`` until its first cell is sent.
        boot: That server's boot when the session began there.
        opened: Whether a cell has run there.
        moved: Why the next cell starts in a clean session, when an earlier one was lost.
        current: The cell in progress: cells of a session run one after the other.
        waiting: The cells queued behind it.
    """

    __slots__ = ("boot", "current", "link", "moved", "opened", "waiting", "wire")

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.link: Link | None = None
        self.boot = ""
        self.opened = False
        self.moved: str | None = None
        self.current: FleetCall | None = None
        self.waiting: deque[FleetCall] = deque()
