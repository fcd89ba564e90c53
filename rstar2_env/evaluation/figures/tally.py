"""Counts of an evaluation by problem, added up episode by episode; every figure is computed from these counts.

An episode counts unless it failed, was cancelled or is unusable (``Episode.available``). Covered: bounded memory, since
only an episode's counts and answer are kept. Not covered: the figures themselves
(``rstar2_env.evaluation.figures.summary``, ``rstar2_env.evaluation.figures.intervals``).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.episode_metrics import COUNTS, FIGURES
from rstar2_env.core.row import FloatArray
from rstar2_env.core.run_folder.entries import EpisodeEntry
from rstar2_env.problems import Problem

_PLACES = {name: place for place, name in enumerate(COUNTS)}
_DIFFICULTY = ("difficulty", "level")


@dataclass(frozen=True, slots=True)
class About:
    """Facts that a line of an evaluation's file holds in addition to the episode.

    Attributes:
        start: Number, from 0, of the episode's start (a problem and a seed); it identifies a problem that has no id.
        source: Source of the episode's problem; empty if unknown.
        difficulty: Difficulty of the episode's problem, as the source names it; empty if unknown.
        chain: Whether a judge found the episode's chain of thought right; ``None`` without a verdict (no judge, a wrong
            answer, or a judge that could not decide).
        judged: Whether the evaluation has a judge of chains of thought.
    """

    start: int = 0
    source: str = ""
    difficulty: str = ""
    chain: bool | None = None
    judged: bool = False

    @classmethod
    def from_line(cls, index: int, line: Mapping[str, Any]) -> About:
        """Read the facts from a line of an evaluation's file.

        Args:
            index: The episode's number in the evaluation, from 0.
            line: The keys of the line that do not belong to the episode, as in ``EpisodeEntry.more``.
        """
        start, chain = line.get("start"), line.get("chain")
        return cls(
            start if isinstance(start, int) else index,
            str(line.get("problem_source") or ""),
            str(line.get("difficulty") or ""),
            chain if isinstance(chain, bool) else None,
            "chain" in line,
        )


def cause_of(episode: Episode) -> str:
    """Return the reason why an episode failed, in one line."""
    lines = (episode.error or "").strip().splitlines()
    return lines[-1].strip() if lines else "the tool or the grader did not answer"


def difficulty_of(problem: Problem | None) -> str:
    """Difficulty of a problem, as its source names it; empty if the source does not name one."""
    meta: Mapping[str, Any] = {} if problem is None else problem.meta
    return next((str(meta[name]) for name in _DIFFICULTY if meta.get(name) not in (None, "")), "")


@dataclass(slots=True)
class ProblemTally:
    """The counts of one problem's episodes.

    Attributes:
        source: Source of the problem, or the id of the environment if the source is unknown.
        difficulty: Difficulty of the problem; empty if unknown.
        counts: Sums over its episodes that count (``Episode.available``), in the order of ``COUNTS``.
        wrong: Number of times each wrong answer was given; the remaining wrong episodes have no answer.
        chains: Number of episodes with a right answer and a right chain of thought.
        unjudged: Number of episodes with a right answer whose chain of thought was not judged.
        rewards: For each reward component and score, its sum and the number of episodes that have it.
    """

    source: str = ""
    difficulty: str = ""
    counts: array[float] = field(default_factory=lambda: array("d", bytes(8 * len(COUNTS))))
    wrong: dict[str, int] = field(default_factory=dict)
    chains: int = 0
    unjudged: int = 0
    rewards: dict[str, tuple[float, int]] = field(default_factory=dict)

    @property
    def episodes(self) -> int:
        """Number of episodes that count (``Episode.available``)."""
        return round(self.counts[_PLACES["episodes"]])

    @property
    def correct(self) -> int:
        """Number of episodes that count (``Episode.available``) and are right."""
        return round(self.counts[_PLACES["correct"]])

    def votes(self) -> tuple[list[str | None], list[bool]]:
        """Return the answer of each episode, and whether it is right: the first two arguments of ``maj_at_k``.

        A right answer is returned as an empty text, since all right answers vote together.
        """
        answers: list[str | None] = [""] * self.correct
        answers += [answer for answer, times in self.wrong.items() for _ in range(times)]
        answers += [None] * (self.episodes - len(answers))
        return answers, [at < self.correct for at in range(len(answers))]


def figure_columns(problems: Sequence[ProblemTally]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Numerators and denominators of every figure, each an array with one number per problem.

    Args:
        problems: The counts of each problem.

    Returns:
        The two arrays by the figure's name: the names in ``FIGURES``, and ``reward/NAME`` for each component of the
        reward, as in training's metrics.
    """
    counts = np.array([problem.counts for problem in problems], dtype=np.float64).reshape(len(problems), len(COUNTS))
    found = {
        name: (counts[:, _PLACES[figure.numerator]], counts[:, _PLACES[figure.denominator]])
        for name, figure in FIGURES.items()
    }
    for name in sorted({name for problem in problems for name in problem.rewards}):
        pairs = np.array([problem.rewards.get(name, (0.0, 0)) for problem in problems], dtype=np.float64)
        found[f"reward/{name}"] = pairs[:, 0], pairs[:, 1]
    return found


