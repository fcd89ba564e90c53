"""``Batch``: the rows, groups and metrics that a collector returns for one step; ``PlayedGroup``: one group of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import stdev

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import FloatArray, Row
from rstar2_env.core.run_folder import Decision

from ..samplers.base import GroupResult, Start


@dataclass(slots=True)
class PlayedGroup:
    """One group of a step, with its episodes and the selector's choice.

    Attributes:
        number: Number of the group in the step, from 0, over all processes and rounds.
        round: Number of the refill round in which the group was played; 0 before any refill.
        start: The arguments of ``reset`` for all of its episodes.
        episodes: All episodes that were played.
        kept: Positions of the episodes to train on, ascending; empty if the group is rejected.
        reasons: For each episode, the reason why it is not trained on; "" if it is.
        advantages: Advantages of the episodes in ``kept``, in order; for token advantages their mean absolute value.
        copies: Number of copies of this group that replace missing groups.
        apart: Positions of further episodes to train on, with the advantage 0.
        weighed: Numbers on which the selector based its choice, by the episode's position; empty if not reported.
        weights: Factor of each kept episode's advantage, by its position; empty if the selector has no weights.
    """

    number: int
    round: int
    start: Start
    episodes: list[Episode]
    kept: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    advantages: list[float] = field(default_factory=list)
    copies: int = 0
    apart: list[int] = field(default_factory=list)
    weighed: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)

    @property
    def compared(self) -> list[int]:
        """Positions of the episodes for which advantages are computed: ``kept``; with ``weights``, all usable ones.

        An episode is usable if it is available, has tokens of the policy, and is not in ``apart``.
        """
        if not self.weights:
            return self.kept
        usable = (at for at, episode in enumerate(self.episodes) if episode.available and episode.policy_tokens)
        return [at for at in usable if at not in self.apart]

    @property
    def chosen(self) -> list[Episode]:
        """Episodes at the positions in ``kept``."""
        return [self.episodes[position] for position in self.kept]

    def weighted(self, advantages: Sequence[float | FloatArray]) -> list[float | FloatArray]:
        """Multiply the advantages of the kept episodes by their weights.

        Args:
            advantages: One advantage for each episode in ``compared``, in order.

        Returns:
            One advantage for each episode in ``kept``, in order.
        """
        if not self.weights:
            return list(advantages)
        by_position = dict(zip(self.compared, advantages, strict=True))
        return [by_position[at] * self.weights[at] for at in self.kept]

    @property
    def accuracy(self) -> float:
        """Share of correct episodes in [0, 1] among the available episodes that are not ``off_policy``."""
        counted = [episode.correct for episode in self._own]
        return sum(counted) / max(len(counted), 1)

    @property
    def _own(self) -> list[Episode]:
        """Available episodes that are not ``off_policy``; if there are none, all available episodes."""
        counted = [episode for episode in self.episodes if episode.available]
        return [episode for episode in counted if not episode.off_policy] or counted

    def drop(self, reason: str) -> None:
        """Reject the group: empty ``kept`` and record ``reason`` for its episodes; ``apart`` does not change."""
        for position in self.kept:
            self.reasons[position] = reason
        self.kept = []

    def decisions(self) -> list[Decision]:
        """Return the selector's decision about each episode, in the form in which the run's folder records it."""
        advantages = {**dict.fromkeys(self.apart, 0.0), **dict(zip(self.kept, self.advantages, strict=False))}
        trained = {*self.kept, *self.apart}
        copied = set(self.kept) if self.copies else set()
        return [
            Decision(
                kept=position in trained,
                reason=reason,
                round=self.round,
                advantage=advantages.get(position),
                weighed=self.weighed.get(position, {}),
                copies=self.copies if position in copied else 0,
            )
            for position, reason in enumerate(self.reasons)
        ]

    def result(self) -> GroupResult:
        """Return the group's counts and lengths, as samplers and selectors observe them."""
        counted = self._own
        rewards = [episode.reward for episode in counted]
        sizes = [abs(value) for value in self.advantages] if self.kept else []
        return GroupResult(
            start=self.start,
            group=self.number,
            episodes=len(counted),
            successes=sum(episode.correct for episode in counted),
            reward=sum(rewards) / max(len(counted), 1),
            advantage=sum(sizes) / max(len(counted), 1),
            kept=len(self.kept),
            task=next((episode.task for episode in counted if episode.task), ""),
            deviation=stdev(rewards) if len(rewards) > 1 else 0.0,
            lengths=tuple(episode.policy_tokens for episode in counted),
            problem_id=next((episode.problem_id for episode in counted), ""),
        )


@dataclass(slots=True)
class Batch:
    """The rows of one step in one process, with their groups and metrics.

    Attributes:
        rows: The rows to train on, group after group; a rejected group has only the rows of its episodes in ``apart``.
        groups: The episodes of each group that this process played, refills included.
        decisions: The decision about each episode, in the order of ``groups``.
        rejected: Number of groups of this process without a kept episode.
        refilled: Number of groups of this process that were played to replace rejected groups.
        missing: Number of groups that are missing from ``problems_per_step`` after all rounds of refill, and after
            copies of other groups were added, over all processes.
        seconds: Wall-clock seconds of ``rollout``, ``reward``, ``select`` and ``advantage``.
        slowest: Seconds of ``rollout`` in the slowest process.
        slowest_process: Rank of that process; of equally slow processes, the lowest rank.
        figures: Sum and count of each metric, over the episodes of this process.
        results: Results of the groups of all processes, in the order of their numbers.
    """

    rows: list[Row]
    groups: list[list[Episode]]
    decisions: list[list[Decision]]
    rejected: int = 0
    refilled: int = 0
    missing: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    slowest: float = 0.0
    slowest_process: int = 0
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)
    results: list[GroupResult] = field(default_factory=list)
