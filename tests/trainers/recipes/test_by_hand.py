"""Systems without released code that could be read: numbers derived by hand from the formulas of their papers.

No number here comes from a reference implementation. The comments have the derivations.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from said import given, said

from rstar2_env.core.episode import Episode
from rstar2_env.rewards import RewardContext
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.stages.keep_right import KeepRight, path_score, perplexity, tails
from rstar2_env.trainers.ranks import ONE
from rstar2_env.wrappers import make_env


class Characters:
    """A policy with one token a character; a token has a probability that depends on the text before it."""

    def __init__(self, probability=None):
        self.probability = probability

    def encode(self, text):
        return [ord(one) for one in text]

    def decode(self, ids):
        return "".join(map(chr, ids))

    async def score(self, prompt_ids, ids):
        return [math.log(self.probability(self.decode(prompt_ids))) for _ in ids]


class Continued:
    """Plays on from a plan: of four episodes, as many are right as the plan's digit says."""

    async def branch(self, episode, token, n):
        begun = "".join(map(chr, episode.completion_ids[:token]))
        return [Episode(end="answered", correct=at < int(begun.split()[1])) for at in range(n)]


def parts_of(name):
    return make_parts(TRAINERS.get(name).configure({"model": "m"}), shares_weights=True)


def stage_of(pipeline, name):
    """The stage of a pipeline's file."""
    return next(one for one in read_pipeline(find_pipeline(pipeline)).stages() if one.name == name)


def in_characters(text, **fields):
    episode = said(text, **fields)
    episode.prompt_ids, episode.completion_ids = [ord("Q")], [ord(one) for one in text]
    episode.steps[0].start, episode.steps[0].stop = 0, len(text)
    return episode


def paid(parts, episode, context):
    """The reward of an episode: the weighted sum of the components of the recipe."""

    async def summed():
        total = 0.0
        for component in parts.rewards:
            found = component.score(episode, context)
            total += component.weight * (await found if inspect.isawaitable(found) else found)
        return total

    return asyncio.run(summed())


def test_alphamed_pays_the_gold_letter_alone_and_compares_with_the_group():
    """arXiv 2505.17952: a binary reward; with 2 right of 8, (1 - 1/4) / s and (0 - 1/4) / s, in the ratio 3 to -1."""
    parts = parts_of("alphamed")
    context = given("C")
    texts = [
        *("Answer: C", "<answer>C</answer>"),
        *("Answer: B", "\\boxed{A}", "(D)", "no letter at all", "The answer is C or is it D. Answer: D", "E."),
    ]
    group = [said(text, end="answered") for text in texts]
    for episode in group:
        episode.reward = paid(parts, episode, context)
    assert [episode.reward for episode in group] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert parts.selector(group, 8, np.random.default_rng(0)) == list(range(8))
    (advantages,) = parts.advantage([group], ONE)
    assert advantages[0] / advantages[2] == pytest.approx(-3)
    assert sum(advantages) == pytest.approx(0, abs=1e-9)
    assert parts.selector(group[2:], 6, np.random.default_rng(0)) == []  # equal rewards: every advantage is 0


def test_odf_keeps_the_groups_whose_bound_is_highest():
    """arXiv 2504.03380: the divergence is at least p (1 - p) / (2 beta^2), so the rates nearest to a half are kept.

    With groups of 20 and beta 1, the bound is .09375 at 5 and 15 right, .125 at 10, .08 at 4 and 16, .06375 at 3 and
    17: a bound of at least .08 is the same as a rate from .2 to .8.
    """
    bounds = {3: 0.06375, 4: 0.08, 5: 0.09375, 10: 0.125, 15: 0.09375, 16: 0.08, 17: 0.06375}
    selector = parts_of("odf").selector
    for right, bound in bounds.items():
        group = [Episode(end="answered", reward=float(at < right), correct=at < right) for at in range(20)]
        kept = selector(group, 20, np.random.default_rng(0))
        assert bool(kept) == (bound >= 0.08), right
    assert TRAINERS.get("odf").configure({"model": "m"}).rollout.refill > 0  # the batch keeps its size


