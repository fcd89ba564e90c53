"""check_reward passes a sound component and names the one clause that a broken one breaks."""

import random
from dataclasses import dataclass, field

import pytest
from mutants import broken

from rstar2_env.rewards import OnTurns
from rstar2_env.testing import REWARD_CHECKS, check_reward


@dataclass
class Sound:
    """The share of the group that did no better."""

    needs = frozenset({"group"})

    def __call__(self, episode, ctx):
        return sum(other.reward <= episode.reward for other in ctx.group) / len(ctx.group)


@dataclass
class Asked:
    """What a judge and the policy say of the answer."""

    needs = frozenset({"lm", "judge"})

    async def __call__(self, episode, ctx):
        if await ctx.judge(episode.answer) != "yes":
            return None
        return sum(await ctx.lm.score(episode.prompt_ids, episode.completion_ids))


class NeedsAString(Sound):
    needs = "group"


class NeedsWhatNobodyGives(Sound):
    needs = frozenset({"group", "critic"})


class WaitsForNothing(Sound):
    async def __call__(self, episode, ctx):
        return Sound.__call__(self, episode, ctx)


class ReadsTheGroupUndeclared(Sound):
    needs = frozenset()


class NotANumber(Sound):
    def __call__(self, episode, ctx):
        return float("nan")


class AText(Sound):
    def __call__(self, episode, ctx):
        return "good"


class Pays(Sound):
    def __call__(self, episode, ctx):
        score = super().__call__(episode, ctx)
        episode.answer_tags += 1
        return score


class Dice(Sound):
    def __call__(self, episode, ctx):
        return random.random()


class Tires(Sound):
    calls = 0

    def __call__(self, episode, ctx):
        self.calls += 1
        return 1.0 / (1 + self.calls // 6)


class PrefersTheFirst(Sound):
    def __call__(self, episode, ctx):
        return float(episode is ctx.group[0])


@dataclass
class HoldsALambda(Sound):
    scale: object = field(default_factory=lambda: lambda value: value)


class Grows(Sound):
    seen = 0

    def __call__(self, episode, ctx):
        return float(self.seen)

    def observe(self, outcomes):
        self.seen += sum(len(one.lengths) for one in outcomes)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class OneTurnTooMany(Sound):
    def __call__(self, episode, ctx):
        return OnTurns([0.5] * (len(episode.steps) + 1))


MUTANTS = [
    (NeedsAString, "needs", "`needs` is 'group'; declare a frozenset"),
    (NeedsWhatNobodyGives, "needs", "needs ['critic']"),
    (WaitsForNothing, "needs", "declares none of the needs lm, judge and play"),
    (
        ReadsTheGroupUndeclared,
        "scores",
        "given only what it declares (nothing), the component raised ZeroDivisionError",
    ),
    (NotANumber, "scores", "it scored an episode with nan"),
    (AText, "scores", "it scored an episode with 'good'"),
    (Pays, "purity", "it changed an episode"),
    (Dice, "purity", "global state of random"),
    (Tires, "purity", "a second call"),
    (PrefersTheFirst, "order", "in another order, the scores are"),
    (OneTurnTooMany, "scores", "OnTurns must have one number for each"),
    (Grows, "learning", "another component that loaded its state"),
    (HoldsALambda, "pickling", "pickle"),
]
ALSO = {
    NeedsAString: {"scores", "purity", "order", "pickling"},
    ReadsTheGroupUndeclared: {"purity", "order", "pickling"},
    NotANumber: {"purity", "order", "pickling"},
    AText: {"order"},
    Dice: {"order", "pickling"},
}


@pytest.mark.parametrize("part", [Sound, Sound(), Asked, "return", "tool_use:each=0.1"], ids=repr)
def test_a_sound_component_passes_every_check(part):
    assert check_reward(part) == list(REWARD_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_reward, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(REWARD_CHECKS)


def test_one_may_have_nothing_to_score():
    assert check_reward(Asked, judge="no") == list(REWARD_CHECKS)


def test_one_that_reads_info_is_given_some():
    def steps(episode, ctx):
        return float(ctx.info["steps"])

    assert check_reward(steps, info={"steps": 3}, skip=["pickling"])
    assert "KeyError: 'steps'" in broken(check_reward, steps, skip=["pickling"])["scores"]
