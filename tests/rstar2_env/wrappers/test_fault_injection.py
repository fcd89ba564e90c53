"""Faults are seeded, labelled, and never cover up the policy's own errors."""

import pytest
from wrapper_env import RSTAR2, answer, call, make

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.wrappers import Fault, FaultInjection, ToolBudget, UnaryFeedback


def always(kind, plan="some output", **options):
    env = FaultInjection(make(plan), {kind: 1.0}, **options)
    env.reset(seed=1)
    return env


@pytest.mark.parametrize(
    ("kind", "status", "text"),
    [
        ("timeout", "timeout", "ran longer"),
        ("transient", "unavailable", "not available"),
        ("lost", "empty", "<tool_response>\n\n</tool_response>"),
        ("truncated", "ok", "<tool_response>\nsome \n</tool_response>"),
        ("latency", "ok", "some output"),
    ],
)
def test_each_kind_shows_what_it_says_and_labels_the_call(kind, status, text):
    env = always(kind, latency_s=0.001)
    shown, _, terminated, truncated, info = env.step(call())
    assert text in shown
    (record,) = info["tool_calls"]
    assert record["status"] == status
    assert record["injected"] is True
    assert record["fault"] == {"kind": kind, "landed": True, "own_status": "ok"}
    assert not terminated
    assert not truncated


def test_wrong_order_shows_an_earlier_calls_answer_and_lands_only_where_there_is_one():
    env = always("wrong_order", ["first", "second", "third"])
    shown, *_, info = env.step("\n".join([call()] * 3))
    assert [record["fault"]["landed"] for record in info["tool_calls"]] == [False, True, True]
    assert [record["injected"] for record in info["tool_calls"]] == [False, True, True]
    assert shown.count("first") == 2
    assert shown.count("second") == 1
    assert "third" not in shown


@pytest.mark.parametrize("kind", list(Fault))
def test_a_call_that_failed_by_itself_keeps_its_status_and_counts_as_the_policys_error(kind):
    env = always(kind, ToolStatus.EXCEPTION)
    *_, info = env.step(call())
    (record,) = info["tool_calls"]
    assert (record["status"], record["injected"]) == ("exception", False)
    assert record["fault"] == {"kind": kind, "landed": False, "own_status": "exception"}
    *_, info = env.step(answer(1))
    assert (info["tool_errors"], info["tool_calls_total"]) == (1, 1)
    assert info["faults"] == {}


def test_injected_faults_are_in_neither_the_calls_nor_the_errors_of_the_policy():
    env = always("timeout")
    env.step(call())
    env.step(RSTAR2.format_call("no_such_tool", {}))
    *_, info = env.step(answer(1))
    assert (info["tool_errors"], info["tool_calls_total"]) == (1, 1)
    assert info["faults"] == {"timeout": 1}


def test_our_own_failure_is_not_dressed_up_as_a_fault():
    env = always("timeout", ToolStatus.UNAVAILABLE)
    *_, truncated, info = env.step(call())
    assert truncated
    assert info["end"] == "unavailable"
    assert info["tool_calls"][0]["fault"]["landed"] is False


def hits(env, seed, calls=40):
    env.reset(seed=seed)
    *_, info = env.step("\n".join([call()] * calls))
    return [record.get("fault", {}).get("kind") for record in info["tool_calls"]]


def test_the_same_seeds_hit_the_same_calls_and_others_do_not():
    env = FaultInjection(make(), 0.5, kinds=["lost", "truncated"])
    assert hits(env, 3) == hits(FaultInjection(make(), 0.5, kinds=["lost", "truncated"]), 3)
    assert hits(env, 3) != hits(env, 4)
    assert hits(env, 3) != hits(FaultInjection(make(), 0.5, kinds=["lost", "truncated"], seed=1), 3)


def test_the_rate_is_the_share_of_calls_that_are_hit_and_kinds_share_it():
    drawn = hits(FaultInjection(make(), 0.3, kinds=["lost", "timeout", "truncated"]), 5, calls=1500)
    assert sum(kind is not None for kind in drawn) / 1500 == pytest.approx(0.3, abs=0.05)
    for kind in ("lost", "timeout", "truncated"):
        assert drawn.count(kind) / 1500 == pytest.approx(0.1, abs=0.03)


def test_rate_nought_changes_nothing():
    plain, env = make(), FaultInjection(make(), 0.0)
    assert plain.reset(seed=2) == env.reset(seed=2)
    assert plain.step(call(a=1)) == env.step(call(a=1))


def test_labels_stay_on_their_calls_beside_a_budget_and_across_attempts():
    env = ToolBudget(always("lost"), per_turn=2)
    env.reset(seed=1)
    *_, info = env.step("\n".join([call()] * 3))
    assert ["fault" in record for record in info["tool_calls"]] == [True, True, False]
    outside = FaultInjection(UnaryFeedback(make("text")), {"lost": 1.0})
    outside.reset(seed=1)
    outside.step(call())
    outside.step(call())
    outside.step(answer("wrong"))
    *_, info = outside.step(call())
    assert info["tool_calls"][0]["fault"]["kind"] == "lost"


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 1.5},
        {"rate": -0.1},
        {"rate": {"timeout": 0.6, "lost": 0.6}},
        {"rate": {"rust": 0.1}},
        {"rate": {"lost": 0.1}, "kinds": ["lost"]},
        {"kinds": []},
        {"latency_s": -1},
        {"seed": -1},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        FaultInjection(make(), **options)


def test_an_environment_without_a_chain_of_tools_is_refused_with_advice():
    import gymnasium as gym

    with pytest.raises(ConfigurationError, match="ToolEnv"):
        FaultInjection(gym.make("CartPole-v1"))
