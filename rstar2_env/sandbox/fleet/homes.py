"""Sessions and the servers that they live on.

Covered: a session stays with its server, its cells go one after the other, and a session whose server is gone starts
clean elsewhere and says so. Not covered: sending (``dispatch``).
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
    """Every session that this client has.

    Args:
        client: The client's own name, so that no two clients share a session.
        end: Called with a server and the name on it of a session that has ended.
    """

    def __init__(self, client: str, end: Callable[[Link, str], None]) -> None:
        self._client = client
        self._end = end
        self._homes: OrderedDict[str, Home] = OrderedDict()
        self._next = 0

    def enter(self, call: FleetCall) -> bool:
        """Add a call to the cells of its session; returns false when it must wait for earlier cells."""
        assert call.session is not None  # only cells come here
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
        """Remove a call that has its outcome; returns the session's next cell."""
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
        """The server of a session, unless it was restarted since the session began there."""
        link = home.link
        if link is not None and link.boot != home.boot:
            fate = f"was lost: {link.why}" if link.gone else "was restarted."
            self.move(home, f"The server {link.name}, where the session lived, {fate}")
        return home.link

    def settle(self, home: Home, link: Link) -> None:
        """Assign the session to this server."""
        self._put(home, link)
        home.boot = link.boot

    def unsettle(self, home: Home) -> None:
        """The server did not accept the session's first cell, so any server may take it."""
        if not home.opened:
            self._put(home, None)

    def move(self, home: Home, why: str) -> None:
        """The session's server is lost: the next cell starts clean, wherever it goes."""
        if home.opened:
            home.moved = why
        self._put(home, None)
        home.opened, home.wire = False, self._name()

    def reset(self, home: Home) -> None:
        """The session was lost with a cell, whose outcome says so: the next cell starts clean, wherever it goes."""
        if home.link is not None and not home.link.gone:
            self._end(home.link, home.wire)
        self.move(home, "")
        home.moved = None

    def restart(self, home: Home) -> None:
        """The session's first cell failed there and runs again: any server may take it, and it has told nothing yet."""
        moved = home.moved
        self.reset(home)
        home.moved = moved

    def report(self, home: Home, outcome: Outcome) -> Outcome:
        """The outcome of a cell, with a note if the session was lost before it."""
        home.opened = outcome.session is not None and outcome.session != "ended"
        if outcome.session is None or home.moved is None:
            return outcome
        note, home.moved = home.moved, None
        return replace(outcome, session="replaced", session_note=note) if outcome.session == "new" else outcome

    def end(self, name: str) -> None:
        """End a session. Unknown names are ignored."""
        home = self._homes.pop(name, None)
        if home is not None and home.link is not None:
            self._end(home.link, home.wire)
            self._put(home, None)

    def __iter__(self) -> Iterator[str]:
        """The names of the sessions."""
        return iter(list(self._homes))

    def _put(self, home: Home, link: Link | None) -> None:
        """Move a session, and count it where it lives."""
        if home.link is not None:
            home.link.sessions -= 1
        if link is not None:
            link.sessions += 1
        home.link = link

    def _name(self) -> str:
        self._next += 1
        return f"{self._client}-{self._next}"
