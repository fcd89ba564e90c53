"""Scores that ask the policy: the probability of the gold answer, what a plan is worth, what each turn adds."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from said import given, said, score

from rstar2_env.core.episode import Episode
from rstar2_env.core.turn import Turn
from rstar2_env.rewards import OnTurns, RewardContext, make_component
from rstar2_env.rewards.latent_action import LatentAction
from rstar2_env.rewards.plan_value import PlanValue
from rstar2_env.rewards.progress import Progress
from rstar2_env.rewards.reference_probability import ReferenceProbability

LEAD = "<answer>\\boxed{"


class Characters:
    """A policy with one token for each character; ``probability`` says how likely each of the given ones is."""

    def __init__(self, probability=lambda before, token: 0.1):
        self.probability, self.asked = probability, []

    def encode(self, text):
        return [ord(one) for one in text]

    def decode(self, ids):
        return "".join(map(chr, ids))

    async def score(self, prompt_ids, ids):
        self.asked.append((self.decode(prompt_ids), self.decode(ids)))
        found = []
        for at, one in enumerate(ids):
            found.append(math.log(self.probability(self.decode([*prompt_ids, *ids[:at]]), chr(one))))
        return found


def with_tokens(*texts, **fields):
    """An episode whose tokens are its characters."""
    episode = said(*texts, **fields)
    episode.prompt_ids = [ord(one) for one in "Q?"]
    for turn, text in zip(episode.steps, texts, strict=True):
        turn.start = len(episode.completion_ids)
        episode.completion_ids += [ord(one) for one in text]
        turn.stop = len(episode.completion_ids)
        episode.completion_ids += [ord("|")]
    return episode


class TestReferenceProbability:
    """RLPR's reward."""

    @staticmethod
    def score(episode, lm, gold="42", **options):
        return score(ReferenceProbability(**options), episode, replace(given(gold), lm=lm))

    def test_the_golden_number(self):
        lm = Characters(lambda before, token: 0.62 if "so" in before else 0.35)
        episode = with_tokens("call", f"so {LEAD}41}}</answer>")
        raised = self.score(episode, lm)
        assert raised == pytest.approx(0.27)
        assert 0.9 * raised + 0.1 == pytest.approx(0.343)
        assert self.score(episode, lm, debias=False) == pytest.approx(0.62)
        # After its own reasoning up to the answer, and right after the prompt.
        assert lm.asked[:2] == [(f"Q?call|so {LEAD}", "42"), (f"Q?{LEAD}", "42")]

    def test_the_mean_of_the_probabilities_is_taken_and_not_their_product(self):
        lm = Characters(lambda before, token: {"4": 0.9, "2": 0.01}[token] if "so" in before else 1e-9)
        assert self.score(with_tokens(f"so {LEAD}4}}"), lm) == pytest.approx(0.455)

    def test_a_uniform_policy_and_one_that_knew_before_earn_nothing(self):
        assert self.score(with_tokens(f"so {LEAD}42}}"), Characters()) == 0.0
        worse = Characters(lambda before, token: 0.2 if "so" in before else 0.6)
        assert self.score(with_tokens(f"so {LEAD}42}}"), worse) == 0.0

    def test_an_episode_without_an_answer_earns_nothing_and_asks_nobody(self):
        lm = Characters()
        assert self.score(with_tokens(f"first {LEAD}42}}", "no idea"), lm) == 0.0
        assert lm.asked == []


class TestLatentAction:
    """RA3's reward."""

    @staticmethod
    def score(text, lm, gold="x", **options):
        return score(LatentAction(**options), with_tokens(text), replace(given(gold), lm=lm))

    def test_the_golden_numbers(self):
        lm = Characters(lambda before, token: 0.8 if "<think> plan" in before else 0.5)
        assert self.score("<think> plan\nwhatever it goes on with", lm) == pytest.approx(math.log(1.6) - 0.05)
        # The line after the thought, and after <act>.
        assert lm.asked == [("Q?<think> plan\n", "x"), ("Q?<act>\n", "x")]
        assert self.score("<think> plan", Characters(lambda before, token: 0.5)) == pytest.approx(-0.05)

    def test_the_log_probabilities_of_a_line_are_summed(self):
        lm = Characters(lambda before, token: 0.8 if "<think> plan" in before else 0.5)
        assert self.score("<think> plan", lm, gold="xyz", cost=0.0) == pytest.approx(3 * math.log(1.6))

    @pytest.mark.parametrize("text", ["<act>", "x", "", "<think>", "well, <think> plan"])
    def test_what_is_no_thought_earns_nothing_and_asks_nobody(self, text):
        lm = Characters()
        assert self.score(text, lm) == 0.0
        assert lm.asked == []

    def test_no_thought_is_worth_a_cost_above_every_gain(self):
        lm = Characters(lambda before, token: 1.0 if "<think>" in before else 0.01)
        assert self.score("<think> plan", lm, cost=100.0) < 0 < self.score("<think> plan", lm)


