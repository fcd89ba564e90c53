"""What the client keeps of a call on its way, and of a session's place.

Covered: the records. Not covered: what is done with them (``dispatch``, ``homes``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.messages import lost
from rstar2_env.sandbox.remote.codec import dump, job_to_json
from rstar2_env.sandbox.remote.link import Link


class Call:
    """One call, from its submission to its outcome.

    Args:
        call_id: Its name for the server.
        job: What to run.
        on_drop: Called with the call when nobody waits for it any more.

    Attributes:
        id: Its name for the server, the same however often it is sent.
        body: The job as the inside of a JSON object, without the session.
        session: The caller's name of its session.
        home: Where its session lives.
        starts: How often it was started and lost.
        doubt: The boot that may have taken it, when the word of that was lost.
        since: When it began to wait, by the loop's clock.
        given_up: Whether nobody waits for it any more.
    """

    __slots__ = ("_on_drop", "body", "doubt", "future", "given_up", "home", "id", "session", "since", "starts")

    def __init__(self, call_id: str, job: Job, on_drop: Callable[[Sequence[Call]], None]) -> None:
        self._on_drop = on_drop
        self.id = call_id
        self.body = dump(job_to_json(job))[1:-1]
        self.session = job.session
        self.home: Home | None = None
        self.future: Future[Outcome] = Future()
        self.starts = 0
        self.doubt: str | None = None
        self.since = 0.0
        self.given_up = False

    def written(self) -> bytes:
        """The call as JSON, for the server that its session lives on."""
        place = b'","session":"%s",' % self.home.wire.encode() if self.home is not None else b'",'
        return b"".join((b'{"id":"', self.id.encode(), place, self.body, b"}"))

    def drop(self) -> None:
        """Stop waiting for the outcome and end the program."""
        self._on_drop([self])

    def resolve(self, outcome: Outcome) -> None:
        """Give it its outcome, unless nobody waits."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_result(outcome)

    def fail(self, error: Exception) -> None:
        """Raise the caller's own mistake to it."""
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)

    def lose(self, why: str) -> None:
        """Give it the outcome of a call that was lost without a fault of its program."""
        self.resolve(lost(why, self.starts, self.session))


class Home:
    """Where a session lives.

    Attributes:
        wire: Its name for the server; another after each move, so that no word to the old one can touch the new.
        link: Its server; ``None`` until its first cell is sent.
        boot: That server's boot when it moved in.
        opened: Whether a cell has run there.
        moved: Why the next cell starts in a clean session, when an earlier one was lost.
        current: The cell on its way: cells of a session go one after the other.
        waiting: The cells behind it.
    """

    __slots__ = ("boot", "current", "link", "moved", "opened", "waiting", "wire")

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.link: Link | None = None
        self.boot = ""
        self.opened = False
        self.moved: str | None = None
        self.current: Call | None = None
        self.waiting: deque[Call] = deque()
