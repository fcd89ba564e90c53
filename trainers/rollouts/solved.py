"""``Solved``: problems that were solved in earlier steps, the same on every process, found by their likeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core.episode import Episode

from .bm25 import ranked
from .texts import answer_of, question_of

Known = tuple[str, str, str]
"""The id of a problem, or its question where it has none; its question; a solution."""


class Solved:
    """The latest solved problems, with one solution each.

    Args:
        capacity: How many are kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._known: dict[str, tuple[str, str]] = {}

    def like(self, episode: Episode, count: int) -> list[tuple[str, str]]:
        """Questions and solutions of other problems, those first whose questions are most like an episode's."""
        own = _name(episode)
        pairs = [pair for name, pair in self._known.items() if name != own]
        return [pairs[at] for at in ranked(question_of(episode), [asked for asked, _ in pairs])[:count]]

    def learn(self, told: Sequence[Known]) -> None:
        """Take in what was solved; the newest solution of a problem counts."""
        for name, question, solution in told:
            self._known.pop(name, None)
            self._known[name] = (question, solution)
        for name in list(self._known)[: -self._capacity]:
            del self._known[name]

    def state_dict(self) -> dict[str, Any]:
        """What it knows."""
        return {"solved": [[name, *pair] for name, pair in self._known.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self._known = {str(name): (str(asked), str(solution)) for name, asked, solution in state["solved"]}


def solved_by(group: Sequence[Episode]) -> Known | None:
    """What the first right episode of a group solves; ``None`` where none is right."""
    right = next((one for one in group if one.available and one.correct and one.steps), None)
    return None if right is None else (_name(right), question_of(right), answer_of(right))


def _name(episode: Episode) -> str:
    return episode.problem_id or question_of(episode)
