"""LangGraph."""

from __future__ import annotations

from chat_replies import said
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from their_agents import ANSWER, PROBLEM, RUN, TOOL, TheirAgents, script

from rstar2_env.adapters.base.loop_agent import play
from rstar2_env.adapters.langgraph import env_tools, start
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.testing.toy_env import PlainEnv


def graph(box, server, checkpointer=None):
    tools = env_tools(box)
    model = ChatOpenAI(base_url=f"{server.address}/v1", model="m", api_key="none")
    chat = model.bind_tools(tools) if tools else model
    built = StateGraph(MessagesState)
    built.add_node("agent", lambda state: {"messages": [chat.invoke(state["messages"])]})
    built.add_node("tools", ToolNode(tools))
    built.add_edge(START, "agent")
    built.add_conditional_edges("agent", tools_condition)
    built.add_edge("tools", "agent")
    return built.compile(checkpointer=checkpointer)


class TestLangGraph(TheirAgents):
    name = "langgraph"
    not_kept = ("global_random_state",)  # LangGraph draws ids from it

    def run_own(self, session, text, server):
        state = graph(session, server).invoke({"messages": [SystemMessage(session.system), HumanMessage(text)]})
        session.say(state["messages"][-1].text)

    def test_arguments_that_are_no_json_are_a_malformed_call(self, env):
        with script(said(None, (TOOL, '{"code": "1"')), said(None, RUN), said(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.statuses, episode.correct) == ([ToolStatus.MALFORMED, ToolStatus.OK], True)
        assert server.asked[1].body["messages"][-1]["role"] == "tool"

    def test_arguments_of_a_wrong_type_are_invalid(self, env):
        with script(said(None, (TOOL, '{"code": 7, "input": ""}')), said(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert episode.statuses == [ToolStatus.INVALID_ARGUMENTS]

    def test_a_call_of_a_tool_that_does_not_exist_is_no_turn(self, env):
        with script(said(None, ("no_such_tool", "{}")), said(None, RUN), said(ANSWER)) as server:
            episode = play_episode(env, self.agent(server), problem=PROBLEM)
        assert (episode.statuses, episode.turns, episode.correct) == ([ToolStatus.OK], 2, True)

    def test_a_graph_with_a_checkpointer_keeps_every_message_once(self):
        saver = InMemorySaver()
        with script(said("a"), said("b"), said("c")) as server:
            play(PlainEnv(turns=3), start(lambda running: graph(running, server, saver)), native=True)
        assert [len(asked.body["messages"]) for asked in server.asked] == [1, 3, 5]
