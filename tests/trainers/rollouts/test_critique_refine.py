"""``critique_refine``: who is criticised, what is shown, which refinement is kept, and under which prompt it trains."""

from __future__ import annotations

import re

import pytest
from asked_run import collector_of, text_of
from small_run import SmallPlayer, advantages, collector

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.trainers.advantages.group import GroupMean
from rstar2_env.trainers.rollouts.critique_refine import CritiqueRefine
from rstar2_env.trainers.selectors.keep_all import KeepAll

PARTS = {"advantage": GroupMean(), "selector": KeepAll()}


def learns_from_critique(prompt, rng):
    """Wrong at first; right after a critique; critiques are one word."""
    if "Criticise it" in prompt:
        return "Recount."
    total = sum(map(int, re.search(r"What is (\d+) \+ (\d+)\?", prompt).groups()))
    return f"It is {total if 'A critique of it' in prompt else total + 1 + int(rng.integers(100))}"


def test_one_of_a_group_is_refined_with_a_critique_that_the_policy_wrote_and_trains_under_the_question():
    made = collector_of(CritiqueRefine(), learns_from_critique, **PARTS)
    batch = made.collect(0)
    for group in batch.groups:
        assert [(one.source, one.correct) for one in group] == [("policy", False)] * 3 + [("refined", True)]
        refined = group[3]
        attempt = group[0].messages[-1].content
        assert f"An earlier attempt:\n{attempt}\n\nA critique of it:\nRecount." in refined.shown
        assert refined.shown.startswith(refined.messages[0].content)
        assert refined.prompt_ids == group[0].prompt_ids
        assert "critique" in text_of(made, refined.played_ids)
        assert "critique" not in text_of(made, refined.prompt_ids)
    assert advantages(batch)[:4] == [-0.25, -0.25, -0.25, 0.75]  # r - mean over the eight, without a deviation
    assert [row.columns["off_policy"] for row in batch.rows[:4]] == [0, 0, 0, 1]
    # For each sampled episode a critique and a refinement.
    assert len(made.player.engine.prompts) == 2 * 3 * 3


@pytest.mark.parametrize(
    ("critique", "said"), [("simple", "The attempt is wrong."), ("simple_gt", r"wrong. The right answer is \d+.")]
)
def test_a_simple_critique_costs_no_turn_and_says_what_its_name_says(critique, said):
    made = collector_of(CritiqueRefine(critique=critique), learns_from_critique, **PARTS)
    batch = made.collect(0)
    refined = batch.groups[0][3]
    assert re.search(f"A critique of it:\n.*{said}\n", refined.shown)
    assert ("right answer" in refined.shown) == (critique == "simple_gt")
    assert len(made.player.engine.prompts) == 2 * 3 * 2


def test_a_judge_may_write_the_critiques_and_the_policy_is_asked_for_none():
    asked = []

    async def judge(prompt):
        asked.append(prompt)
        if "What is 0 + 7?" in prompt:
            raise ServiceError("it is away")
        return "Mind the carry."

    made = collector_of(CritiqueRefine(critic="judge"), learns_from_critique, judge=judge, problems_per_step=8, **PARTS)
    batch = made.collect(0)
    assert len(asked) == 3 * 8
    assert all("The attempt is wrong." in prompt and " ATTEMPT>\nIt is" in prompt for prompt in asked)
    refined = [group[3] for group in batch.groups if group[3].source == "refined"]
    assert len(refined) == 7  # one more is sampled where it did not reply
    assert all("A critique of it:\nMind the carry." in one.shown and one.correct for one in refined)
    assert not any("Criticise it" in prompt for prompt in made.player.engine.prompts)


def test_a_judge_that_nobody_named_is_asked_for_before_anything_is_played():
    made = collector_of(CritiqueRefine(critic="judge"), learns_from_critique, **PARTS)
    with pytest.raises(ConfigurationError, match=r"critic=judge .*rollout.judge"):
        made.collect(0)
    assert made.player.engine.prompts == []


def test_the_first_right_refinement_is_kept_else_the_best():
    order = []

    class Told(SmallPlayer):
        """Refinements earn what is told, by their number."""

        async def episode(self, *, shown=None, **arguments):
            made = await super().episode(shown=shown, **arguments)
            if shown is not None:
                made.reward, made.correct = earned[len(order) % 3]
                order.append(made)
            return made

        async def reply(self, text, **arguments):
            return await super().episode(seed=0, options={}, group=0, sampling_seed=1)

    def kept(told):
        earned[:] = told
        order.clear()
        (group,) = (
            collector(Told(), rollout=CritiqueRefine(critique="simple"), problems_per_step=1, **PARTS).collect(0).groups
        )
        return next(at for at, one in enumerate(order) if one is group[3])

    earned = []
    assert kept([(0.4, False), (1.0, True), (2.0, True)]) == 1
    assert kept([(0.1, False), (0.4, False), (0.4, False)]) == 1


def test_where_nothing_can_be_refined_one_more_is_sampled():
    first = {"tries": 0}

    def earns(problem, group, rng):
        first["tries"] += 1
        return "unavailable" if first["tries"] < 4 else 1.0

    part = CritiqueRefine(critique="simple")
    (group,) = collector(SmallPlayer(earns), rollout=part, problems_per_step=1, **PARTS).collect(0).groups
    assert [one.end for one in group] == ["unavailable"] * 3 + ["answered"]
    assert [one.source for one in group] == ["policy"] * 4


def test_the_gold_answer_has_to_be_known():
    with pytest.raises(ConfigurationError, match="Set critique=simple or critique=text"):
        collector(rollout=CritiqueRefine(critique="simple_gt")).collect(0)
    with pytest.raises(ConfigurationError, match="at least 2"):
        collector(rollout=CritiqueRefine(), group_size=1, advantage=Alone()).collect(0)


class Alone:
    least = 1

    def __call__(self, groups, ranks):
        return [[1.0] * len(group) for group in groups]
