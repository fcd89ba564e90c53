"""``FleetCall``: a call of a fleet's client, from submission to outcome; ``Home``: the server of a session.

Not covered: how calls are sent (``dispatch``), and how sessions are assigned to servers (``homes``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from rstar2_env.sandbox.base import settle
from rstar2_env.sandbox.fleet.codec import dump, job_to_json
from rstar2_env.sandbox.fleet.link import Link
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.messages import lost


class FleetCall:
    """One call, from its submission to its outcome.

    Args:
        call_id: Id under which the call is sent.
        job: Job to run.
        on_drop: Function that is called with this object when the outcome is no longer needed.

    Attributes:
        id: Id under which the call is sent and resent. It changes if a server's sandbox fails to run the call.
        body: The job as the members of a JSON object, without the braces and without the session.
        session: Name that the caller gave the session; ``None`` without a session.
        home: The session's ``Home``; ``None`` without a session.
        starts: Number of times that the call was started and then lost.
        doubt: Boot id of a server that may have accepted the call, since the server's answer was lost; ``None`` if
            there is no such server. A server's boot id changes when it restarts.
        since: Time on the event loop's clock from which the call's waiting time is counted.
        avoid: Server whose sandbox failed during the call. The server receives the call again only if no other server
            is up.
        given_up: Whether the outcome is no longer needed.
    """

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

    def encode(self) -> bytes:
        """Encode the call as JSON, with the name that its session has on the server."""
        place = b'","session":"%s",' % self.home.wire.encode() if self.home is not None else b'",'
        return b"".join((b'{"id":"', self.id.encode(), place, self.body, b"}"))

    def drop(self) -> None:
        """Stop waiting for the outcome and end the program."""
        self._on_drop([self])

    def lose(self, why: str) -> None:
        """Give the call an ``unavailable`` outcome, because it was lost through no fault of its program."""
        settle(self.future, lost(why, self.starts, self.session))


@dataclass(eq=False)
class Home:
    """The server of a session, and the session's queue of cells (its calls, which run one after the other).

    Attributes:
        wire: Name of the session on its server. Each move to another server assigns a new name, so that late messages
            with the old name cannot affect the session.
        link: Server of the session; ``None`` until its first cell is sent.
        boot: The server's boot id at the session's start. If the server later has another boot id, it was restarted.
        opened: Whether a cell has run on the server ``link``.
        moved: Reason why the previous session was lost, so that the next cell starts a new session; ``None`` if no
            session was lost.
        current: The cell in progress; ``None`` if there is none.
        waiting: The cells queued behind ``current``.
    """

    wire: str
    link: Link | None = None
    boot: str = ""
    opened: bool = False
    moved: str | None = None
    current: FleetCall | None = None
    waiting: deque[FleetCall] = field(default_factory=deque)
