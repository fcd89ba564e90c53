"""What is claimed of every framework's agents: a suite over the real package, against an endpoint on loopback."""

from __future__ import annotations

import threading
from importlib import import_module

import pytest
from chat_replies import arguments, heard, numbered, said
from flaky_server import flaky

import rstar2_env
from rstar2_env.adapters.base.loop_agent import play
from rstar2_env.adapters.tool_session import ToolSession
from rstar2_env.agents import make
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import Problem
from rstar2_env.testing import AGENT_CHECKS, StubSandbox, check_agent
from rstar2_env.testing.toy_env import PlainEnv

PROBLEM = Problem("p", "6*7?", "42")
TOOL = "execute_python_code_with_standard_io"
RUN = (TOOL, arguments(code="print(6*7)", input=""))
ANSWER = "<answer>\\boxed{42}</answer>"


def script(*replies):
    """An endpoint that goes by how often the model has spoken in the conversation, and repeats its last reply."""

    def answer(asked, number):
        spoken = sum(message["role"] == "assistant" for message in asked.body["messages"])
        if not any(tool["function"]["name"] == TOOL for tool in asked.body.get("tools") or ()):
            spoken = max(spoken, len(without))
        return 200, numbered(replies[min(spoken, len(replies) - 1)], number)

    calls = [reply["choices"][0]["message"].get("tool_calls") or () for reply in replies[:-1]]
    # Skipped where there is no such tool.
    without = [made for made in calls if any(call["function"]["name"] == TOOL for call in made)]
    return flaky(answer)


def in_order(*replies):
    """An endpoint that goes by how often it was asked."""
    return flaky(lambda asked, number: (200, numbered(replies[min(number, len(replies) - 1)], number)))


def loops() -> int:
    return sum(thread.name == "their loop" for thread in threading.enumerate())


