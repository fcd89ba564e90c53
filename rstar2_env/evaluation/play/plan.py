"""The episodes that an evaluation plays: the starts, in order, with their seeds, and the samples of each start.

A start is a problem and a seed, the input of one ``reset``. The samples of a start begin with the same ``reset`` and
differ in the player's random draws.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.bounds import check_count
from rstar2_env.core.options.declare import Count, check_option
from rstar2_env.problems import FiniteSource, Problem, ProblemSource, ProblemSpec, choices, load_problems
from rstar2_env.problems.mixture import with_split


@dataclass(frozen=True, slots=True)
class Task:
    """One episode to play.

    Attributes:
        index: Number of the episode in the evaluation, from 0: ``start * samples + sample``.
        seed: Seed of the environment's ``reset``, the same for all samples of a start.
        problem: Problem of the episode; ``None`` leaves the choice to the environment.
        start: Number of the episode's start (a problem and a seed), from 0.
        sample: Number of the sample within its start, from 0.
        draws: Seed of the player's random draws; a different one for each sample.
    """

    index: int
    seed: int
    problem: Problem | None
    start: int = 0
    sample: int = 0
    draws: int = 0

    @property
    def problem_id(self) -> str | None:
        """The id of the problem, if the task has a problem."""
        return self.problem.id if self.problem is not None else None


class EvaluationPlan:
    """The tasks of an evaluation by index, made on demand; several threads may use it.

    Args:
        problems: The problem of each start, in order, drawn when first needed; ``None`` leaves the choice to the
            environment.
        starts: Number of starts.
        seed: Seed of the choice of problems and of every episode.
        samples: Number of episodes of each start.

    Attributes:
        starts: Number of starts.
        samples: Number of episodes of each start.
    """

    def __init__(self, problems: Iterable[Problem] | None, starts: int, seed: int, samples: int = 1) -> None:
        self.starts, self.samples = starts, samples
        self._remaining = None if problems is None else iter(problems)
        self._drawn: list[Problem] = []
        self._lock = threading.Lock()
        self._seed = seed

    def __len__(self) -> int:
        return self.starts * self.samples

    def __getitem__(self, index: int) -> Task:
        if not 0 <= index < len(self):
            raise IndexError(f"The plan has {len(self)} episodes, so there is no episode with the index {index}.")
        start, sample = divmod(index, self.samples)
        seed = _seed(self._seed, start)
        # The first sample has the same draws as it would if the start had only one sample.
        draws = seed if sample == 0 else _seed(self._seed, start, sample)
        return Task(index, seed, self._problem(start), start, sample, draws)

    def __iter__(self) -> Iterator[Task]:
        return map(self.__getitem__, range(len(self)))

    def _problem(self, start: int) -> Problem | None:
        if self._remaining is None:
            return None
        with self._lock:
            self._drawn.extend(itertools.islice(self._remaining, max(0, start + 1 - len(self._drawn))))
        return self._drawn[start]


def source_of(env: gym.Env[str, str], problems: ProblemSpec | None, split: str) -> ProblemSource | None:
    """Return the source of the problems to play; ``None`` if the environment has none.

    Args:
        env: The environment.
        problems: A source as ``load_problems`` takes it; ``None`` means the environment's own problems.
        split: Split of the problems, if the source has splits.
    """
    if problems is not None:
        return load_problems(problems, split=split)
    own = getattr(env.unwrapped, "problems", None)
    return with_split(own, split) if isinstance(own, ProblemSource) else None


def plan_of(source: ProblemSource | None, episodes: int | None, seed: int, samples: int = 1) -> EvaluationPlan:
    """Plan the episodes of an evaluation.

    Args:
        source: Source of the problems; ``None`` leaves the choice to the environment, by the episode's seed.
        episodes: Number of starts (a problem and a seed each); ``None`` plays every problem of a finite source once.
        seed: Seed for the choice of problems and for every episode.
        samples: Number of episodes of each start.

    Raises:
        ConfigurationError: ``episodes`` is not a positive number, or is ``None`` without a finite source; or there
            are too many episodes.
    """
    check_option("episodes", episodes, Count | None)
    if episodes is None:
        if not isinstance(source, FiniteSource):
            what = (
                f"{source.name} generates problems without end"
                if source
                else "The environment does not have a list of problems"
            )
            raise ConfigurationError(f"{what}: give the number of episodes to play.", option="episodes")
        problems: Iterator[Problem] | None = iter(source)
        starts = len(source)
    else:
        problems = None if source is None else choices(source, seed=seed)
        starts = episodes
    check_count("episodes", starts * samples, written="The number of problems times the number of samples of each")
    return EvaluationPlan(problems, starts, seed, samples)


def _seed(seed: int, *place: int) -> int:
    return int(np.random.SeedSequence(entropy=seed, spawn_key=place).generate_state(1)[0])
