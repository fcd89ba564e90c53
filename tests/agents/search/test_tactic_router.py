"""Claims about the router of tactics: each is run once, what fails ends it, and the answer is of all results."""

from __future__ import annotations

import gymnasium as gym
import pytest
from scripted_model import ScriptedModel, answer, in_turn, tokens_of

import rstar2_env  # noqa: F401 - registers the environment
from rstar2_env.agents import make
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import Problem
from rstar2_env.testing import StubSandbox

PROBLEM = Problem("p", "6*7?", "42")
PROGRAM = "```python\nprint(6*7)\n```"


def routed(*replies, outcome="42\n", told=None, **options):
    agent = make("tactic_router", agent=ScriptedModel(in_turn(*replies), told), **options)
    sandbox = outcome if isinstance(outcome, StubSandbox) else StubSandbox(outcome)
    env = gym.make("rstar2/MathTool-v0", sandbox=sandbox)
    try:
        return agent, play_episode(env, agent, problem=PROBLEM), [job.code for job in sandbox.jobs]
    finally:
        env.close()


def choices(told):
    """How often a route was asked for."""
    return sum("How should this be gone about next?" in text for text in told)


def test_every_route_is_carried_out_once_and_the_results_answer():
    told = []
    replies = ["text", "Six sevens.", "program", PROGRAM, "program_aided", f"Let me see: {PROGRAM}", "Answer: 42"]
    agent, episode, programs = routed(*replies, told=told)
    assert [route for route, _ in agent.results] == ["text", "program", "program_aided"]
    assert programs == ["print(6*7)\n"] * 2
    assert (episode.correct, episode.turns) == (True, 3)
    assert all(text in told[-1] for text in ("Six sevens.", "Result of program:", "Let me see:", "42"))
    assert agent.usage["completion_tokens"] == sum(map(tokens_of, replies))


def test_a_route_that_was_carried_out_is_not_offered_again():
    told = []
    agent, episode, _ = routed("text", "Six sevens.", "text", "Answer: 42", told=told)
    assert [route for route, _ in agent.results] == ["text"]
    assert "one word: program, program_aided, aggregate" in told[2]
    assert episode.correct


def test_aggregate_answers_at_once():
    agent, episode, programs = routed("aggregate", "Answer: 42")
    assert (agent.results, programs, episode.correct) == ((), [], True)


@pytest.mark.parametrize("named", ["", "I do not know", "programs"])
def test_a_choice_that_names_none_falls_through_to_the_answer(named):
    agent, episode, _ = routed(named, "Answer: 42")
    assert (agent.results, episode.correct) == ((), True)


@pytest.mark.parametrize("reply", ["I would rather not.", "", "```python\n\n```"])
def test_a_program_that_is_none_fails_and_falls_through(reply):
    told = []
    agent, episode, programs = routed("program", reply, "Answer: 42", told=told)
    assert agent.results == (("program", "It failed."),)
    assert (programs, episode.correct) == ([], True)
    assert choices(told) == 1


def test_a_program_that_raises_fails_and_falls_through_whatever_it_printed():
    stub = StubSandbox(plan=[ToolStatus.EXCEPTION])
    told = []
    agent, episode, programs = routed("program", PROGRAM, "Answer: 42", outcome=stub, told=told)
    assert agent.results == (("program", "It failed."),)
    assert (len(programs), episode.correct) == (1, True)
    assert choices(told) == 1


def test_without_a_tool_programs_fail_and_fall_through():
    agent = make("tactic_router", agent=ScriptedModel(in_turn("program", PROGRAM, "Answer: 42")))
    agent.reset("6*7?", {}, seed=0)
    assert agent.act("6*7?", {}) == answer(42)
    assert agent.results == (("program", "It failed."),)


def test_no_more_routes_than_steps_are_carried_out():
    told = []
    agent, episode, programs = routed("program", PROGRAM, "Answer: 42", steps=1, told=told)
    assert choices(told) == 1
    assert ([route for route, _ in agent.results], len(programs)) == (["program"], 1)
    assert episode.correct


def test_an_unknown_route_is_refused():
    with pytest.raises(ConfigurationError, match=r"routes.*text, program, program_aided.*logic"):
        make("tactic_router", agent="random_text", routes=["text", "logic"])
