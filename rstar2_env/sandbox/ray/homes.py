"""Which node holds which session, and what is told of one whose node was lost.

Covered: the caller's record of sessions. Not covered: the sessions themselves, which the node's local sandbox bounds in
number, memory and idle time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from rstar2_env.sandbox.job import Outcome
from rstar2_env.sandbox.ray.node import Node

_MOST = 1 << 16
"""Sessions that are remembered; what is used least recently is ended first."""


@dataclass(slots=True)
class _Home:
    """Where a session lives.

    Attributes:
        node: Its node; ``None`` when that was lost.
        begun: Whether a cell of it has ended, so that it has a state.
        gone: Why an earlier state of it is gone, to be told with its next cell.
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
        """The session, which lives nowhere, lives there from now on."""
        self._homes.setdefault(name, _Home(None)).node = node
        node.sessions += 1
        if len(self._homes) > _MOST:
            oldest = next(iter(self._homes))
            if (its := self.leave(oldest)) is not None:
                its.end_session(oldest)

    def unsettle(self, name: str) -> None:
        """The session, which has no state yet, may live anywhere."""
        home = self._homes.get(name)
        if home is not None and home.node is not None:
            home.node.sessions -= 1
            home.node = None

    def begun(self, name: str) -> bool:
        """Whether it has a state, so that a cell of it cannot be run again elsewhere as if nothing were lost."""
        home = self._homes.get(name)
        return home is not None and home.begun

    def leave(self, name: str) -> Node | None:
        """Forget the session; the node that held it."""
        home = self._homes.get(name)
        node = home.node if home is not None else None
        self.unsettle(name)
        self._homes.pop(name, None)
        return node

    def tell(self, name: str, outcome: Outcome) -> Outcome:
        """The outcome of a cell, with what became of the state that an earlier node held."""
        home = self._homes.get(name)
        if home is None:
            return outcome
        if outcome.session == "ended":
            self.leave(name)
        elif outcome.session is not None:
            home.begun = True
        if home.gone is not None and outcome.session in ("new", "ended"):
            # It ended in this cell: that is news enough, and the next one starts clean as announced.
            if outcome.session == "new":
                outcome = replace(outcome, session="replaced", session_note=home.gone)
            home.gone = None
        return outcome

    def lose(self, node: Node) -> None:
        """Everything that lived on a node is gone."""
        for name, home in list(self._homes.items()):
            if home.node is not node:
                continue
            if home.begun or home.gone is not None:
                home.node, home.begun = None, False
                home.gone = f"The node {node.where}, which held the session, was lost."
            else:
                del self._homes[name]
