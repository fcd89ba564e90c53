"""``external``: whose turns an expert's episode has, how it is graded, and what becomes of problems without one."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from asked_run import SUMS, collector_of, player_of, text_of
from scripted_engine import EchoEnv, echo_player, scripted
from small_run import advantages

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem
from rstar2_env.rollout import Budget
from rstar2_env.trainers.advantages.group import GroupMean
from rstar2_env.trainers.advantages.policy_baseline import PolicyBaseline
from rstar2_env.trainers.losses.contrast import LIKE, relations
from rstar2_env.trainers.rollouts.external import External
from rstar2_env.trainers.selectors.keep_all import KeepAll

PARTS = {"advantage": PolicyBaseline(), "selector": KeepAll()}


def wrong(prompt, rng):
    return "It is 0"


def traces(folder, answers):
    """A file with a demonstration of each sum, as ``rstar2 traces`` writes them."""
    path = folder / "traces.jsonl"
    with open(path, "w") as file:
        for one in SUMS:
            for answer in answers(one):
                messages = [{"role": "user", "content": one["question"]}, {"role": "assistant", "content": answer}]
                file.write(json.dumps({"problem_id": one["id"], "messages": messages}) + "\n")
    return str(path)


def test_an_experts_solution_joins_each_group_and_is_graded_like_any_other(tmp_path):
    file = traces(tmp_path, lambda one: [f"Count on: {one['answer']}"])
    made = collector_of(External(file=file), wrong, **PARTS)
    batch = made.collect(0)
    for group in batch.groups:
        assert [(one.source, one.correct) for one in group] == [("policy", False)] * 3 + [("expert", True)]
        expert = group[3]
        assert expert.messages[-1].content.startswith("Count on: ")
        assert text_of(made, expert.completion_ids).startswith("Count on: ")
        assert expert.completion_ids[-1] in made.player.chat.stop_ids
        assert expert.mask == [1] * len(expert.completion_ids)
        assert expert.prompt_ids == group[0].prompt_ids
    assert [row.columns["off_policy"] for row in batch.rows[:4]] == [0, 0, 0, 1]
    assert [row.columns["correct"] for row in batch.rows[:4]] == [0, 0, 0, 1]
    assert advantages(batch)[:4] == [0, 0, 0, 1], "the mean is that of the policy's own"


def test_a_solution_that_is_wrong_is_no_better_than_others(tmp_path):
    file = traces(tmp_path, lambda one: ["Surely 1000"])
    (group, _) = collector_of(External(file=file), wrong, **PARTS).collect(0).groups
    assert [(one.source, one.correct) for one in group][3] == ("expert", False)


def test_problems_bring_demonstrations_too_and_several_take_turns(tmp_path):
    class Play:
        step = 5

        @staticmethod
        def problem(problem_id):
            meta = {"one": {"demonstration": "It is 5"}, "two": {"demonstration": ["a", "b"]}}.get(problem_id)
            return None if meta is None else Problem(problem_id, "?", "5", meta=meta)

    file = traces(tmp_path, lambda one: ["first", "second"])
    part = External(file=file)
    assert part._demonstrations("s1", Play) == [["first"], ["second"]]
    assert part._demonstrations("one", Play) == [["It is 5"]]
    assert part._demonstrations("two", Play) == [["a", "b"]]
    assert part._demonstrations("other", Play) == External(field="solution")._demonstrations("one", Play) == []


def test_without_a_demonstration_that_plays_to_its_end_the_policy_plays_one_more(tmp_path):
    too_long = traces(tmp_path, lambda one: ["word " * 500])
    for part in (External(), External(file=too_long)):
        made = collector_of(part, wrong, **PARTS)
        assert [(one.source, one.available) for one in made.collect(0).groups[0]] == [("policy", True)] * 4
        made.player.close()


def test_a_chain_that_is_only_compared_changes_no_choice_and_no_advantage(tmp_path):
    """The recipe ``carft``: the policy plays the whole group, and the chain is a further row."""
    file = traces(tmp_path, lambda one: [f"Count on: {one['answer']}"])
    parts = {"advantage": GroupMean(), "selector": KeepAll(reject_equal=True)}

    def often_right(prompt, rng):
        return "It is 0" if rng.random() < 0.5 else f"It is {sum(map(int, re.findall(r'[0-9]+', prompt)))}"

    batch = collector_of(External(file=file, only_compared=True), often_right, **parts).collect(0)
    for group in batch.groups:
        assert [one.source for one in group] == ["policy"] * 4 + ["expert"]
    mixed = [group for group in batch.groups if len({one.reward for one in group[:4]}) > 1]
    assert mixed, "or the draws do not show it"
    for group in mixed:
        rows = [row for row in batch.rows if any(row.episode is one for one in group)]
        mean = sum(one.reward for one in group[:4]) / 4
        assert [row.advantage for row in rows] == [*(one.reward - mean for one in group[:4]), 0.0]
        own = next(at for at, row in enumerate(rows) if row.episode.correct)
        others, related = relations(rows, own)
        assert [at for at, one in zip(others, related, strict=True) if one == LIKE] == [4], "the chain alone"


def test_a_problem_without_a_chain_to_compare_has_the_policys_group():
    made = collector_of(External(only_compared=True), wrong, **PARTS)
    assert [one.source for one in made.collect(0).groups[0]] == ["policy"] * 4
    made.player.close()


def test_given_turns_that_do_not_end_the_episode_or_do_not_fit_make_it_unavailable():
    with echo_player(scripted(lambda text: "stop")) as player:
        short = asyncio.run(player.given(["a", "b"]))
        assert (short.end, short.source) == ("unavailable", "expert")
        assert "whole episode, with the answer" in short.error
        whole = asyncio.run(player.given(["a", "stop"], seed=3))
        assert (whole.end, whole.turns, whole.reward) == ("terminated", 2, 1.5)
        assert 0 < sum(whole.mask) < len(whole.mask), "what the environment said is not the expert's"
    with echo_player(scripted(lambda text: "stop"), EchoEnv, budget=Budget(turn_tokens=4)) as player:
        assert "has room" not in (error := asyncio.run(player.given(["stop " * 20])).error)
        assert "only 4 tokens of the budget are left" in error


def test_what_is_no_file_of_traces_is_said_before_anything_is_played(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"question": "?"}\n')
    for name in ("bad.jsonl", "missing.jsonl"):
        with pytest.raises(ConfigurationError, match="is not a file of traces"):
            External(file=str(tmp_path / name))
    with pytest.raises(ConfigurationError, match="group_size must be at least 5"):
        collector_of(External(count=4), wrong, **PARTS).collect(0)
    player_of(wrong).close()
