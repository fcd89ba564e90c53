"""LangGraph, as the index has it."""

from __future__ import annotations

import langgraph.graph

import rstar2_env


def test_an_environment_is_played_beside_it():
    assert langgraph.graph.StateGraph
    env = rstar2_env.make_env("rstar2/Countdown-v0")
    env.reset(seed=0)
    assert env.step("<answer>\\boxed{0}</answer>")[2]
    env.close()