class TheirAgents:
    """Claims about one framework."""

    name: str
    not_kept: tuple[str, ...] = ()

    @property
    def adapter(self):
        return import_module(f"rstar2_env.adapters.{self.name}")

    def final(self, text):
        """How a model of this framework says its last text."""
        return said(text)

    def agent(self, server, **options):
        return make(self.name, base_url=f"{server.address}/v1", model="m", **options)

    @pytest.fixture
    def sandbox(self):
        return StubSandbox("42\n")

    def failing(self, status):
        return rstar2_env.make_env("rstar2/MathTool-v0", sandbox=StubSandbox(status))

    @pytest.fixture
    def env(self, sandbox):
        env = rstar2_env.make_env("rstar2/MathTool-v0", sandbox=sandbox)
        yield env
        env.close()

    def test_it_plays_an_episode_with_the_environments_tools_as_its_own(self, env, sandbox):
        with script(said(None, RUN), self.final(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), seed=5, problem=PROBLEM)
        assert (episode.correct, episode.reward, episode.end, episode.turns) == (True, 1.0, "answered", 2)
        assert episode.statuses == [ToolStatus.OK]
        assert [job.code for job in sandbox.jobs] == ["print(6*7)"]
        first, second = (asked.body for asked in server.asked)
        tools = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
        assert tools[TOOL]["parameters"]["required"] == ["code", "input"]
        assert "<tool_call>" not in str(first["messages"])
        assert any("<answer>" in text for text in heard(first, "system"))
        assert "42" in str(second["messages"][-1])

    def test_a_failed_call_keeps_its_status(self):
        env = self.failing(ToolStatus.TIMEOUT)
        with script(said(None, RUN), self.final("no idea")) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert episode.statuses == [ToolStatus.TIMEOUT]
        assert not episode.correct

    def test_calls_made_at_once_become_turns_in_their_order(self, env, sandbox):
        calls = [(TOOL, arguments(code=f"print({number})", input="")) for number in range(3)]
        with script(said(None, *calls), self.final(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.turns, episode.correct) == (4, True)
        assert [job.code for job in sandbox.jobs] == [f"print({number})" for number in range(3)]

    def test_an_injected_fault_is_no_error_of_the_agent(self, sandbox):
        env = rstar2_env.make_env(
            "rstar2/MathTool-v0", sandbox=sandbox, wrappers="fault_injection:rate=1,kinds=timeout"
        )
        with script(said(None, RUN), self.final(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        env.close()
        assert (episode.statuses, episode.injected) == ([], [ToolStatus.TIMEOUT])
        assert episode.correct

    def test_a_budget_of_the_environment_unwinds_its_loop(self, sandbox):
        env = rstar2_env.make_env("rstar2/MathTool-v0", sandbox=sandbox, max_turns=2)
        before = loops()
        with script(said(None, RUN)) as server:
            make_agent = self.adapter.start(lambda running: self.plain(running, server))
            episode = play(env, make_agent, problem=PROBLEM)
            asked = len(server.asked)
            for thread in threading.enumerate():
                if thread.name == "their loop":
                    thread.join(20)
            assert loops() <= before
            assert len(server.asked) == asked == 2
        env.close()
        assert (episode.end, episode.turns) == ("turns", 2)

    def plain(self, running, server):
        return self.adapter.endpoint_agent(running, base_url=f"{server.address}/v1", model="m")

    def test_a_failure_of_the_sandbox_is_unavailable_and_no_reward_of_zero(self):
        env = self.failing(ToolStatus.UNAVAILABLE)
        with script(said(None, RUN)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.end, episode.available) == ("unavailable", False)

    def test_an_environment_that_goes_on_after_a_text_is_one_conversation(self):
        with script(*(self.final(f"move {number}") for number in range(3))) as server:
            episode = play_episode(PlainEnv(turns=3), self.agent(server))
        turns = [message.content for message in episode.messages if message.role == "assistant"]
        assert [turn for turn in turns if "move" in turn] == turns
        assert len(turns) == 3
        last = server.asked[-1].body["messages"]
        shown = [message.content for message in episode.messages if message.role == "user"][:3]
        assert [text for text in heard({"messages": last}, "user") if any(one in text for one in shown)] != []
        assert all(any(one in str(message) for message in last) for one in ("move 0", "move 1"))

    def test_with_text_it_writes_calls_in_the_dialect(self, env, sandbox):
        call = f'<tool_call>{{"name": "{TOOL}", "arguments": {{"code": "print(6*7)", "input": ""}}}}</tool_call>'
        with script(self.final(call), self.final(ANSWER)) as server:
            episode = play_episode(env, self.agent(server, tools="text"), problem=PROBLEM)
        assert (episode.correct, episode.statuses) == (True, [ToolStatus.OK])
        assert TOOL not in [tool["function"]["name"] for tool in server.asked[0].body.get("tools") or ()]

    def test_an_empty_text_is_no_answer_of_the_model(self, env):
        with script(self.final("")) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.end, episode.available) == ("no_text", False)

    def test_it_keeps_the_contract_of_agents(self):
        with script(said(None, RUN), self.final(ANSWER)) as server:
            options = {"base_url": f"{server.address}/v1", "model": "m"}
            skip = [name for name in self.not_kept if name in AGENT_CHECKS]
            made = check_agent(self.name, skip=skip, **options)
        assert made == [name for name in AGENT_CHECKS if name not in self.not_kept]

    def test_a_loop_of_ones_own_has_the_tools_of_a_session(self, sandbox):
        session = ToolSession("rstar2/MathTool-v0", sandbox=sandbox)
        text = session.reset(seed=1, problem=PROBLEM)
        with script(said(None, RUN), self.final(ANSWER)) as server:
            self.run_own(session, text, server)
        session.close()
        assert (session.episode.correct, session.episode.statuses) == (True, [ToolStatus.OK])
        assert session.over
        assert session.call(TOOL, {"code": "1"}) == "The episode is over; nothing was run."

    def run_own(self, session, text, server):
        """A user's own script: an agent of the framework with the session's tools, run to its end."""
        raise NotImplementedError

    def test_an_agent_of_ones_own_is_named_by_its_file(self, env, tmp_path):
        with script(said(None, RUN), self.final(ANSWER)) as server:
            (tmp_path / f"own_{self.name}.py").write_text(
                f"from rstar2_env.adapters.{self.name} import endpoint_agent\n\n\n"
                f"def make(running):\n"
                f"    return endpoint_agent(running, base_url={server.address + '/v1'!r}, model='mine')\n"
            )
            agent = make(self.name, factory=f"{tmp_path}/own_{self.name}.py:make")
            assert play_episode(env, agent, problem=PROBLEM).correct
            assert server.asked[0].body["model"] == "mine"

    def test_it_says_what_it_needs(self):
        with pytest.raises(ConfigurationError, match="`base_url` and `model`"):
            make(self.name)
        with pytest.raises(ConfigurationError, match="cannot be combined"):
            make(self.name, factory="x:y", model="m")
