"""A budget refuses calls where they are made, and the episode goes on."""

import pytest
from wrapper_env import answer, call, make

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.wrappers import ToolBudget


def test_calls_beyond_the_budget_are_blocked_and_nothing_runs():
    env = ToolBudget(make("x"), 2)
    _, info = env.reset(seed=1)
    assert info["tool_calls_left"] == 2
    shown, _, terminated, truncated, info = env.step("\n".join([call()] * 3))
    assert [record["status"] for record in info["tool_calls"]] == ["ok", "ok", "blocked"]
    assert info["tool_calls"][2]["error_type"] == "budget"
    assert info["tool_calls_left"] == 0
    assert "Only 2 tool calls are allowed in one episode" in shown
    assert not terminated
    assert not truncated
    *_, info = env.step(answer(1))
    assert (info["tool_errors"], info["tool_calls_total"]) == (1, 3)


def test_the_budget_of_a_turn_starts_anew_each_turn():
    env = ToolBudget(make("x"), per_turn=1)
    env.reset(seed=1)
    for _ in range(2):
        *_, info = env.step("\n".join([call()] * 2))
        assert [record["status"] for record in info["tool_calls"]] == ["ok", "blocked"]
    assert "tool_calls_left" not in info


def test_a_call_that_did_not_parse_counts():
    env = ToolBudget(make("x"), 1)
    env.reset(seed=1)
    *_, info = env.step("<tool_call>{broken</tool_call>" + call())
    assert [record["status"] for record in info["tool_calls"]] == ["malformed", "blocked"]


def test_every_episode_has_the_whole_budget():
    env = ToolBudget(make("x"), 1)
    for _ in range(2):
        env.reset(seed=1)
        *_, info = env.step(call())
        assert info["tool_calls"][0]["status"] == "ok"


@pytest.mark.parametrize("options", [{}, {"calls": -1}, {"calls": 1.5}, {"per_turn": True}])
def test_limits_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        ToolBudget(make(), **options)