@pytest.mark.parametrize(
    ("text", "outcome", "marked", "reward"),
    [
        # outcome + right of the four episodes that go on from the plan / 4 + format
        ("<plan> 3 </plan> then", 1.0, 1, 1 + 3 / 4 + 1),
        ("<plan> 3 </plan> then", 0.0, 1, 0 + 3 / 4 + 1),
        ("<plan> 1 </plan> then", 0.0, 0, 0 + 1 / 4 + 0),
        ("<plan> 0 </plan> then", 1.0, 1, 1 + 0 + 1),
        ("no plan, then", 1.0, 1, 1 + 0 + 1),
    ],
)
def test_pta_grpo_adds_the_outcome_the_mean_accuracy_after_the_plan_and_the_format(text, outcome, marked, reward):
    """arXiv 2510.01833."""
    episode = in_characters(text, reward=outcome, correct=bool(outcome), answer_tags=marked, end="answered")
    context = RewardContext(lm=Characters(), play=Continued())
    assert paid(parts_of("pta_grpo"), episode, context) == pytest.approx(reward)


def test_ra3_pays_the_gain_of_the_experts_line_less_the_cost_of_a_thought():
    """arXiv 2509.25810: sum of log p(a | s, z) over the line's tokens, less c for a thought, c = .05.

    A line of two tokens with .9 each after the thought and .6 each after <act> gains 2 log(.9 / .6) = .810930, less
    .05: .760930. A useless thought costs .05; <act> gains nothing.
    """
    reward = stage_of("ra3", "explore").options["options"]["reward"]
    config = TRAINERS.get("grpo_clip_higher").configure({"model": "m"}, {"parts": {"reward": reward}})
    parts = make_parts(config, shares_weights=True)
    context = given("xy")
    model = Characters(lambda before: 0.9 if "<think> good" in before else 0.6)
    for latent, expected in (("<think> good", 0.760930), ("<think> idle", -0.05), ("<act>", 0.0)):
        found = paid(parts, in_characters(latent, end="answered"), replace(context, lm=model))
        assert found == pytest.approx(expected, abs=1e-6), latent


def test_expert_iteration_filters_both_tails_of_the_perplexity_and_scores_paths_by_length():
    """arXiv 2509.06493: perplexity = exp(-mean log p) of a tactic; path score = sum of log p / L^alpha.

    Tokens with 1/2 and 1/8 have the perplexity exp((log 2 + log 8) / 2) = 4. Of turns with the perplexities 1 to 20,
    a tenth at each end is left out: 3 to 18 remain. Three turns of log p = -1, -2, -6 score -9, -9 / sqrt 3 and -3.
    """
    assert perplexity([math.log(1 / 2), math.log(1 / 8)]) == pytest.approx(4)
    stage = KeepRight(**stage_of("expert_iteration", "cleaner").options)
    assert tails([float(one) for one in range(1, 21)], stage.drop_low, stage.drop_high) == (3, 18)
    scores = [path_score([-1.0, -2.0, -6.0], alpha) for alpha in (0.0, 0.5, 1.0)]
    assert scores == pytest.approx([-9, -9 / math.sqrt(3), -3])


def test_totrl_first_switches_thinking_off_and_pays_exactly_the_right_assignment():
    """arXiv 2505.12717: stages without and with thinking; the rule-based reward is 1 for the exact solution, else 0.

    The solution is found here by trying all digits, not by the solver of the environment.
    """
    stages = [stage_of("totrl", name).options["options"] for name in ("no_think", "think")]
    assert [one["chat_template_options"]["enable_thinking"] for one in stages] == [False, True]
    puzzle = stages[0]["rollout"]["env_options"]["sources"]["alphametic"]
    with make_env(puzzle["id"]) as env:
        _, info = env.reset(seed=5)
        problem = env.unwrapped.problem
        addends, total = problem.meta["addends"], problem.meta["total"]
        letters = sorted({*"".join(addends), *total})
        first = {word[0] for word in (*addends, total)}
        found = []
        for digits in permutations("0123456789", len(letters)):
            digit = dict(zip(letters, digits, strict=True))
            if any(digit[letter] == "0" for letter in first):
                continue
            value = [int("".join(digit[letter] for letter in word)) for word in (*addends, total)]
            if sum(value[:-1]) == value[-1]:
                found.append(digit)
        (right,) = found
        wrong = {**right, letters[0]: str((int(right[letters[0]]) + 1) % 10)}
        for assigned, reward in ((right, 1.0), (wrong, 0.0)):
            env.reset(options={"problem_id": info["problem_id"]})
            answer = ", ".join(f"{letter}={digit}" for letter, digit in assigned.items())
            assert env.step(env.unwrapped.dialect.format_answer(answer))[1] == reward
