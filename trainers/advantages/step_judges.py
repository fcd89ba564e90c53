"""Judges of steps: find the tokens of an episode that belong to wrong steps, whatever the episode's outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with

Critique: TypeAlias = Sequence[tuple[int, int]]
"""The wrong steps of one critique: start and end of each in ``completion_ids``."""
StepJudge: TypeAlias = Callable[[Episode], Sequence[Critique]]
"""Returns one or several critiques of an episode. If a judge has an attribute ``workers``, it is called concurrently
from this number of threads, else sequentially."""

STEP_JUDGES: Registry[Callable[..., StepJudge]] = Registry(
    "step judge",
    "rstar2_env.trainers.advantages",
    "rstar2_env.step_judges",
    shape=Shape(is_called_with(1), "a class whose objects are called with (episode), or a function of it"),
)


class Statuses:
    """Judge without a model: a turn with a failed call is a wrong step."""

    def __call__(self, episode: Episode) -> list[Critique]:
        """Return one critique of an episode: the spans of its turns with a failed call; see ``StepJudge``."""
        wrong = (turn for turn in episode.steps if any(status.is_error for status in turn.statuses))
        return [[(turn.start, turn.stop) for turn in wrong]]


STEP_JUDGES.register("statuses", Statuses)
