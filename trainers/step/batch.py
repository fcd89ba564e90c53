"""``Batch``: what a collector returns for one step, and the names of what it measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import stdev

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.core.run_folder import Decision

from ..samplers.base import GroupResult, Start


@dataclass(slots=True)
class Group:
    """One group of a step, from its start to what became of its episodes.

    Attributes:
        number: Its number in the step, over all processes and rounds.
        round: Round of refill in which it was played; 0 for the first.
        start: Where its episodes started.
        episodes: All that were played.
        kept: Positions of those that train, ascending; none if the group is rejected.
        reasons: Why each episode does not train; "" for those that do.
        advantages: Of each episode that trains, in the order of ``kept``: its advantage, or the mean of the absolute
            ones of its tokens.
        copies: How often it trains besides, in place of groups that are missing.
        apart: Positions of episodes that train besides those, without an advantage.
        weighed: By position, the numbers by which the selector chose, where it tells them.
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

    @property
    def chosen(self) -> list[Episode]:
        """The episodes that train."""
        return [self.episodes[position] for position in self.kept]

    @property
    def accuracy(self) -> float:
        """The share of right ones among the episodes that count and had no help."""
        counted = [episode.correct for episode in self._own]
        return sum(counted) / max(len(counted), 1)

    @property
    def _own(self) -> list[Episode]:
        """The episodes that count and that the policy played without help; all that count, if it had help in each."""
        counted = [episode for episode in self.episodes if episode.available]
        return [episode for episode in counted if not episode.off_policy] or counted

    def drop(self, reason: str) -> None:
        """Let none of its episodes train."""
        for position in self.kept:
            self.reasons[position] = reason
        self.kept = []

    def decisions(self) -> list[Decision]:
        """What became of each episode."""
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
        """How it went, for the sampler."""
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
    """The rows of one step on one process, and how they came about.

    Attributes:
        rows: What trains, group after group. Nothing else is in it: no filler, and nothing of a rejected group.
        groups: The episodes of each group that this process played, refills included.
        decisions: What became of each episode, as ``groups``.
        rejected: Groups of this process of which no episode trains.
        refilled: Groups of this process that were played in place of rejected ones.
        missing: Groups that are missing from ``problems_per_step``, over all processes, when the rounds of refill were
            used up and no copy replaces them.
        seconds: Wall-clock seconds of ``rollout``, ``reward``, ``select`` and ``advantage``.
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
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)
    results: list[GroupResult] = field(default_factory=list)
