"""``RunRecord``: the steps, episodes and evaluations of a run, in the same form for every trainer.

Texts are reduced to digests and counts, so that a long run fits in memory. Not covered: how a record is read
(``folder``, ``foreign``) and examined (``checks``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rstar2_env.core.run_folder.layout import Kind
from rstar2_env.core.status import ToolStatus

T = TypeVar("T")
FigurePoint = tuple[int, float]
"""A step, and the value of a metric at that step."""


@dataclass(frozen=True, slots=True)
class EpisodeDigest:
    """The facts of an episode that checks need, without the episode's texts.

    Attributes:
        key: Key of the episode in the viewer, such as ``train-3-17``.
        step: The step for which the episode was played; for an evaluation, the last step before the evaluation.
        rank: Rank of the process that wrote the episode.
        group: Number of the episode's group; in an evaluation, the number of the episode.
        round: Number of the round in which the group was played; a step plays further rounds if too few groups are
            usable.
        problem: Id of the problem; empty if unknown.
        question: Digest of the user's first message, with white space and case removed; empty if unknown.
        task: Family or kind of the problem.
        seed: Seed of the ``reset``; ``None`` if unknown.
        kept: Whether the trainer used the episode.
        reason: Why the selector dropped the episode; empty if it did not.
        advantage: Advantage of the episode; ``None`` if it has none.
        reward: Return of the episode.
        rewards: The components of the reward, by name.
        correct: Whether the answer is right; ``None`` if unknown.
        end: How the episode ended; see ``Episode.end``.
        turns: Number of the policy's turns.
        statuses: Statuses of the policy's tool calls, without injected faults.
        injected: Number of injected faults.
        tokens: Number of tokens that the policy wrote; 0 if unknown.
        tags: Number of marked answers; -1 if unknown.
        repetition: Share of the policy's four-word sequences that already occurred in the episode, in [0, 1].
        text: Digest of the policy's text; empty if the policy wrote nothing.
        markup: Whether the policy wrote markup of a chat template as text.
        verdict: Reason of the verifier's verdict; empty if unknown.
        prompt_tokens: Number of tokens of the prompt; 0 if unknown.
        cut_prompt: Whether the prompt was cut; ``None`` if unknown.
        available: Whether the episode counts in means; ``False`` if the infrastructure failed.
    """

    key: str
    step: int
    rank: int = 0
    group: int = 0
    round: int = 0
    problem: str = ""
    question: str = ""
    task: str = ""
    seed: int | None = None
    kept: bool = False
    reason: str = ""
    advantage: float | None = None
    reward: float = 0.0
    rewards: Mapping[str, float] = field(default_factory=dict)
    correct: bool | None = None
    end: str = ""
    turns: int = 0
    statuses: tuple[ToolStatus, ...] = ()
    injected: int = 0
    tokens: int = 0
    tags: int = -1
    repetition: float = 0.0
    text: str = ""
    markup: bool = False
    verdict: str = ""
    prompt_tokens: int = 0
    cut_prompt: bool | None = None
    available: bool = True


@dataclass(slots=True)
class StepData:
    """The data of one step.

    Attributes:
        number: Number of the step.
        figures: The metrics of the step, by name.
        episodes: The episodes that were played for the step.
    """

    number: int
    figures: dict[str, float] = field(default_factory=dict)
    episodes: Sequence[EpisodeDigest] = ()
    _grouped: tuple[Sequence[EpisodeDigest], list[list[EpisodeDigest]]] | None = field(default=None, repr=False)
    _reduced: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, name: str, reduce: Callable[[StepData], T]) -> T:
        """Return the result of ``reduce`` for this step, computed once and kept even after the episodes are dropped.

        Args:
            name: Name of the result, unique among the checks.
            reduce: Function that computes the result from this step.
        """
        if name not in self._reduced:
            self._reduced[name] = reduce(self)
        found: T = self._reduced[name]
        return found

    def forget(self) -> None:
        """Drop the episodes of the step; the results of ``once`` are kept."""
        _ = self.questions
        self.episodes, self._grouped = (), None

    @property
    def questions(self) -> frozenset[tuple[str, str]]:
        """The problems that were played in this step, each as the digest of its question and its id."""
        return self.once("questions", lambda own: frozenset((one.question, one.problem) for one in own.episodes))

    def groups(self) -> list[list[EpisodeDigest]]:
        """Return the episodes of this step that are ``available``, by group."""
        if self._grouped is None or self._grouped[0] is not self.episodes:
            self._grouped = (self.episodes, self._by_group())
        return self._grouped[1]

    def _by_group(self) -> list[list[EpisodeDigest]]:
        found: dict[tuple[int, int], list[EpisodeDigest]] = {}
        for episode in self.episodes:
            if episode.available:
                found.setdefault((episode.round, episode.group), []).append(episode)
        return list(found.values())


@dataclass(slots=True)
class RunRecord:
    """The recorded data of a run, in the form that the checks read.

    Attributes:
        name: Name of the run, for messages.
        kind: Kind of the run.
        config: Options of the run, in groups; empty if unknown.
        steps: Steps of the run, in ascending order.
        evaluations: Evaluations of the run, in the same form as steps; the number of an evaluation is the number of
            steps before it.
        resumed: Numbers of the steps after which the run was resumed.
        processes: Number of processes; 0 if unknown.
    """

    name: str
    kind: Kind = "training"
    config: Mapping[str, Any] = field(default_factory=dict)
    steps: list[StepData] = field(default_factory=list)
    evaluations: list[StepData] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)
    processes: int = 0
    _series: dict[str, list[FigurePoint]] = field(default_factory=dict, repr=False)
    _seen: int = field(default=0, repr=False)

    def add(self, step: StepData) -> None:
        """Add the metrics and episodes of the next step."""
        self.steps.append(step)

    @property
    def last(self) -> int:
        """Number of the last step; 0 if there are no steps."""
        return self.steps[-1].number if self.steps else 0

    def points(self, name: str) -> list[FigurePoint]:
        """Return every recorded value of a metric, NaN included, with its step."""
        for step in self.steps[self._seen :]:
            for figure, value in step.figures.items():
                self._series.setdefault(figure, []).append((step.number, value))
        self._seen = len(self.steps)
        return self._series.get(name, [])

    def series(self, name: str) -> list[FigurePoint]:
        """Return every finite value of a metric, with its step."""
        return [point for point in self.points(name) if math.isfinite(point[1])]

    def counted(self, name: str) -> list[FigurePoint]:
        """Return the value of a metric at each step, 0 at steps that did not report it; empty if none did."""
        known = dict(self.series(name))
        return [(step.number, known.get(step.number, 0.0)) for step in self.steps] if known else []

    def option(self, name: str, default: Any = None) -> Any:
        """Return an option of the run, such as ``optim.max_grad_norm``; the default if it is unknown or ``None``."""
        value: Any = self.config
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return default
            value = value[part]
        return default if value is None else value

    def has(self, need: str, *, finite: bool = True) -> bool:
        """Whether the run recorded the named data; for the names see ``RunCheck.needs``."""
        if need == "episodes":
            return any(step.episodes for step in self.steps)
        if need == "cut_prompt":
            return any(one.cut_prompt is not None for step in self.steps for one in step.episodes)
        if need == "evaluations":
            return bool(self.evaluations)
        if need == "held_out":
            return any(one.episodes for one in self.evaluations)
        if need == "resumed":
            return bool(self.resumed)
        if need.startswith("option:"):
            return self.option(need.removeprefix("option:")) is not None
        return bool(self.series(need) if finite else self.points(need))

    def examples(
        self, since: int, until: int | None, chosen: Callable[[EpisodeDigest], bool], most: int = 3
    ) -> tuple[str, ...]:
        """Return keys of at most ``most`` episodes that ``chosen`` accepts, from the latest steps of a range."""
        found: list[str] = []
        for step in reversed(self.steps):
            if step.number < since or len(found) >= most:
                break
            if until is None or step.number <= until:
                found += [episode.key for episode in step.episodes if chosen(episode)][: most - len(found)]
        return tuple(found)

    def until(self, step: int) -> RunRecord:
        """Return the record as if the run had ended after a step."""
        return RunRecord(
            self.name,
            self.kind,
            self.config,
            [one for one in self.steps if one.number <= step],
            [one for one in self.evaluations if one.number <= step],
            [one for one in self.resumed if one <= step],
            self.processes,
        )
