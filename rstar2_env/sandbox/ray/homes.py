"""Which node holds which session, and what the next cell reports after its node was lost.

Covered: the caller's record of sessions. Not covered: the sessions themselves, which the node's local sandbox bounds in
number, memory and idle time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from rstar2_env.sandbox.job import Outcome
from rstar2_env.sandbox.ray.node import Node

_MOST = 1 << 16
"""Sessions that are remembered; the least recently used is ended first."""


@dataclass(slots=True)
class _Home:
    """Where a session lives.

    Attributes:
        node: Its node; ``None`` when that was lost.
        begun: Whether one of its cells has ended, so that it has a state.
        gone: Why an earlier state was lost, to be reported with its next cell.
    """

    node: Node | None
    begun: bool = False
    gone: str | None = None


class Homes:
    """The sessions of one sandbox."""

    def __init__(self) -> None:
        self._homes: OrderedDict[str, _Home] = OrderedDict()

    def find(self, name: str) -> Node | None:
        """The node that holds the session, if one does."""
        home = self._homes.get(name)
        if home is None:
            return None
        self._homes.move_to_end(name)
        return home.node

    def settle(self, name: str, node: Node) -> None:
        """Assign a session without a node to this one."""
        self._homes.setdefault(name, _Home(None)).node = node
        node.sessions += 1
        if len(self._homes) > _MOST:
            oldest = next(iter(self._homes))
            if (its := self.leave(oldest)) is not None:
                its.end_session(oldest)

    def unsettle(self, name: str) -> None:
        """Remove the node of a session without state, so that any node may take it."""
        home = self._homes.get(name)
        if home is not None and home.node is not None:
            home.node.sessions -= 1
            home.node = None

    def begun(self, name: str) -> bool:
        """Whether it has a state, so that a cell of it cannot be run again elsewhere as if nothing were lost."""
        home = self._homes.get(name)
        return home is not None and home.begun

    def leave(self, name: str) -> Node | None:
        """Forget the session; returns the node that held it."""
        home = self._homes.get(name)
        node = home.node if home is not None else None
        self.unsettle(name)
        self._homes.pop(name, None)
        return node

    def tell(self, name: str, outcome: Outcome) -> Outcome:
        """The outcome of a cell, with a note if an earlier node lost the session's state."""
        home = self._homes.get(name)
        if home is None:
            return outcome
        if outcome.session == "ended":
            self.leave(name)
        elif outcome.session is not None:
            home.begun = True
        if home.gone is not None and outcome.session in ("new", "ended"):
            # The session ended in this cell, and the outcome says so already; the next cell starts clean.
            if outcome.session == "new":
                outcome = replace(outcome, session="replaced", session_note=home.gone)
            home.gone = None
        return outcome

    def lose(self, node: Node) -> None:
        """Mark the sessions of a node as lost."""
        for name, home in list(self._homes.items()):
            if home.node is not node:
                continue
            if home.begun or home.gone is not None:
                home.node, home.begun = None, False
                home.gone = f"The node {node.where}, which held the session, was lost."
            else:
                del self._homes[name]
