"""smolagents."""

from __future__ import annotations

import re

import smolagents
from chat_replies import arguments, said
from places import DOCS
from their_agents import ANSWER, PROBLEM, RUN, TOOL, TheirAgents, in_order, script

import rstar2_env
from rstar2_env.adapters.base.loop_agent import play
from rstar2_env.adapters.smolagents import env_tools, start
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.play.episode import play_episode


class TestSmolagents(TheirAgents):
    name = "smolagents"

    def final(self, text):
        return said(None, ("final_answer", arguments(answer=text)))

    def run_own(self, session, text, server):
        model = smolagents.OpenAIModel("m", api_base=f"{server.address}/v1", api_key="none")
        agent = smolagents.ToolCallingAgent(
            env_tools(session), model, instructions=session.system, verbosity_level=smolagents.LogLevel.OFF
        )
        session.hand_in(agent.run(text))

    def test_the_page_on_bridges_shows_what_works(self, env, capsys):
        blocks = re.findall(r"```python\n(.*?)```", (DOCS / "bridge-agents.md").read_text(), re.DOTALL)
        with script(self.final("42")) as server:
            scope = {}
            for block in blocks[:2]:
                exec(block.replace("http://127.0.0.1:8000", server.address), scope)
            assert play(env, start(scope["make"]), problem=PROBLEM).correct
        assert "answered []" in capsys.readouterr().out

    def test_a_bare_final_answer_is_marked(self, env):
        with script(self.final("42")) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.correct, episode.answer_tags) == (True, 1)

    def test_what_it_refuses_itself_is_no_turn(self, env):
        wrong = said(None, (TOOL, arguments(code=7, input="")))
        with in_order(said(None, ("no_such_tool", "{}")), wrong, said(None, RUN), self.final(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.statuses, episode.turns) == ([ToolStatus.OK], 2)

    def test_an_agent_that_writes_code_calls_the_tools_in_it(self, sandbox):
        env = rstar2_env.make_env("rstar2/MathTool-v0", sandbox=sandbox)
        program = f'result = {TOOL}(code="print(6*7)", input="")\nfinal_answer(result.strip())'
        with script(said(f"<code>\n{program}\n</code>")) as server:
            model = smolagents.OpenAIModel("m", api_base=f"{server.address}/v1", api_key="none")
            agent = smolagents.CodeAgent
            make = lambda running: agent(env_tools(running), model, verbosity_level=smolagents.LogLevel.OFF)  # noqa: E731
            episode = play(env, start(make), problem=PROBLEM)
        env.close()
        assert (episode.correct, episode.statuses) == (True, [ToolStatus.OK])
