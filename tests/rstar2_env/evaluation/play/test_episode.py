"""Claims about one episode: what agents are given, and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401 - registers the environment
from rstar2_env.core.errors import ConfigurationError, UnusableReplyError
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.env.agent import Agent, InformedAgent
from rstar2_env.evaluation.play.episode import StopPlayingError, play_episode, python_call
from rstar2_env.problems import Problem
from rstar2_env.testing.stub_sandbox import StubSandbox

PROBLEM = Problem("p", "What is 6*7?", "42")
DIALECT = make_dialect("rstar2")


class Recorder:
    """An ordinary agent that keeps what it was given."""

    def __init__(self, *turns: str) -> None:
        self.turns = list(turns)
        self.seen: list[tuple[str, Mapping[str, Any]]] = []
        self.seed = -1

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        self.seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        self.seen.append((observation, info))
        return self.turns[len(self.seen) - 1]


class Told:
    needs_problem: Literal[True] = True

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        self.problem = problem

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        return DIALECT.format_answer(self.problem.answer)


@pytest.fixture
def env():
    env = gym.make("rstar2/MathTool-v0", sandbox=StubSandbox("42\n"))
    yield env
    env.close()


def call(env: gym.Env) -> str:
    return python_call(DIALECT, env.reset()[1]["tools"], "print(6*7)")


def test_an_episode_records_the_whole_conversation_and_how_it_went(env):
    agent = Recorder(call(env), DIALECT.format_answer("42"))
    episode = play_episode(env, agent, seed=5, problem=PROBLEM)
    assert [message.role for message in episode.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert "What is 6*7?" in episode.messages[1].content
    assert "42" in episode.messages[3].content
    assert (episode.reward, episode.correct, episode.end, episode.turns) == (1.0, True, "answered", 2)
    assert episode.statuses == [ToolStatus.OK]
    assert (episode.problem_id, episode.answer, episode.answer_tags, episode.seed) == ("p", "42", 1, 5)


def test_an_agent_sees_each_observation_with_its_info(env):
    agent = Recorder(call(env), DIALECT.format_answer("41"))
    episode = play_episode(env, agent, seed=7, problem=PROBLEM)
    assert agent.seed == 7
    assert [seen[0] for seen in agent.seen] == [episode.messages[1].content, episode.messages[3].content]
    assert "tools" in agent.seen[0][1]
    assert agent.seen[1][1]["tool_calls"][0]["status"] == "ok"
    assert episode.reward == 0.0


def test_an_ordinary_agent_is_never_given_the_problem(env):
    agent = Recorder(DIALECT.format_answer("1"))
    play_episode(env, agent, problem=PROBLEM)
    assert not any(PROBLEM.answer in str(value) for _, info in agent.seen for value in info.values())


def test_an_agent_that_needs_the_problem_is_given_it(env):
    assert play_episode(env, Told(), problem=PROBLEM).correct


def test_an_agent_that_needs_the_problem_and_gets_none_says_so(env):
    with pytest.raises(ConfigurationError, match="Told needs the problem"):
        play_episode(env, Told())


def test_both_kinds_of_agent_fit_their_protocol():
    assert isinstance(Recorder(), Agent)
    assert isinstance(Told(), InformedAgent)
    assert not isinstance(Recorder(), InformedAgent)


def test_an_episode_that_is_stopped_ends_between_two_turns(env):
    agent = Recorder(call(env), DIALECT.format_answer("42"))
    with pytest.raises(StopPlayingError):
        play_episode(env, agent, problem=PROBLEM, stopped=lambda: len(agent.seen) == 1)
    assert len(agent.seen) == 1


class Coin(gym.Env):
    """Somebody else's text environment: it says nothing in ``info``."""

    def reset(self, *, seed=None, options=None):
        return "guess", {}

    def step(self, action):
        return "next", 0.5, action == "stop", action == "tired", {}


@pytest.mark.parametrize(("last", "end"), [("stop", "terminated"), ("tired", "truncated")])
def test_any_text_environment_can_be_played(last, end):
    episode = play_episode(Coin(), Recorder("go", last))
    assert (episode.reward, episode.end, episode.correct, episode.turns) == (1.0, end, True, 2)
    assert [message.role for message in episode.messages] == ["user", "assistant", "user", "assistant", "user"]


def test_a_call_is_written_for_the_first_tool_that_takes_code():
    cell = {"function": {"name": "cell", "parameters": {"properties": {"code": {}}}}}
    look = {"function": {"name": "look", "parameters": {"properties": {"at": {}}}}}
    assert python_call(DIALECT, [look, cell], "1") == DIALECT.format_call("cell", {"code": "1"})
    with pytest.raises(ConfigurationError, match="look"):
        python_call(DIALECT, [look], "1")


class Follower:
    """Plays as the environment's own reference does, where there is one."""

    needs_problem: Literal[True] = True
    needs_reference: Literal[True] = True

    def reset(self, observation, info, *, seed, problem, reference=None):
        self.problem, self.reference = problem, reference

    def act(self, observation, info):
        return DIALECT.format_answer(self.problem.answer) if self.reference is None else self.reference()


def test_an_agent_that_asks_for_the_reference_player_plays_a_game_without_being_told_the_problem():
    episode = play_episode(gym.make("rstar2/TicTacToe-v0"), Follower(), seed=3)
    assert (episode.reward, episode.end) == (1.0, "answered")


def test_where_there_is_no_reference_player_it_is_told_so_and_needs_the_problem(env):
    assert play_episode(env, Follower(), problem=PROBLEM).reward == 1.0
    with pytest.raises(ConfigurationError, match="problems="):
        play_episode(env, Follower())


class Metered(Recorder):
    """Counts what its turns cost, and cannot play the reply after its last turn."""

    @property
    def usage(self) -> Mapping[str, float]:
        return {"requests": float(len(self.seen)), "completion_tokens": 7.0, "cost": 0.25}

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        if len(self.seen) == len(self.turns):
            raise UnusableReplyError("refused", "the endpoint refused to reply")
        return super().act(observation, info)


def test_a_reply_that_cannot_be_played_ends_the_episode_as_one_that_does_not_count(env):
    episode = play_episode(env, Metered(call(env)), seed=5, problem=PROBLEM)
    assert (episode.end, episode.available, episode.turns) == ("refused", False, 1)
    assert episode.error == "the endpoint refused to reply"
    again = play_episode(env, Recorder(DIALECT.format_answer("42")), seed=5, problem=PROBLEM)
    assert again.correct, "the environment can be used again"


def test_what_the_turns_cost_is_kept_with_the_episode(env):
    episode = play_episode(env, Metered(DIALECT.format_answer("42")), seed=5, problem=PROBLEM)
    assert episode.usage == {"requests": 1.0, "completion_tokens": 7.0, "cost": 0.25}
    assert episode.policy_tokens == 7
