"""``mae``: what each role is shown and earns, who is paid when something fails, and each role's own baseline."""

from __future__ import annotations

import json

import numpy as np
import pytest
from asked_run import collector_of, text_of

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.task_norm import TaskNorm
from rstar2_env.trainers.rollouts.mae import Mae
from rstar2_env.trainers.rollouts.roles import form_of, score_of, tagged
from rstar2_env.trainers.selectors.keep_all import KeepAll

ROLES = {"selector": KeepAll(), "advantage": TaskNorm("(reinforce:baseline=none)"), "group_size": 8}


def says(quality, scores, *, question="<question>What is 2 + 2?</question>", answer="<answer>4</answer>"):
    """A policy that poses this, and is judged so; the scores are given in turn."""
    given = iter(scores)

    def policy(prompt, rng):
        if "Pose a new problem" in prompt:
            return question
        if "How clear" in prompt:
            return f"<score>{quality}</score>"
        if "How right" in prompt:
            return f"<score>{next(given)}</score>"
        if "What is 2 + 2?" in prompt:
            return answer
        return "99"  # wrong in the environment

    return policy


def group_of(part, policy, **options):
    """The one group of a step."""
    return collector_of(part, policy, **{**ROLES, "problems_per_step": 1, **options}).collect(0).groups[0]


def of(group, role):
    return [one for one in group if one.task == role]


