"""Plays some episodes a second time: a measurement of the player's determinism."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.play.crew import Crew, drive
from rstar2_env.evaluation.play.ledger import PolicyTexts, words_of
from rstar2_env.evaluation.play.plan import EvaluationPlan
from rstar2_env.evaluation.play.played import PlayedEpisode


@dataclass(frozen=True, slots=True)
class Repeats:
    """The number of episodes that were identical when played again from the same seeds.

    Attributes:
        episodes: Number of episodes that were played again.
        same: Number of these episodes in which the player's texts were identical both times.
    """

    episodes: int
    same: int

    def record(self) -> dict[str, Any]:
        """Return ``episodes`` and ``same`` as a dict."""
        return asdict(self)


def repeats_of(crew: Crew, plan: EvaluationPlan, first: dict[int, PolicyTexts]) -> Repeats:
    """Play episodes again, and count those in which the player writes the same texts again.

    Args:
        crew: Plays the episodes.
        plan: The episodes of the evaluation.
        first: The player's texts in the episodes to play again, by the number of the episode.
    """
    again: dict[int, PolicyTexts] = {}

    def take(played: PlayedEpisode) -> None:
        again[played.task.index] = words_of(played.episode)

    drive(crew, [plan[index] for index in sorted(first)], len(first), take, Stop())
    return Repeats(len(again), sum(words == first[index] for index, words in again.items()))
