"""``RemembersSolved``: base class of rollout parts that remember solved problems, the same in every process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.search.bm25 import Bm25

from .base import Rollout
from .texts import answer_of, question_of

Known = tuple[str, str, str]
"""A solved problem: its id (or its question if it has no id), its question, and a solution."""


@dataclass
class RemembersSolved(CheckedOptions, Rollout):
    """Base class of rollout parts that remember the latest solved problems, with one solution each.

    Args:
        capacity: Maximum number of solved problems that are remembered; the oldest are dropped.
    """

    capacity: int = option(1024, least=1)
    _known: dict[str, tuple[str, str]] = field(init=False, repr=False, default_factory=dict)

    def like(self, episode: Episode, count: int) -> list[tuple[str, str]]:
        """Return at most ``count`` solved problems other than the episode's, each as its question and its solution.

        Problems whose questions are most similar to the episode's question come first.
        """
        own = _name(episode)
        pairs = [pair for name, pair in self._known.items() if name != own]
        scores = Bm25([asked for asked, _ in pairs]).scores(question_of(episode))
        # Among equally similar problems, the one that was solved last.
        nearest = sorted(range(len(pairs)), key=lambda at: (scores[at], at), reverse=True)
        return [pairs[at] for at in nearest[:count]]

    def report(self, group: Sequence[Episode]) -> Known | None:
        """Return the first right answer of a group; see ``Rollout``."""
        right = next((one for one in group if one.available and one.correct and one.steps), None)
        return None if right is None else (_name(right), question_of(right), answer_of(right))

    def update(self, reports: Sequence[Known]) -> None:
        """Store new solutions; the newest solution of a problem replaces an older one. See ``Rollout``."""
        for name, question, solution in reports:
            self._known.pop(name, None)
            self._known[name] = (question, solution)
        for name in list(self._known)[: -self.capacity]:
            del self._known[name]

    def state_dict(self) -> dict[str, Any]:
        """Return the solved problems."""
        return {"solved": [[name, *pair] for name, pair in self._known.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the solved problems that ``state_dict`` returned."""
        self._known = {str(name): (str(asked), str(solution)) for name, asked, solution in state["solved"]}


def _name(episode: Episode) -> str:
    return episode.problem_id or question_of(episode)
