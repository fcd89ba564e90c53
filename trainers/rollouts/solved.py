"""``RemembersSolved``: a rollout part that knows what was solved in earlier steps, the same on every process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.bm25 import Bm25
from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option

from .texts import answer_of, question_of

Known = tuple[str, str, str]
"""The id of a problem, or its question where it has none; its question; a solution."""


@dataclass
class RemembersSolved(CheckedOptions):
    """The latest solved problems, with one solution each; see ``Learns``.

    Args:
        capacity: Solved problems that are remembered, the latest.
    """

    capacity: int = option(1024, least=1)
    _known: dict[str, tuple[str, str]] = field(init=False, repr=False, default_factory=dict)

    def like(self, episode: Episode, count: int) -> list[tuple[str, str]]:
        """Questions and solutions of other problems, those first whose questions are most like an episode's."""
        own = _name(episode)
        pairs = [pair for name, pair in self._known.items() if name != own]
        scores = Bm25([asked for asked, _ in pairs]).scores(question_of(episode))
        # Of those that are equally like it, the one that was solved later.
        nearest = sorted(range(len(pairs)), key=lambda at: (scores[at], at), reverse=True)
        return [pairs[at] for at in nearest[:count]]

    def tell(self, group: Sequence[Episode]) -> Known | None:
        """See ``Learns``: the first right answer of a group."""
        right = next((one for one in group if one.available and one.correct and one.steps), None)
        return None if right is None else (_name(right), question_of(right), answer_of(right))

    def learn(self, told: Sequence[Known]) -> None:
        """See ``Learns``: the newest solution of a problem counts."""
        for name, question, solution in told:
            self._known.pop(name, None)
            self._known[name] = (question, solution)
        for name in list(self._known)[: -self.capacity]:
            del self._known[name]

    def state_dict(self) -> dict[str, Any]:
        """What it knows."""
        return {"solved": [[name, *pair] for name, pair in self._known.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self._known = {str(name): (str(asked), str(solution)) for name, asked, solution in state["solved"]}


def _name(episode: Episode) -> str:
    return episode.problem_id or question_of(episode)
