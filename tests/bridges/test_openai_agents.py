"""The OpenAI Agents SDK."""

from __future__ import annotations

import asyncio

from chat_replies import said
from openai import AsyncOpenAI
from their_agents import ANSWER, PROBLEM, RUN, TOOL, TheirAgents, script

import agents as sdk
from rstar2_env.adapters.openai_agents import env_tools
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.play.episode import play_episode


class TestOpenAIAgents(TheirAgents):
    name = "openai_agents"

    def run_own(self, session, text, server):
        client = AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none")
        model = sdk.OpenAIChatCompletionsModel(model="m", openai_client=client)
        agent = sdk.Agent(name="mine", instructions=session.system, tools=env_tools(session), model=model)
        config = sdk.RunConfig(tracing_disabled=True)
        session.say(asyncio.run(sdk.Runner.run(agent, text, run_config=config)).final_output)

    def test_arguments_that_are_no_json_are_a_malformed_call(self, env):
        with script(said(None, (TOOL, '{"code": "1"')), said(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.statuses, episode.correct) == ([ToolStatus.MALFORMED], True)

    def test_arguments_of_a_wrong_type_are_invalid(self, env):
        with script(said(None, (TOOL, '{"code": 7, "input": ""}')), said(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert episode.statuses == [ToolStatus.INVALID_ARGUMENTS]

    def test_a_call_of_a_tool_that_does_not_exist_is_no_turn(self, env):
        with script(said(None, ("no_such_tool", "{}")), said(None, RUN), said(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.statuses, episode.turns, episode.correct) == ([ToolStatus.OK], 2, True)

    def test_a_refusal_is_no_answer(self, env):
        refusal = said(None)
        refusal["choices"][0]["message"]["refusal"] = "I may not."
        with script(refusal) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.end, episode.available) == ("refused", False)

    def test_several_episodes_share_one_event_loop(self, env):
        with script(said(None, RUN), said(ANSWER)) as server:
            agent = self.agent(server)
            assert all(play_episode(env, agent, problem=PROBLEM).correct for _ in range(3))
