"""check_advantage passes a sound estimator and names the one clause that a broken one breaks."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from mutants import broken

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing import ADVANTAGE_CHECKS, check_advantage


def deviations(group):
    rewards = np.array([episode.reward for episode in group])
    return rewards - (rewards.mean() if np.ptp(rewards) > 0 else rewards[0]) if len(rewards) else rewards


@dataclass
class Sound:
    """The reward less the mean of the group, over the deviation of the batch."""

    def __call__(self, groups, ranks):
        own = [deviations(group) for group in groups]
        square, count = ranks.sum(np.array([sum((values**2).sum() for values in own), sum(map(len, own))]))
        scale = np.sqrt(square / max(count, 1)) + 1e-4
        return [[float(value / scale) for value in values] for values in own]


class EachToken(Sound):
    """The same, as one number for each token."""

    def __call__(self, groups, ranks):
        values = super().__call__(groups, ranks)
        return [
            [np.full(len(episode.completion_ids), value) for episode, value in zip(group, own, strict=True)]
            for group, own in zip(groups, values, strict=True)
        ]


class OneForAGroup(Sound):
    def __call__(self, groups, ranks):
        return [own[:1] for own in super().__call__(groups, ranks)]


class EachTurn(Sound):
    def __call__(self, groups, ranks):
        return [[np.full(len(episode.steps) + 20, 1.0) * episode.reward for episode in group] for group in groups]


class Divides(Sound):
    def __call__(self, groups, ranks):
        with np.errstate(divide="ignore", invalid="ignore"):
            return [[float(value) for value in deviations(group) / deviations(group).std()] for group in groups]


class TakesNoSmallGroup(Sound):
    def __call__(self, groups, ranks):
        if any(len(group) < 2 for group in groups):
            raise ValueError("a group of one has no deviation")
        return super().__call__(groups, ranks)


class OfThisProcess(Sound):
    def __call__(self, groups, ranks):
        values = [value for group in groups for value in deviations(group)]
        scale = (np.std(values) if values else 1.0) + 1e-4
        return [[float(value / scale) for value in deviations(group)] for group in groups]


class SumsWhereItHasGroups(Sound):
    def __call__(self, groups, ranks):
        return super().__call__(groups, ranks) if groups else []


class FirstCounts(Sound):
    def __call__(self, groups, ranks):
        values = super().__call__(groups, ranks)
        return [[2 * own[0], *own[1:]] if own else [] for own in values]


class PraisesFailure(Sound):
    def __call__(self, groups, ranks):
        return [[-value for value in own] for own in super().__call__(groups, ranks)]


class LeavesRounding(Sound):
    def __call__(self, groups, ranks):
        return [[float(episode.reward - 0.1) for episode in group] for group in groups]


class Remembers(Sound):
    calls = 0

    def __call__(self, groups, ranks):
        self.calls += 1
        return [[value * self.calls for value in own] for own in super().__call__(groups, ranks)]


class Rewrites(Sound):
    def __call__(self, groups, ranks):
        values = super().__call__(groups, ranks)
        for group in groups:
            for episode in group:
                episode.answer = None
        return values


@dataclass
class HoldsALambda(Sound):
    scale: object = field(default_factory=lambda: lambda value: value)


MUTANTS = [
    (OneForAGroup, "shapes", "it returned 1"),
    (EachTurn, "shapes", "return a number or an array of shape"),
    (Divides, "shapes", "is nan, which is not finite"),
    (TakesNoSmallGroup, "edges", "a group of one has no deviation"),
    (OfThisProcess, "processes", "on 3 processes, the advantages differ"),
    (SumsWhereItHasGroups, "processes", "all processes must make the same calls"),
    (FirstCounts, "order", "if the episodes are in another order, an episode has a different advantage"),
    (PraisesFailure, "better_is_higher", "rewards of 0 and 1 give"),
    (LeavesRounding, "equal_rewards", "if every reward is 0, an advantage is not zero"),
    (Remembers, "purity", "a second call"),
    (Rewrites, "purity", "it changed the episodes"),
    (HoldsALambda, "pickling", "pickle"),
]
ALSO = {Divides: {"edges", "equal_rewards", "order", "processes", "purity", "pickling"}, EachTurn: {"equal_rewards"}}
ALSO |= {OneForAGroup: {"better_is_higher", "edges", "processes", "order"}}


@pytest.mark.parametrize("estimator", [Sound, EachToken, Sound()], ids=repr)
def test_a_sound_estimator_passes_every_check(estimator):
    assert check_advantage(estimator) == list(ADVANTAGE_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_advantage, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(ADVANTAGE_CHECKS)


def test_one_without_a_baseline_says_so():
    assert check_advantage("reinforce:baseline=none", zero_when_equal=False)
    assert "equal_rewards" in broken(check_advantage, "reinforce:baseline=none")


def test_names_and_options_are_those_of_a_recipe():
    assert check_advantage("group_norm", eps=1e-6)
    with pytest.raises(ConfigurationError, match="eps"):
        check_advantage("group_norm:eps=-1")