def test_tags_and_scores_are_read_by_their_table():
    assert tagged("<a>x</a>", "a") == ("x", 1.0)
    assert tagged("<a>x</a><a> y </a>", "a") == ("y", 0.5)
    assert tagged("<a></a> x", "a") == ("", 0.0)
    texts = ("<score>7</score>", "<score>7</score> <score>10</score>", "<score>11</score>", "<score>good</score>", "7")
    assert [score_of(text) for text in texts] == [(0.7, 1.0), (1.0, 0.5), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
    assert [form_of(tags) for tags in (0, 1, 2, 5)] == [0.0, 1.0, 0.5, 0.5]


@pytest.mark.parametrize(("difficulty", "hard"), [("mean", 0.6), ("threshold", 1.0)])
def test_the_rewards_are_those_of_the_paper(difficulty, hard):
    group = group_of(Mae(difficulty=difficulty), says(9, [1, 3, 8]))
    assert [one.task for one in group] == ["proposer", "judge", *["solver", "judge"] * 3]
    (proposer,), solvers, judges = of(group, "proposer"), of(group, "solver"), of(group, "judge")
    named = {"quality": 0.9, "difficulty": hard, "format": 1.0}
    assert {name: proposer.rewards[f"return/{name}"] for name in named} == pytest.approx(named)
    assert proposer.reward == pytest.approx((0.9 + hard + 1) / 3)
    assert sorted(one.reward for one in solvers) == pytest.approx([0.55, 0.65, 0.9])  # (score + format) / 2
    assert [one.reward for one in judges] == [1.0] * 4
    assert all(one.reward == sum(turn.reward for turn in one.steps) for one in group)


def test_every_role_trains_under_the_prompt_that_it_was_asked_by():
    made = collector_of(Mae(), says(9, [1, 3, 8]), **{**ROLES, "problems_per_step": 1})
    rows = made.collect(0).rows
    asked = {row.episode.task: text_of(made, row.prompt_ids) for row in rows}
    assert len(rows) == 8
    assert "Pose a new problem" in asked["proposer"]
    assert "It may be of the kind of this one" in asked["proposer"]
    assert "What is 2 + 2?" in asked["solver"]
    assert "How right is the answer?" in asked["judge"]
    assert {row.columns["off_policy"] for row in rows} == {0.0}


def test_a_bad_problem_has_no_difficulty_and_is_not_solved_but_the_environments_own_is():
    group = group_of(Mae(), says(6, []))
    assert [one.task for one in group] == ["proposer", "judge", *["solver"] * 6]
    assert group[0].reward == pytest.approx((0.6 + 0 + 1) / 3)
    assert {(one.problem_id[:1], one.reward) for one in group[2:]} == {("s", 0.0)}  # wrong, and without an answer tag
    group = group_of(Mae(), says(9, [], question="I know none."))
    assert [one.task for one in group] == ["proposer", *["solver"] * 7]
    assert group[0].reward == 0.0


def test_a_format_that_is_half_kept_earns_half_of_it():
    twice = "<question>What is 2 + 2?</question>" * 2
    group = group_of(Mae(), says(10, [10, 10, 10], question=twice, answer="4"))
    assert of(group, "proposer")[0].reward == pytest.approx((1 + 0 + 0.5) / 3)
    assert {one.reward for one in of(group, "solver")} == {0.5}


def test_the_baseline_separates_the_roles():
    made = collector_of(Mae(), says(9, [1, 3, 8, 2, 9, 9, 4, 4, 1] * 4), **{**ROLES, "problems_per_step": 4})
    batch = made.collect(0)
    for role in ("solver", "judge"):
        rows = [row for row in batch.rows if row.episode.task == role]
        weights = np.array([row.policy_tokens for row in rows], dtype=float)
        values = np.array([row.advantage for row in rows])
        assert (weights @ values) / weights.sum() == pytest.approx(0.0, abs=1e-9)
    assert {row.advantage for row in batch.rows if row.episode.task == "judge"} == {0.0}  # all kept their format
    assert len({row.advantage for row in batch.rows if row.episode.task == "solver"}) > 2


def test_the_environment_grades_in_place_of_the_judges():
    def policy(prompt, rng):
        if "Pose a new problem" in prompt:
            return "<question>What is 50 + 7?</question> <answer>57</answer>"
        return "57" if "What is 50 + 7?" in prompt and rng.random() < 0.5 else "1"

    part = Mae(judge="environment", solvers=7)
    group = group_of(part, policy)
    assert [one.task for one in group] == ["proposer", *["solver"] * 7]
    solvers = of(group, "solver")
    assert {one.messages[0].content for one in solvers} == {"What is 50 + 7?"}
    right = sum(one.correct for one in solvers)
    assert 0 < right < 7
    assert [one.rewards["return/judge"] for one in solvers] == [float(one.correct) for one in solvers]
    assert group[0].reward == pytest.approx((1 + (1 - right / 7) + 1) / 3)


def test_a_problem_whose_answer_nobody_confirms_is_neither_good_nor_hard():
    wrong = "<question>What is 50 + 7?</question> <answer>58</answer>"
    group = group_of(Mae(judge="environment"), says(9, [], question=wrong), group_size=4)
    assert group[0].reward == pytest.approx(1 / 3)
    assert not group[0].correct


def test_who_was_not_judged_is_not_available_and_counts_in_no_mean():
    policy = says(9, [10, 10, 10])
    failed = []

    def sometimes(prompt, rng):
        if "How right" in prompt and not failed:
            failed.append(prompt)
            raise RuntimeError("no engine")
        return policy(prompt, rng)

    group = group_of(Mae(), sometimes)
    assert sorted((one.task, one.end) for one in group if not one.available) == [
        ("judge", "unavailable"),
        ("solver", "unavailable"),
    ]
    (proposer,) = of(group, "proposer")
    assert proposer.rewards["return/difficulty"] == pytest.approx(0.0)


def test_good_problems_are_references_later_on_every_process_and_after_a_resume():
    asked = []

    def policy(prompt, rng):
        asked.append(prompt)
        return says(9, [9] * 3)(prompt, rng)

    part = Mae()
    made = collector_of(part, policy, **ROLES)
    made.collect(0)
    state = json.loads(json.dumps(made.state_dict()))["parts"]["rollout"]
    assert state == {"good": ["What is 2 + 2?"] * 2}
    again = Mae()
    again.load_state_dict(state)
    assert again.state_dict() == part.state_dict()
    asked.clear()
    for step in range(1, 5):
        made.collect(step)
    posed = [prompt for prompt in asked if "Pose a new problem" in prompt]
    assert len(posed) == 8
    assert 0 < sum("What is 2 + 2?" in prompt for prompt in posed) < 8

    def work(ranks):
        each = collector_of(Mae(), says(9, [9] * 30), ranks=ranks, **ROLES)
        each.collect(0)
        return each.state_dict()["parts"]["rollout"]

    assert in_processes(2, work) == [state] * 2


def test_it_remembers_no_more_than_it_may_and_only_good_problems():
    part = Mae(capacity=2)
    part.update([["a"], ["b", "c"]])
    assert part.state_dict() == {"good": ["b", "c"]}
    bad = Episode(task="proposer", messages=[Message("user", "?"), Message("assistant", "<question>x</question>")])
    assert part.report([bad]) is None
    bad.correct = True
    assert part.report([bad]) == ["x"]


def test_a_group_with_less_room_has_fewer_solvers_and_one_of_an_episode_is_refused():
    group = group_of(Mae(), says(9, [9]), group_size=4)
    assert [one.task for one in group] == ["proposer", "judge", "solver", "judge"]
    with pytest.raises(ConfigurationError, match="at least 2"):
        group_of(Mae(), says(9, []), group_size=1)
    with pytest.raises(ConfigurationError, match="the texts of some roles are the tasks of others"):
        group_of(Mae(), says(9, []), early_stop=True)
