"""Judges of steps: which tokens of an episode belong to wrong steps, whatever its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.own_code import Shape, is_called_with
from rstar2_env.core.options.registry import Registry

Critique: TypeAlias = Sequence[tuple[int, int]]
"""The wrong steps that one critique found: where the tokens of each begin and end in ``completion_ids``."""
StepJudge: TypeAlias = Callable[[Episode], Sequence[Critique]]
"""Returns one critique of an episode, or several that are voted on. With an attribute ``workers`` it is called from as
many threads at the same time, else for one episode after the other."""

STEP_JUDGES: Registry[Callable[..., StepJudge]] = Registry(
    "step judge",
    "rstar2_env.trainers.advantages",
    "rstar2_env.step_judges",
    shape=Shape(is_called_with(1), "a class whose objects are called with (episode), or a function of it"),
)


class Statuses:
    """A turn with a call that is an error is a wrong step. It costs nothing and needs no model."""

    def __call__(self, episode: Episode) -> list[Critique]:
        """See ``StepJudge``."""
        wrong = (turn for turn in episode.steps if any(status.is_error for status in turn.statuses))
        return [[(turn.start, turn.stop) for turn in wrong]]


STEP_JUDGES.register("statuses", Statuses)
