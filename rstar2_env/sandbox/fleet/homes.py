"""``Homes``: assigns each session to a server, and runs the session's cells (its calls) there one after the other.

A session stays on its server. If the server is lost, a new session starts on another server, and the outcome of the
new session's first cell reports the loss. Not covered: how calls are sent (``dispatch``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace

from rstar2_env.sandbox.fleet.calls import FleetCall, Home
from rstar2_env.sandbox.fleet.link import Link
from rstar2_env.sandbox.job import Outcome

_MOST = 1 << 16


class Homes:
    """The servers and queues of all sessions of one client.

    Args:
        client: Unique name of the client, so that clients do not share sessions.
        end: Called for a session that has ended, with its server and its name on that server.
    """

    def __init__(self, client: str, end: Callable[[Link, str], None]) -> None:
        self._client = client
        self._end = end
        self._homes: OrderedDict[str, Home] = OrderedDict()
        self._next = 0

    def enter(self, call: FleetCall) -> bool:
        """Add a call to its session; return whether it can be sent now or must wait for the session's earlier calls."""
        assert call.session is not None  # the caller passes cells only
        home = self._homes.get(call.session)
        if home is None:
            home = self._homes[call.session] = Home(self._name())
            while len(self._homes) > _MOST:
                self.end(next(iter(self._homes)))
        self._homes.move_to_end(call.session)
        call.home = home
        if home.current is not None:
            home.waiting.append(call)
            return False
        home.current = call
        return True

    def leave(self, call: FleetCall) -> FleetCall | None:
        """Remove a finished call from its session; return the session's next call, if there is one."""
        home = call.home
        if home is None or home.current is not call:
            return None
        while home.waiting:
            home.current = home.waiting.popleft()
            if not home.current.given_up:
                return home.current
        home.current = None
        return None

    def place(self, home: Home) -> Link | None:
        """Return the server of a session; ``None`` if there is none, or if that server has restarted or was lost."""
        link = home.link
        if link is not None and link.boot != home.boot:
            fate = f"was lost: {link.why}" if link.gone else "was restarted."
            self.move(home, f"The sandbox server {link.name}, on which the session ran, {fate}")
        return home.link

    def settle(self, home: Home, link: Link) -> None:
        """Assign a session to a server."""
        self._put(home, link)
        home.boot = link.boot

    def unsettle(self, home: Home) -> None:
        """Free a session from its server if none of its calls has run there, so that any server can run the first."""
        if not home.opened:
            self._put(home, None)

    def move(self, home: Home, why: str) -> None:
        """Detach a session from a lost server: its next call starts a new session on any server."""
        if home.opened:
            home.moved = why
        self._put(home, None)
        home.opened, home.wire = False, self._name()

    def reset(self, home: Home) -> None:
        """Drop a session whose loss an outcome has reported; the next call under its name starts a new session."""
        if home.link is not None and not home.link.gone:
            self._end(home.link, home.wire)
        self.move(home, "")
        home.moved = None

    def restart(self, home: Home) -> None:
        """Start a session again on any server, because its first call failed.

        The note that an earlier session was lost is kept.
        """
        moved = home.moved
        self.reset(home)
        home.moved = moved

    def report(self, home: Home, outcome: Outcome) -> Outcome:
        """Return the outcome of a session's call, with a note added if an earlier session of that name was lost."""
        home.opened = outcome.session is not None and outcome.session != "ended"
        if outcome.session is None or home.moved is None:
            return outcome
        note, home.moved = home.moved, None
        return replace(outcome, session="replaced", session_note=note) if outcome.session == "new" else outcome

    def end(self, name: str) -> None:
        """End a session; an unknown name is ignored."""
        home = self._homes.pop(name, None)
        if home is not None and home.link is not None:
            self._end(home.link, home.wire)
            self._put(home, None)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the sessions."""
        return iter(list(self._homes))

    def _put(self, home: Home, link: Link | None) -> None:
        """Assign a session to a server, and update the session counts of the new and the previous server."""
        if home.link is not None:
            home.link.sessions -= 1
        if link is not None:
            link.sessions += 1
        home.link = link

    def _name(self) -> str:
        self._next += 1
        return f"{self._client}-{self._next}"
