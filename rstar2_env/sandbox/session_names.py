"""Which sessions a caller has reason to believe in, so that one which was lost with its warden is missed.

Covered: names. Not covered: sessions themselves (``inside.sessions``).
"""

from __future__ import annotations

from collections import OrderedDict

_MOST = 65_536


class SessionNames:
    """Names of the sessions that are alive as far as was heard. Not safe for threads: its owner has a lock."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: str | None) -> bool:
        """Whether there is a session of that name with earlier cells."""
        return name in self._names

    def note(self, name: str, state: str) -> None:
        """Note what an outcome said of a session."""
        if state == "ended":
            self.forget(name)
            return
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > _MOST:
            self._names.popitem(last=False)

    def forget(self, name: str | None) -> None:
        """Miss a session no longer: that it is gone was said, or wished."""
        if name is not None:
            self._names.pop(name, None)

    def names(self) -> list[str]:
        """All names."""
        return list(self._names)