class Branches:
    """Plays further episodes, right with a chance that depends on where they begin."""

    def __init__(self, chance, seed=0):
        self.chance, self.rng, self.asked = chance, random.Random(seed), []

    async def branch(self, episode, token, n):
        self.asked.append(token)
        begun = "".join(map(chr, episode.completion_ids[:token]))
        chance = self.chance(begun)
        if chance is None:
            return [Episode(end="unavailable") for _ in range(n)]
        return [Episode(end="answered", correct=self.rng.random() < chance) for _ in range(n)]


def ranks(values):
    """Ranks, ties shared."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


class TestPlanValue:
    """PTA-GRPO's value of a plan."""

    @staticmethod
    def ctx(chance, seed=0):
        play = Branches(chance, seed)
        return RewardContext(lm=Characters(), play=play), play

    def test_it_is_the_share_of_right_ones_after_the_plan(self):
        ctx, play = self.ctx(lambda begun: float("good" in begun))
        for plan, expected in (("good", 1.0), ("bad", 0.0)):
            assert score(PlanValue(rollouts=3), with_tokens(f"<plan>{plan}</plan> and so on"), ctx) == expected
        assert play.asked == [len("<plan>good</plan>"), len("<plan>bad</plan>")]

    def test_it_ranks_plans_by_how_well_they_lead(self):
        chances = [math.sin(math.pi * at / 62) ** 2 for at in range(32)]
        ctx, _ = self.ctx(lambda begun: chances[int(begun.split()[1])], seed=1)
        values = [
            score(PlanValue(rollouts=8), with_tokens(f"<plan> {at} </plan> x"), ctx) for at in range(len(chances))
        ]
        mine, theirs = ranks(values), ranks(chances)
        mean = sum(theirs) / len(theirs)
        covariance = sum((one - mean) * (other - mean) for one, other in zip(mine, theirs, strict=True))
        spread = math.prod(sum((one - mean) ** 2 for one in each) for each in (mine, theirs)) ** 0.5
        assert covariance / spread > 0.9

    def test_no_plan_is_worth_nothing_and_one_nobody_could_follow_says_nothing(self):
        ctx, play = self.ctx(lambda begun: None)
        assert score(PlanValue(), with_tokens("no plan"), ctx) == 0.0
        assert score(PlanValue(), with_tokens("<plan>all of it</plan>"), ctx) == 0.0
        assert play.asked == []
        assert score(PlanValue(), with_tokens("<plan>x</plan> y"), ctx) is None


class TestProgress:
    """PAV's advantage of the prover."""

    @staticmethod
    def score(chances, correct, group=(True, False), **options):
        episode = with_tokens(*["x"] * (len(chances) + 1), correct=correct)
        at = {turn.start: chance for turn, chance in zip(episode.steps[1:], chances, strict=True)}

        class Exact:
            async def branch(self, parent, token, n):
                right = round(at[token] * n)
                return [Episode(end="answered", correct=number < right) for number in range(n)]

        members = [Episode(end="answered", correct=one) for one in group]
        ctx = RewardContext(play=Exact(), group=members)
        return score(Progress(rollouts=20, **options), episode, ctx)

    def test_each_turn_earns_what_it_adds_to_the_chance_of_the_best_of_k(self):
        found = self.score([0.25, 0.75], True, best_of=2)
        mu = [1 - (1 - chance) ** 2 for chance in (0.5, 0.25, 0.75, 1.0)]
        assert isinstance(found, OnTurns)
        assert found == pytest.approx([after - before for before, after in pairwise(mu)])

    def test_with_the_policy_itself_as_prover_the_progress_adds_up_to_the_outcome_over_the_start(self):
        assert sum(self.score([0.2, 0.7], True, best_of=1)) == pytest.approx(0.5)
        assert sum(self.score([0.2, 0.7], False, best_of=1)) == pytest.approx(-0.5)

    def test_too_strong_a_prover_sees_no_progress_between_good_states(self):
        # The gap between chances of .9 and .95 under the best of four: 9e-5.
        assert self.score([0.9, 0.95], True)[1] == pytest.approx(9e-5, abs=5e-6)

    def test_the_weight_of_the_component_is_alpha(self):
        component = make_component("progress:weight=0.5")
        component = replace(component, score=lambda episode, ctx: OnTurns([0.25, -0.5]))
        assert component._weighted(OnTurns([0.25, -0.5])) == (0.125, -0.25)

    def test_an_episode_without_turns_says_nothing(self):
        assert score(Progress(), Episode(steps=[]), RewardContext(play=Branches(lambda _: 1.0))) is None
        one = Episode(steps=[Turn()], correct=True)
        assert score(Progress(), one, RewardContext(play=Branches(lambda _: 1.0))) == (1.0,)
