"""Which episodes an evaluation plays: their problems, in order, and their seeds."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import Count, check_option
from rstar2_env.problems import FiniteSource, Problem, ProblemSource, ProblemSpec, choose, load_problems
from rstar2_env.problems.mixture import with_split


@dataclass(frozen=True, slots=True)
class Task:
    """One episode to play.

    Attributes:
        index: Its place in the evaluation.
        seed: Its seed.
        problem: Its problem; ``None`` leaves the choice to the environment.
    """

    index: int
    seed: int
    problem: Problem | None

    @property
    def problem_id(self) -> str | None:
        """The id of its problem, if it has one."""
        return self.problem.id if self.problem is not None else None


def source_of(env: gym.Env[str, str], problems: ProblemSpec | None, split: str) -> ProblemSource | None:
    """Return the source of the problems to play; ``None`` if the environment has none.

    Args:
        env: The environment.
        problems: What ``load_problems`` takes; ``None`` means the environment's own problems.
        split: Split of the problems, where the source has splits.
    """
    if problems is not None:
        return load_problems(problems, split=split)
    own = getattr(env.unwrapped, "problems", None)
    return with_split(own, split) if isinstance(own, ProblemSource) else None


def plan_of(source: ProblemSource | None, episodes: int | None, seed: int) -> list[Task]:
    """The episodes of an evaluation, in order.

    Args:
        source: Where the problems come from; ``None`` leaves the choice to the environment, by the episode's seed.
        episodes: How many; ``None`` plays every problem of a finite source once.
        seed: Of the choice and of every episode.

    Raises:
        ConfigurationError: There is no such number of episodes.
    """
    check_option("episodes", episodes, Count | None)
    problems: list[Problem] | list[None]
    if episodes is None:
        if not isinstance(source, FiniteSource):
            what = f"{source.name} never ends" if source else "The environment has no list of problems"
            raise ConfigurationError(f"{what}: say how many episodes to play.", option="episodes")
        problems = list(source)
    else:
        problems = [None] * episodes if source is None else choose(source, episodes, seed=seed)
    return [Task(index, _seed(seed, index), problem) for index, problem in enumerate(problems)]


def _seed(seed: int, index: int) -> int:
    return int(np.random.SeedSequence(entropy=seed, spawn_key=(index,)).generate_state(1)[0])
