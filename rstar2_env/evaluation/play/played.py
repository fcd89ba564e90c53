"""``PlayedEpisode``: a finished episode of an evaluation, with its task, duration and verdict."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.play.plan import Task


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """An episode that was played.

    Attributes:
        task: The task that the episode completes.
        episode: The episode; ``episode.group`` is the index of the task.
        seconds: Wall-clock seconds of playing it.
        chain: The judge's verdict on its chain of thought; ``None`` without a verdict (see ``About.chain``).
    """

    task: Task
    episode: Episode
    seconds: float
    chain: bool | None = None
