"""``WardenClient``: a sandbox that sends its jobs to a warden, the process that supervises the programs.

Covered: how jobs are sent and outcomes awaited; what happens if the warden dies or stalls: a new one is started, and
the calls that were in flight are retried. Not covered: how a warden is started and reached (``host``), and the
isolation of programs (``inside``, docs/sandbox.md).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from rstar2_env.sandbox.base import CLOSED, BaseSandbox, settle
from rstar2_env.sandbox.connection import Connection
from rstar2_env.sandbox.host import MakeHost
from rstar2_env.sandbox.job import Capability, Job, Outcome, OutcomeReason
from rstar2_env.sandbox.messages import decode_outcome, encode_job, lost
from rstar2_env.sandbox.options import LocalOptions
from rstar2_env.sandbox.session_names import SessionNames

_RESTARTS = 3


class _Ticket:
    """One call in progress: the encoded message to the warden, the future outcome, and the number of attempts."""

    def __init__(self, client: WardenClient, call_id: int, job: Job) -> None:
        self._client = client
        self.id = call_id
        self.frame = encode_job(call_id, job)
        self.session = job.session
        self.key = call_id if job.session is None else job.session
        """Key for ``SendQueue``, which sends frames with the same key, such as all calls of a session, in order."""
        self.future: Future[Outcome] = Future()
        self.attempts = 0

    def drop(self) -> None:
        """Stop waiting for the outcome and end the program."""
        self._client.forget(self)

    def lose(self, why: str, reason: OutcomeReason = "lost") -> None:
        """Give the call an ``unavailable`` outcome, because it was lost through no fault of its program.

        Args:
            why: The reason, as one sentence.
            reason: The outcome's ``reason``.
        """
        settle(self.future, lost(why, self.attempts, self.session, reason))


class WardenClient(BaseSandbox):
    """A sandbox whose jobs run under one warden, a supervising process. Safe to call from any thread.

    Args:
        options: The provider's options.
        make_host: Creates the ``Host`` that starts a warden; called at the start and whenever a warden is lost.
        warns: Whether to warn about missing isolation; false if the provider itself checks the isolation.

    Raises:
        SandboxUnavailableError: The sandbox cannot start, or cannot provide the requested isolation.
    """

    options: LocalOptions

    def __init__(self, options: LocalOptions, make_host: MakeHost, *, warns: bool = True) -> None:
        super().__init__(options)
        self._make_host = make_host
        self._warns = warns
        self._tickets: dict[int, _Ticket] = {}
        self._sessions = SessionNames()
        self._next_id = 0
        self._broken = False  # no warden could be started; the next call tries again
        self._connection: Connection | None = None
        self._attach(self._connect())
        self._started()

    # The protocol

    @property
    def in_flight(self) -> int:
        """Number of calls that have no outcome yet."""
        return len(self._tickets)

    def capabilities(self) -> Sequence[Capability]:
        """Return each layer of isolation, and whether it is active."""
        connection = self._connection
        return connection.capabilities if connection is not None else ()

    def end_session(self, name: str) -> None:
        """End a session and delete its state; an unknown name is ignored."""
        with self._lock:
            self._sessions.forget(name)
            if self._connection is not None:
                self._connection.order("end_session", name, name=name)

    def begin_close(self) -> None:
        """Begin to close, without waiting for the end of the warden; ``close`` waits."""
        if (connection := self._connection) is not None:
            connection.begin_close()

    def _end(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            tickets, self._tickets = list(self._tickets.values()), {}
        if connection is not None:
            connection.close()
        for ticket in tickets:
            ticket.lose(CLOSED, "closed")

    # Calls

    def _submit(self, job: Job) -> _Ticket:
        with self._lock:
            self._refuse_if_closed()
            self._next_id += 1
            number = self._next_id
        ticket = _Ticket(self, number, job)  # without the lock: a large job takes long to encode
        with self._lock:
            self._refuse_if_closed()
            self._tickets[ticket.id] = ticket
            broken, self._broken = self._broken, False
            self._send(ticket)
        if broken:
            threading.Thread(target=self._reconnect, name="rstar2-sandbox-restart", daemon=True).start()
        return ticket

    def _send(self, ticket: _Ticket) -> None:
        """Send a call; the caller holds the lock. If there is no connection, ``_attach`` sends it later."""
        if self._connection is not None:
            ticket.attempts += 1
            self._connection.send(ticket.frame, ticket.key)

    def forget(self, ticket: _Ticket) -> None:
        """Stop waiting for the outcome of a call, and end its program."""
        with self._lock:
            if self._tickets.pop(ticket.id, None) is not None and self._connection is not None:
                self._connection.order("cancel", ticket.key, id=ticket.id)

    # The warden

    def _connect(self) -> Connection:
        connection = Connection(self._make_host(), self._on_outcome, self._on_call_lost, self._on_lost)
        connection.start()
        return connection

    def _on_outcome(self, header: dict[str, Any], blobs: list[bytes]) -> None:
        with self._lock:
            ticket = self._tickets.pop(header["id"], None)
            if ticket is not None and ticket.session is not None:
                self._sessions.note(ticket.session, header["session"])
        if ticket is not None:
            settle(ticket.future, decode_outcome(header, blobs, ticket.attempts))

    def _on_call_lost(self, call_id: int, why: str) -> None:
        with self._lock:
            ticket = self._tickets.get(call_id)
            if ticket is None:
                return
            if ticket.attempts <= self.options.retries and ticket.session not in self._sessions:
                self._send(ticket)
                return
            del self._tickets[call_id]
            self._sessions.forget(ticket.session)
        ticket.lose(why)

    def _on_lost(self, connection: Connection, why: str) -> None:
        """Start a new warden after one was lost, and resend the calls in flight that have retries left.

        A cell (a call of a session) that follows earlier cells is not resent, since it would run without their state.
        """
        with self._lock:
            if self._closed or connection is not self._connection:
                return
            self._connection = None
            retries, sessions = self.options.retries, self._sessions
            spent = [t for t in self._tickets.values() if t.attempts > retries or t.session in sessions]
            for ticket in spent:
                del self._tickets[ticket.id]
                sessions.forget(ticket.session)
        for ticket in spent:
            ticket.lose(why)
        self._reconnect()

    def _reconnect(self) -> None:
        """Start a warden and send every waiting call; if no warden starts, the calls become ``unavailable``."""
        why = "the warden (the process that supervises the programs) ended right after its start"
        for _ in range(_RESTARTS):
            try:
                if self._attach(self._connect()):
                    return
            except Exception as error:  # waiting callers must receive any failure
                why = str(error) or type(error).__name__
                break
        with self._lock:
            self._broken = True  # the next call tries again
            tickets, self._tickets = list(self._tickets.values()), {}
        for ticket in tickets:
            ticket.lose(why)

    def _attach(self, fresh: Connection) -> bool:
        """Use a new connection from now on, and send all waiting calls on it; return false if it is already lost."""
        with self._lock:
            if fresh.lost:  # lost before it was attached, so its callback was ignored
                return False
            if not self._closed:
                self._connection = fresh
                if names := self._sessions.names():
                    fresh.order("sessions_lost", names=names)  # their next cells report the loss
                for ticket in list(self._tickets.values()):
                    self._send(ticket)
                return True
        fresh.close()
        return True

    def _warn_of_gaps(self) -> None:
        if self._warns:
            super()._warn_of_gaps()

    def _forked(self) -> None:
        # Close the inherited descriptors; otherwise the warden would not notice the death of the parent.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
