"""A player without an environment or an engine, and collectors over it: what an episode earns is said by a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.turn import Turn
from rstar2_env.rewards import Component
from rstar2_env.rewards.environment_return import EnvironmentReturn
from rstar2_env.trainers.advantages.group import GroupNorm
from rstar2_env.trainers.rollouts.plain import Plain
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.step.collector import Collector
from rstar2_env.trainers.step.collector_parts import StepOptions, StepServices

Earns = Callable[[str, int, np.random.Generator], "float | str"]
"""Of a problem, the group's number and the episode's draws: its reward, or how it ends without one."""


def coin(problem: str, group: int, rng: np.random.Generator) -> float:
    """One half of the episodes succeed."""
    return float(rng.random() < 0.5)


@dataclass
class SmallPlayer:
    """Plays episodes of some tokens.

    Attributes:
        earns: What an episode earns.
        delay_s: How long the episode takes, by its draws.
        played: The reset arguments of every episode, in the order in which they began.
    """

    earns: Earns = coin
    delay_s: Callable[[np.random.Generator], float] = lambda rng: 0.0
    max_in_flight: int = 1000
    played: list[tuple[int, int | None, str]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    async def episode(
        self,
        *,
        group: int,
        seed: int | None,
        options: Mapping[str, Any],
        sampling_seed: int | None,
        shown: str | None = None,
    ) -> Episode:
        problem = str(options.get("problem_id", ""))
        self.played.append((group, seed, problem))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        rng = np.random.default_rng(sampling_seed)
        try:
            await asyncio.sleep(self.delay_s(rng))
        finally:
            self.in_flight -= 1
        made = self.ended(self.earns(problem, group, rng), rng, group, seed, problem)
        if shown is not None:
            made.shown, made.shown_ids, made.source = shown, [9, *made.prompt_ids], "refined"
        return made

    def ended(
        self, earned: float | str, rng: np.random.Generator, group: int, seed: int | None, problem: str
    ) -> Episode:
        """An episode of one turn."""
        tokens = int(rng.integers(2, 9))
        episode = Episode(
            group=group,
            seed=seed,
            problem_id=problem,
            task="coins",
            prompt_ids=[1, 2, 3],
            completion_ids=[int(i) for i in rng.integers(10, 99, tokens)],
            mask=[1] * tokens,
            logprobs=[-1.0] * tokens,
            turns=1,
            answer_tags=1,
        )
        if isinstance(earned, str):
            episode.void(earned)  # type: ignore[arg-type]
            return episode
        episode.reward, episode.end, episode.correct = earned, "answered", earned > 0
        episode.steps = [Turn(0, tokens, reward=earned, info={"end": "answered"})]
        return episode

    async def branch(
        self, parent: Episode, token: int, *, options: Mapping[str, Any], sampling_seed: int | None
    ) -> Episode:
        rng = np.random.default_rng(sampling_seed)
        problem = str(options.get("problem_id", ""))
        child = self.ended(self.earns(problem, parent.group, rng), rng, parent.group, parent.seed, problem)
        child.completion_ids[:token] = parent.completion_ids[:token]
        return child

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        return [-0.1 * len(prompt_ids)] * len(ids)

    def check(self, episodes: Sequence[Episode]) -> None:
        if episodes and all(episode.failed for episode in episodes):
            raise RuntimeError("every episode failed")


@dataclass
class SmallParts:
    """The parts of a plain run; tests replace some."""

    rollout: Any = field(default_factory=Plain)
    rewards: Sequence[Component] = (Component("return", EnvironmentReturn()),)
    selector: Any = field(default_factory=lambda: KeepAll(reject_equal=True))
    advantage: Any = field(default_factory=GroupNorm)


PROBLEMS = [f"p{i}" for i in range(23)]


def collector(player: SmallPlayer | None = None, **options: Any) -> Collector:
    """A collector of 4 groups of 4; fields of ``SmallParts``, ``StepOptions`` and ``StepServices`` replace its own."""
    parts = {name: options.pop(name) for name in ("rollout", "rewards", "selector", "advantage") if name in options}
    seed = options.get("seed", 0)
    services = {"sampler": Uniform(PROBLEMS, seed)}
    services |= {one.name: options.pop(one.name) for one in fields(StepServices) if one.name in options}
    chosen = StepOptions(**{"problems_per_step": 4, "group_size": 4, **options})
    return Collector(SmallParts(**parts), chosen, StepServices(player or SmallPlayer(), **services))  # type: ignore[arg-type]


MIXED, SAME = [1.0, 0.0, 0.0, 1.0], [0.0] * 4
SIGNS = [1.0, -1.0, -1.0, 1.0]
"""Rewards of groups of four, and the signs of their advantages."""


def by_group(earned: Sequence[Sequence[float | str]]) -> SmallPlayer:
    """Episodes of group ``n`` earn what the ``n``-th list says, in turn; further groups start again at the first."""
    told: dict[int, int] = {}

    def earns(problem: str, group: int, rng: np.random.Generator) -> float | str:
        told[group] = told.get(group, -1) + 1
        return earned[group % len(earned)][told[group]]

    return SmallPlayer(earns)


def advantages(batch: Any) -> list[Any]:
    """The advantage of each row of a batch."""
    return [row.advantage for row in batch.rows]
