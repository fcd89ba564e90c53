"""``decompose``: who is helped, by what, how it trains, and that what was solved outlives a checkpoint."""

from __future__ import annotations

import json
import re

import pytest
from asked_run import collector_of, text_of

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.rollouts.decompose import Decompose
from rstar2_env.trainers.selectors.keep_all import KeepAll

DAPO = KeepAll(reject_equal=True, equal="correct")


def asked(prompt):
    first, second = re.search(r"What is (\d+) \+ (\d+)\?", prompt).groups()
    return int(first), int(second)


def solver(*, alone, apart, reflecting):
    """Right for these first numbers, in an attempt of each kind; else wrong."""

    def says(prompt, rng):
        first, second = asked(prompt)
        kinds = {"Take this problem apart": apart, "A wrong answer": reflecting}
        right = next((numbers for mark, numbers in kinds.items() if mark in prompt), alone)
        return f"It is {first + second if first in right else 99}"

    return says


def number_of(group):
    return asked(group[0].messages[0].content)[0]


def groups_of(batch):
    return {number_of(group): group for group in batch.groups}


def test_only_what_no_episode_solves_is_helped_first_apart_then_by_reflection():
    made = collector_of(
        Decompose(attempts=2), solver(alone={0, 1, 2}, apart={3, 4, 5}, reflecting={6}), problems_per_step=8
    )
    groups = groups_of(made.collect(0))
    assert {number: len(group) for number, group in groups.items()} == {
        **dict.fromkeys((0, 1, 2, 7), 4),
        **dict.fromkeys((3, 4, 5, 6), 6),
    }
    assert all("Take this problem apart" in one.shown for number in (3, 4, 5) for one in groups[number][4:])
    assert all("A wrong answer:\nIt is 99" in one.shown for one in groups[6][4:])
    # 8 groups of 4; two attempts for each of 5 groups; two reflections for each of the 2 that still fail.
    assert len(made.player.engine.prompts) == 32 + 10 + 4


def test_the_rescued_train_under_the_question_without_an_advantage_though_their_group_is_rejected():
    says = solver(alone=set(), apart=set(range(8)), reflecting=set())
    made = collector_of(Decompose(attempts=1), says, selector=DAPO)
    batch = made.collect(0)
    assert batch.rejected == 2
    assert [(row.episode.source, row.advantage, row.columns["off_policy"]) for row in batch.rows] == [
        ("refined", 0.0, 1.0)
    ] * 2
    assert all("apart" not in text_of(made, row.prompt_ids) for row in batch.rows)
    assert all("apart" in text_of(made, row.episode.played_ids) for row in batch.rows)
    assert {row.columns["accuracy"] for row in batch.rows} == {0.0}  # the policy solved none of them by itself


def test_solved_problems_that_are_like_this_one_are_shown_and_never_itself():
    part = Decompose(examples=2, attempts=1)
    solved = [("s5", "What is 5 + 7?", "It is 12"), ("x", "Name a colour.", "Red"), ("y", "What is 5 + 8?", "It is 13")]
    part.update(solved)
    made = collector_of(part, solver(alone=set(), apart={5}, reflecting=set()), problems_per_step=8)
    shown = groups_of(made.collect(0))[5][4].shown
    assert re.findall(r"A solved problem:\n(.*)\n", shown) == ["What is 5 + 8?", "Name a colour."]
    assert "Its solution:\nIt is 13" in shown


def test_what_it_knows_is_that_of_all_processes_and_outlives_a_checkpoint():
    says = solver(alone={1, 3}, apart={2}, reflecting=set())
    whole = collector_of(Decompose(capacity=2), says, problems_per_step=8)
    whole.collect(0)
    state = json.loads(json.dumps(whole.state_dict()))
    (name, question, solution) = state["parts"]["rollout"]["solved"][-1]
    assert len(state["parts"]["rollout"]["solved"]) == 2  # of three, the last in the order of the groups
    assert (question, solution) == (f"What is {name[1:]} + 7?", f"It is {int(name[1:]) + 7}")
    again = collector_of(Decompose(capacity=2), says, problems_per_step=8)
    again.load_state_dict(state)
    assert [[one.shown for one in group] for group in again.collect(1).groups] == [
        [one.shown for one in group] for group in whole.collect(1).groups
    ]

    def work(ranks):
        made = collector_of(Decompose(capacity=2), says, problems_per_step=8, ranks=ranks)
        made.collect(0)
        return made.state_dict()["parts"]

    assert in_processes(2, work) == [state["parts"]] * 2


def test_it_is_refused_where_groups_may_end_early():
    with pytest.raises(ConfigurationError, match="Decompose does not allow this, since it adds attempts"):
        collector_of(Decompose(), lambda prompt, rng: "?", early_stop=True)