class EpisodeTally:
    """The counts of an evaluation's episodes, by problem.

    Attributes:
        problems: The counts of each problem, by the problem's id, or by the number of the start (``About.start``) if
            there is no id.
        lost: Keys in ``problems`` of the problems with at least one episode that does not count.
        statuses: Number of calls by status, over the episodes that count.
        statuses_correct: Number of calls by status, over correct episodes.
        injected: Number of faults that a wrapper injected, by status.
        ends: Number of episodes by end, including episodes that do not count.
        failed: Number of episodes that ended ``unavailable``.
        cancelled: Number of episodes that ended ``cancelled``.
        unusable: Number of episodes with a reply that could not be played.
        usage: Total requests, tokens and cost of the episodes, by name; empty if the player does not count them.
        judged: Whether the evaluation has a judge of chains of thought.
        cause: The reason, in one line, for the first episode that failed or could not be played; empty without one.
    """

    def __init__(self) -> None:
        self.problems: dict[Hashable, ProblemTally] = {}
        self.lost: set[Hashable] = set()
        self.statuses: Counter[str] = Counter()
        self.statuses_correct: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.failed = self.cancelled = self.unusable = 0
        self.usage: dict[str, float] = {}
        self.judged = False
        self.cause = ""

    @classmethod
    def from_entries(cls, entries: Iterable[EpisodeEntry]) -> EpisodeTally:
        """Count the given episodes of a run."""
        tally = cls()
        for entry in entries:
            tally.add(entry.episode, About.from_line(entry.episode.group, entry.more))
        return tally

    @property
    def count(self) -> int:
        """Number of all episodes, including failed, cancelled and unusable episodes."""
        return self.ends.total()

    @property
    def episodes(self) -> int:
        """Number of episodes that count (``Episode.available``)."""
        return sum(problem.episodes for problem in self.problems.values())

    def add(self, episode: Episode, about: About | None = None) -> None:
        """Add an episode.

        Args:
            episode: The episode.
            about: Facts about the start and the problem; if it is ``None``, an episode without a problem id counts as
                the only episode of its problem.
        """
        about = About(start=self.count) if about is None else about
        self.ends[episode.end] += 1
        self.failed += episode.failed
        if episode.failed or episode.unusable:
            self.cause = self.cause or cause_of(episode)
        self.cancelled += episode.cancelled
        self.unusable += episode.unusable
        for name, value in episode.usage.items():
            self.usage[name] = self.usage.get(name, 0.0) + value
        key: Hashable = episode.problem_id or about.start
        if not episode.available:
            self.lost.add(key)
            return
        statuses = [str(status) for status in episode.statuses]
        self.statuses.update(statuses)
        self.injected.update(map(str, episode.injected))
        if episode.correct:
            self.statuses_correct.update(statuses)
        self.judged = self.judged or about.judged
        problem = self.problems.get(key)
        if problem is None:
            source = about.source or episode.task
            problem = self.problems[key] = ProblemTally(source, about.difficulty)
        _count(problem, episode, about)


def _count(problem: ProblemTally, episode: Episode, about: About) -> None:
    for place, count_in in enumerate(COUNTS.values()):
        problem.counts[place] += count_in(episode)
    for name, value in episode.rewards.items():
        total, count = problem.rewards.get(name, (0.0, 0))
        problem.rewards[name] = (total + value, count + 1)
    if episode.correct:
        problem.chains += bool(about.chain)
        problem.unjudged += about.chain is None
    elif episode.answer is not None:
        answer = " ".join(episode.answer.split())
        problem.wrong[answer] = problem.wrong.get(answer, 0) + 1
