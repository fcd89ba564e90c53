"""Claims about reward components that are plain functions of texts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rstar2_env import evaluate
from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem
from rstar2_env.rewards import Component, RewardContext, make_component
from rstar2_env.rewards.router import Router
from rstar2_env.rewards.scoring import RewardScorer
from rstar2_env.testing import check_reward
from rstar2_env.testing.training.reward import RewardHarness
from rstar2_env.wrappers.make import make_env

EPISODE = Episode(
    messages=[
        Message("system", "s"),
        Message("user", "1+1?"),
        Message("assistant", "call"),
        Message("user", "result: two"),
        Message("assistant", "it is 2"),
    ],
    completion_ids=[5, 6, 7, 8],
    mask=[1, 0, 0, 1],
)
CTX = RewardContext(problem=Problem("p", "1+1?", "2", meta={"level": 3, "hint": "add"}))


def holds_answer(completions, answers, **kwargs):
    return [float(answer in text) for text, answer in zip(completions, answers, strict=True)]


def length(completions, **kwargs):
    return [float(len(text)) for text in completions]


def everything(prompts, completions, completion_ids, answer, question, level, missing="default"):
    return [(prompts, completions, completion_ids, answer, question, level, missing)]


async def later(completions):
    await asyncio.sleep(0)
    return [float(len(text)) for text in completions]


def test_only_the_policys_turns_are_completions():
    assert make_component(length).value(EPISODE, RewardContext()) == len("call\nit is 2")


def test_each_parameter_gets_its_column():
    score = Component("all", everything).score(EPISODE, CTX)
    assert score == (["1+1?"], ["call\nit is 2"], [[5, 8]], ["2"], ["1+1?"], [3], "default")


def test_any_keyword_gets_all_that_is_known():
    got = {}
    make_component(lambda completions, **kwargs: [got.update(kwargs) or 1.0]).value(EPISODE, CTX)
    assert {name: got[name] for name in ("answers", "hint", "questions")} == {
        "answers": ["2"],
        "hint": ["add"],
        "questions": ["1+1?"],
    }


@pytest.mark.parametrize(
    ("function", "needs"),
    [(length, set()), (holds_answer, {"problem"}), (everything, {"problem", "tokens"}), (later, set())],
)
def test_needs_follow_from_the_parameters(function, needs):
    assert make_component(function).needs == needs


@pytest.mark.parametrize("routed", [False, True])
def test_keywords_alone_get_the_problems_values_if_there_is_a_source_and_do_not_need_one(routed):
    got = []

    def keywords(completions, **kwargs):
        got.append(kwargs.get("answer"))
        return [1.0]

    part = Component("own", Router({"": keywords}) if routed else keywords)
    for source, answer in ((lambda _: CTX.problem, ["2"]), (None, None)):
        asyncio.run(
            RewardScorer([part], lacking={"problem": "no source"}, problem=source).score([replace(EPISODE)], None)
        )
        assert got.pop() == answer
    case = RewardHarness(lambda: part.score)
    case.scores([replace(EPISODE)])
    assert got.pop() == [case.problem.answer], "the check of a component gives it what a run gives it"


def test_a_coroutine_is_awaited():
    assert make_component([later, {"weight": 2}]).value(EPISODE, CTX) == 2 * len("call\nit is 2")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda completions: 1.0, "expected a list with one number"),
        (lambda completions: "1", "expected a list with one number"),
        (lambda completions: [1.0, 2.0], "returned 2 scores for one completion"),
        (lambda completions, solution: [1.0], "parameter 'solution', for which the problem has no value"),
        (lambda completions: [float("nan")], "finite number"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(function, said):
    with pytest.raises(ConfigurationError, match=said):
        make_component(function).value(EPISODE, CTX)


def test_none_is_no_score():
    assert make_component(lambda completions: [None]).value(EPISODE, CTX) is None


def test_a_function_of_an_episode_is_called_as_before():
    assert make_component(lambda episode, ctx: len(episode.messages)).value(EPISODE, CTX) == 5


def test_a_function_of_texts_keeps_the_contract():
    assert check_reward(holds_answer)
    assert check_reward(length)


@pytest.mark.parametrize("named", ["./texts.py:right", "./texts.py", "texts_of_mine:right"])
def test_it_is_found_in_a_file_or_a_module_and_scores_an_evaluation(named, tmp_path, monkeypatch):
    code = "def right(completions, answers):\n    return [2.0 * (a in c) for c, a in zip(completions, answers)]\n"
    (tmp_path / "texts.py").write_text(code)
    (tmp_path / "texts_of_mine.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    result = evaluate("rstar2/MathTool-v0", "oracle", problems="arithmetic", episodes=3, scores=[named])
    assert [list(episode.rewards.values()) for episode in result.episodes] == [[2.0]] * 3


def test_it_shapes_the_reward_of_an_environment():
    wrapper = ["reward_shaping", {"components": [Component("right", holds_answer)]}]
    env = make_env("rstar2/MathTool-v0", problems=[{"question": "1+1?", "answer": 2}], wrappers=[wrapper])
    env.reset(seed=0)
    assert env.step("<answer>\\boxed{2}</answer>")[1] == 1.0 + 1.0
    env.close()
