"""``SessionNames``: the names of the sessions that a caller has started, to report sessions lost with their warden.

Not covered: the sessions themselves (``inside.warden.sessions``).
"""

from __future__ import annotations

from collections import OrderedDict

_MOST = 65_536


class SessionNames:
    """Names of the sessions that are probably alive. Not thread-safe: the owner holds a lock."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: str | None) -> bool:
        """Whether a session of that name is probably alive; false for ``None``."""
        return name in self._names

    def note(self, name: str, state: str) -> None:
        """Add the session ``name``, or remove it if its state after a call (``Outcome.session``) is "ended"."""
        if state == "ended":
            self.forget(name)
            return
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > _MOST:
            self._names.popitem(last=False)

    def forget(self, name: str | None) -> None:
        """Remove a session whose end was reported or requested."""
        if name is not None:
            self._names.pop(name, None)

    def names(self) -> list[str]:
        """Return the names of all sessions, least recently used first."""
        return list(self._names)
