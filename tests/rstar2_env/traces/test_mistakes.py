"""Claims about mistakes made on purpose: each fails in the real tool, in its own way."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import rstar2_env  # noqa: F401 - registers the environment
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.traces.mistakes import CALL_MISTAKES, FORMAT_MISTAKES, failing_call

DIALECT = make_dialect("rstar2")
PROGRAMS = ("print(12+7*3)", "print((45-9)*6//4)", "print(0.2*50)\nprint(.5+10)")


@pytest.fixture(scope="module")
def env():
    env = gym.make("rstar2/MathTool-v0")
    yield env
    env.close()


@pytest.mark.parametrize("kind", CALL_MISTAKES)
def test_every_mistake_is_reported_by_the_tool_with_its_status(env, kind):
    rng = np.random.default_rng(0)
    for program in PROGRAMS:
        _, info = env.reset(seed=0)
        for _ in range(3):
            spoilt = failing_call(program, DIALECT, info["tools"], rng, (kind,))
            if spoilt is None:
                assert (kind, program) == ("wrong_type", PROGRAMS[2])
                continue
            observation, _, terminated, _, step = env.step(spoilt.turn)
            assert not terminated, observation
            statuses = {ToolStatus(call["status"]) for call in step["tool_calls"]}
            assert statuses <= spoilt.statuses, (spoilt.turn, observation)


def test_a_mistake_that_does_not_fit_the_program_is_passed_over(env):
    tools = env.reset()[1]["tools"]
    rng = np.random.default_rng(0)
    assert failing_call("pass", DIALECT, tools, rng, ("wrong_type", "division_by_zero")) is None
    assert failing_call("pass", DIALECT, tools, rng, ("wrong_type", "broken_json")).kind == "broken_json"


def test_every_mistake_counts_as_the_policys_error():
    assert all(mistake.statuses and all(s.is_error for s in mistake.statuses) for mistake in CALL_MISTAKES.values())


@pytest.mark.parametrize(("kind", "tags"), [("no_tags", 0), ("unclosed", 0), ("two_answers", 2)])
def test_every_broken_form_earns_what_it_says(env, kind, tags):
    mistake = FORMAT_MISTAKES[kind]
    spoilt = mistake.spoil(DIALECT.format_answer("42"))
    assert spoilt is not None
    env.reset(options={"problem": {"question": "What is 6*7?", "answer": "42"}})
    _, reward, _, _, info = env.step(spoilt)
    assert reward == float(mistake.earns)
    assert info["answer_tags"] == tags


def test_a_form_without_tags_has_no_mistake_with_tags():
    assert FORMAT_MISTAKES["no_tags"].spoil("\\boxed{1}") is None
    assert FORMAT_MISTAKES["unclosed"].spoil("\\boxed{1}") is None
