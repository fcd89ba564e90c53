"""The expected update of a recipe in a listed world, through the product's own collector, parts and reference backend.

For each possible group the collector scores, selects and computes advantages, and the reference backend computes the
gradient of the loss; the update is minus this gradient. The expectation is a sum over all groups with their
probabilities, or a mean over sampled groups if parts draw or choose by order, or if the advantage keeps a state. The
optimizer's batch is one group. Recipes that differ only in their loss share the rows of a group, and equal rows of
different groups share their gradient if no term compares rows. Not covered: rewards and rollout parts that need a model
or an environment; the reward is the world's return and what the advantage adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import numpy as np
import torch
from atlas_world import TabularPolicy, World, older
from torch import Tensor

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.reference.step import embedding, gradients
from rstar2_env.trainers.base import Recipe
from rstar2_env.trainers.losses.base import ENVIRONMENT, Aggregation, Prepares, needs_of
from rstar2_env.trainers.options.parts import Parts, make_parts
from rstar2_env.trainers.ranks import ONE
from rstar2_env.trainers.rollouts.base import Play, Rollout
from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.step.collector import Collector
from rstar2_env.trainers.step.collector_parts import StepOptions, StepServices

REFERENCE = 0.3
"""Shift of the reference model and of the teacher; see ``TabularPolicy``."""
LONGEST = 16
"""Token budget of an episode, for parts that need it."""
BLOCKS = 20
"""Blocks of sampled groups, whose means give the intervals."""


@dataclass(frozen=True)
class Setting:
    """Where the groups come from.

    Attributes:
        group_size: Episodes of a group that are trained on.
        stale: Shift of the weights that sampled the episodes; 0 for the trained weights.
        behind: Number of updates by which the weights that sampled the episodes are older; see ``older``.
        temperature: Temperature at which the engine samples, while the trainer assumes 1.
        expert: Whether the last episode of each group is a demonstration: a right answer after a call.
        samples: Number of groups if they are sampled.
    """

    group_size: int = 4
    stale: float = 0.0
    behind: int = 0
    temperature: float = 1.0
    expert: bool = False
    samples: int = 2000

    @property
    def is_older(self) -> bool:
        """Whether other weights than the trained ones sampled the episodes."""
        return bool(self.stale or self.behind)


@dataclass(frozen=True)
class Expected:
    """The expected update, and its spread.

    Attributes:
        update: Expected update, (decisions, 2).
        variance: Sum of the variances of the entries of the update of one group.
        blocks: Means of blocks of sampled groups, (blocks, decisions, 2); ``None`` if all groups were listed.
    """

    update: Tensor
    variance: float
    blocks: Tensor | None = None


@dataclass
class _Collected:
    """The rows of groups for one result of ``rows_of``, world and setting; others replace them."""

    of: Any = None
    rows: dict[tuple[int, ...], list[Row]] = field(default_factory=dict)


_ROWS = _Collected()


class _Listed(Rollout):
    """Returns a given group instead of playing one."""

    group_given: list[Episode]

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """See ``Rollout``."""
        return self.group_given


class _NoPlayer:
    """A player whose episodes are all listed, so that it plays none."""

    max_in_flight = 1

    def check(self, episodes: Sequence[Episode]) -> None:
        """Accept all episodes."""


class _OneStart:
    """A sampler with one problem."""

    def draw(self, n: int) -> list[Start]:
        """See ``Sampler``."""
        return [Start(0, {"problem_id": "p"})] * n

    def observe(self, outcomes: Any) -> None:
        """See ``Sampler``."""


class Updates:
    """The updates of one recipe in one world.

    Args:
        recipe: A recipe, or its name.
        world: The world.
        setting: Where the groups come from.

    Raises:
        ConfigurationError: A part of the recipe cannot work with listed episodes.
    """

    def __init__(self, recipe: str | Recipe, world: World, setting: Setting) -> None:
        known = TRAINERS.get(recipe) if isinstance(recipe, str) else recipe
        size = {"group_size": setting.group_size, "max_episode_tokens": LONGEST, "early_stop": False}
        own = {"reward": paid(known), "rollout": "plain", "sampler": "uniform", "hook": []}
        config = known.configure({"model": "m"}, {"parts": own, "rollout": size})
        self.world, self.setting = world, setting
        self.policy = TabularPolicy(world)
        self.reference = TabularPolicy(world, REFERENCE)
        self._sampler_of_episodes = (
            older(world, setting.behind) if setting.behind else TabularPolicy(world, setting.stale)
        )
        self._paths = world.paths()
        self._listed = _Listed()
        self.parts: Parts = replace(make_parts(config, shares_weights=setting.temperature == 1), rollout=self._listed)
        self._oversample = config.rollout.oversample
        options = StepOptions(1, setting.group_size, oversample=self._oversample)
        services = StepServices(_NoPlayer(), _OneStart(), measure=self._measure)  # type: ignore[arg-type]
        self._collector = Collector(self.parts, options, services)
        self._step = 0
        self._shared = (rows_of(known), world, setting)
        self._linear = not needs_of(self.parts.terms, self.parts.correction) & {ENVIRONMENT, "embedding"} and not any(
            isinstance(term, Prepares) for term in self.parts.terms
        )
        self._row_gradients: dict[Any, Tensor] = {}
        temperature = setting.temperature
        with torch.no_grad():
            self._chances = [self._sampler_of_episodes.chance(path, temperature).item() for path in self._paths]
            self._logprobs = [self._sampler_of_episodes.logprobs(path, temperature).tolist() for path in self._paths]
            self._values = self._success_after()
        self._expert = next((at for at, path in enumerate(self._paths) if path.works and path.correct), None)

    @property
    def lists(self) -> bool:
        """Whether the expectation is a sum over all groups.

        It is not if more episodes are played than are kept, or if the advantage keeps a state. The state of a selector
        does not count: only ``deviation`` (recipe ``rlpr``) has one, to reject groups whose rewards differ little. In
        all cases of ``rlpr``, these are groups with equal rewards, which have no update anyway.
        """
        return self._oversample == 1 and not self._keeps_state

    @property
    def _keeps_state(self) -> bool:
        """Whether the advantage keeps a state."""
        return hasattr(self.parts.advantage, "state_dict")

    def expected(self) -> Expected:
        """Return the expected update of one group."""
        return self._over_all() if self.lists else self._sampled()

    def groups(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Yield all groups of a step as the numbers of their paths, with their probabilities."""
        size = self.setting.group_size * self._oversample - self.setting.expert
        for members in combinations_with_replacement(range(len(self._paths)), size):
            orders = factorial(size) // prod(map(factorial, Counter(members).values()))
            yield orders * prod(self._chances[at] for at in members), members

    def update(self, members: Sequence[int]) -> Tensor:
        """Return the update of the group of the paths with these numbers, (decisions, 2)."""
        rows = self._rows(members)
        if not rows:
            return torch.zeros_like(self.policy.table)
        return -(self._sum_of_rows(rows) if self._linear else self._gradient(rows, self.parts.aggregation))

    def _rows(self, members: Sequence[int]) -> list[Row]:
        """Return the rows that the collector makes of a group; recipes that differ only in their loss share them."""
        if self._keeps_state:
            return self._collected(members)
        if _ROWS.of != self._shared:
            _ROWS.of, _ROWS.rows = self._shared, {}
        # Selectors draw with the number of the step.
        key = (self._step, *members) if self._oversample > 1 else tuple(members)
        if key in _ROWS.rows:
            self._step += 1
        else:
            _ROWS.rows[key] = self._collected(members)
        return _ROWS.rows[key]

    def _collected(self, members: Sequence[int]) -> list[Row]:
        group = [self._episode(at) for at in members]
        if self.setting.expert and self._expert is not None:
            expert = self._episode(self._expert)
            expert.source, expert.logprobs = "expert", [0.0] * len(expert.logprobs)
            group.append(expert)
        self._listed.group_given = group
        rows = self._collector.collect(self._step).rows
        self._step += 1
        with torch.no_grad():
            for row in rows:
                row.columns["teacher"] = self._scores(self.reference, row).numpy()
        return rows

    def _sum_of_rows(self, rows: Sequence[Row]) -> Tensor:
        """Return the gradient of a group as the weighted sum of the gradients of its rows.

        The loss is the sum of the terms of each row, times the row's weight. Only equal rows share a gradient.
        """
        groups, lengths = (np.array([getattr(row, name) for row in rows]) for name in ("group", "policy_tokens"))
        weights = self.parts.aggregation(lengths, groups, ONE)
        total = torch.zeros_like(self.policy.table)
        for row, weight in zip(rows, weights, strict=True):
            columns = tuple((name, np.asarray(values).tobytes()) for name, values in sorted(row.columns.items()))
            tokens = (*row.completion_ids, *row.logprobs)
            key = (tokens, np.asarray(row.advantage, dtype=np.float64).tobytes(), columns)
            if key not in self._row_gradients:
                self._row_gradients[key] = self._gradient([row], lambda lengths, groups, ranks: np.ones(len(lengths)))
            total += float(weight) * self._row_gradients[key]
        return total

    def _gradient(self, rows: Sequence[Row], aggregation: Aggregation) -> Tensor:
        """Return the gradient of the loss of an optimizer batch, (decisions, 2)."""
        needs = needs_of(self.parts.terms, self.parts.correction)
        before = reference = embeddings = None
        with torch.no_grad():
            if self.setting.is_older:
                before = [self._scores(self._sampler_of_episodes, row) for row in rows]
            if needs & {"reference", "teacher"}:
                reference = [self._scores(self.reference, row) for row in rows]
            if "embedding" in needs:
                embeddings = [embedding(self.policy, row) for row in rows]  # type: ignore[arg-type]
        _, found = gradients(
            self.policy,  # type: ignore[arg-type]
            rows,
            self.parts.terms,
            aggregation,
            self.parts.correction,
            old=before,
            reference=reference,
            embeddings=embeddings,
            rng=np.random.default_rng(self._step),
        )
        return found["table"].clone()

    def _over_all(self) -> Expected:
        mean, square = torch.zeros_like(self.policy.table), 0.0
        for chance, members in self.groups():
            found = self.update(members).detach()
            mean += chance * found
            square += chance * float((found**2).sum())
        return Expected(mean.detach(), square - float((mean**2).sum()))

    def _sampled(self) -> Expected:
        rng = np.random.default_rng(1)
        chances = np.array(self._chances) / sum(self._chances)
        size = self.setting.group_size * self._oversample - self.setting.expert
        draws = rng.choice(len(chances), (self.setting.samples, size), p=chances)
        found = torch.stack([self.update(members.tolist()).detach() for members in draws])
        blocks = torch.stack([block.mean(0) for block in found.chunk(BLOCKS)])
        return Expected(found.mean(0), float(found.var(0).sum()), blocks)

    def _episode(self, at: int) -> Episode:
        return self._paths[at].episode(list(self._logprobs[at]), self.world.bonus)

    @staticmethod
    def _scores(policy: TabularPolicy, row: Row) -> Tensor:
        ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]])
        chosen = policy(ids).logits[0, len(row.prompt_ids) - 1 : -1].log_softmax(-1)
        return chosen.gather(1, torch.tensor(row.completion_ids)[:, None])[:, 0]

    def _success_after(self) -> dict[tuple[int, ...], float]:
        """Return the probability of a right answer after each prefix of tokens at which a turn begins."""
        found: dict[tuple[int, ...], list[float]] = {}
        for path in self._paths:
            ids, _ = path.tokens()
            chance = self.policy.chance(path).item()
            for turn in path.episode([0.0] * len(ids)).steps:
                right, total = found.setdefault(tuple(ids[: turn.start]), [0.0, 0.0])
                found[tuple(ids[: turn.start])] = [right + chance * path.correct, total + chance]
        return {prefix: right / total for prefix, (right, total) in found.items()}

    def _measure(self, part: Any, groups: Sequence[Sequence[Episode]]) -> None:
        """See ``Measure``; the probability of the gold answer is that of a right answer after the turns so far."""
        with torch.no_grad():
            for episode in (one for group in groups for one in group):
                ids = torch.tensor([[*episode.prompt_ids, *episode.completion_ids]])
                chances = self.policy(ids).logits[0, len(episode.prompt_ids) - 1 : -1].softmax(-1)
                mask = torch.tensor(episode.mask)
                episode.measured["sum_squares"] = ((chances**2).sum(-1) * mask).tolist()
                episode.measured["answer"] = [
                    self._values[tuple(episode.completion_ids[: turn.start])] for turn in episode.steps
                ]


def paid(recipe: Recipe) -> list[str]:
    """Return the components of the reward: the return, and those of the recipe that its advantage names to add."""
    parts = recipe.configure({"model": "m"}).parts
    added = parts.advantage.options.get("add", ())
    names = [added] if isinstance(added, str) else added
    return ["return", *(str(one) for one in parts.reward if one.name in names)]


def rows_of(recipe: Recipe) -> tuple[str, ...]:
    """Return what decides the rows of a group in a recipe, as text: parts, oversampling, and what is paid."""
    config = recipe.configure({"model": "m", "max_episode_tokens": LONGEST})
    chosen = str(config.parts.selector), f"oversample={config.rollout.oversample}"
    return *chosen, str(config.parts.advantage), f"paid={' '.join(paid(recipe))}"


def alone(slot: str, written: str, **others: Any) -> Recipe:
    """Return a recipe for one part: REINFORCE with leave-one-out and a constant length, with the part in its slot."""
    plain: dict[str, Any] = {"advantage": "rloo", "loss": ("reinforce",), "aggregation": "const_len:length=1", **others}
    plain[slot] = (written,) if slot == "loss" else written
    return Recipe(name=f"{slot}={written}", **plain)
