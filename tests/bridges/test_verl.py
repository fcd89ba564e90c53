"""verl's tools, against the real package: its loader of tools and the code of its loop that calls them."""

from __future__ import annotations

import asyncio
import gc
import json
import types

import pytest
import verl.tools.tool_registry as registry
from bridged import SUMS, answer, call, direct
from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop

from rstar2_env.adapters import verl as bridge
from rstar2_env.core.errors import ConfigurationError

START = {"seed": 4, "problem_id": "p3"}


class Data:
    """Of verl's ``AgentData`` what its loop and the tools touch."""

    def __init__(self):
        self.extra_fields = {}


@pytest.fixture
def loop(tmp_path):
    """verl's loop as far as it calls tools, with a tool that its own loader made."""
    written = {"class_name": "rstar2_env.adapters.verl.EnvTool", "config": {"type": "native", "env": SUMS}}
    (tmp_path / "tools.yaml").write_text(json.dumps({"tools": [written]}))
    (tool,) = registry.load_all_tools(str(tmp_path / "tools.yaml"), None)
    one = types.SimpleNamespace(
        tools={tool.name: tool}, max_tool_response_length=100, tool_response_truncate_side="left"
    )
    one.call = lambda *given: asyncio.run(ToolAgentLoop._call_tool(one, *given))
    return one


def tool_call(arguments, name="say"):
    return types.SimpleNamespace(name=name, arguments=arguments)


KWARGS = {"say": {"create_kwargs": START}}


def test_verl_loads_a_tool_with_the_environments_own_schema(loop):
    schema = loop.tools["say"].tool_schema.model_dump(exclude_unset=True, exclude_none=True)
    assert schema["function"]["name"] == "say"
    assert schema["function"]["parameters"]["properties"]["word"]["type"] == "string"


def test_the_calls_of_a_trajectory_are_the_turns_of_one_episode(loop):
    data = Data()
    turns = ("hello", "exception", "timeout")
    told = [loop.call(tool_call(json.dumps({"word": word})), KWARGS, data) for word in turns]
    _, *steps = direct(SUMS, 4, [call(word) for word in turns], "p3")
    assert [response.text for response, _, _ in told] == ["hello", "stub: exception", "stub: timeout"]
    assert [reward for _, reward, _ in told] == [step[1] for step in steps]
    assert [metrics["statuses"] for _, _, metrics in told] == [
        [one["status"] for one in step[4]["tool_calls"]] for step in steps
    ]
    record = data.extra_fields["rstar2"]
    assert record == {"statuses": ["ok", "exception", "timeout"], "injected": [], "turns": 3, "end": ""}
    other = Data()
    loop.call(tool_call('{"word": "a"}'), KWARGS, other)
    assert other.extra_fields["rstar2"]["turns"] == 1


def test_budgets_end_an_episode_and_nothing_runs_after(loop):
    data = Data()
    told = [loop.call(tool_call('{"word": "a"}'), KWARGS, data)[0].text for _ in range(6)]
    assert told == ["a"] * 4 + ["The episode is over (turns).", "The episode is over; nothing was run."]
    assert data.extra_fields["rstar2"]["end"] == "turns"


def test_what_verl_refuses_by_itself_has_no_status_here(loop):
    data = Data()
    assert "Invalid JSON" in loop.call(tool_call("{"), KWARGS, data)[0].text
    assert "Unknown function" in loop.call(tool_call("{}", "shout"), KWARGS, data)[0].text
    assert "must have seed or problem_id" in loop.call(tool_call('{"word": "a"}'), {}, data)[0].text
    assert data.extra_fields == {}


def test_an_unavailable_call_is_an_error_of_verls(loop):
    told = loop.call(tool_call('{"word": "unavailable"}'), KWARGS, Data())
    assert "not available" in told[0].text


def test_an_environment_is_closed_with_its_trajectory(loop):
    data = Data()
    loop.call(tool_call('{"word": "a"}'), KWARGS, data)
    trajectory = bridge.EnvTool._trajectories[data]
    tool = trajectory.env.unwrapped.tools._tools["say"]
    assert not tool.closed
    del trajectory, data
    gc.collect()
    assert tool.closed


def test_the_rows_give_every_tool_what_to_reset_with(loop):
    made = bridge.rows(SUMS, 3)
    assert len({row["extra_info"]["problem_id"] for row in made}) > 1
    for row in made:
        data = Data()
        loop.call(tool_call('{"word": "a"}'), row["extra_info"]["tools_kwargs"], data)
        trajectory = bridge.EnvTool._trajectories[data]
        assert trajectory.episode.problem_id == row["extra_info"]["problem_id"]
        assert row["prompt"][-1] == {"role": "user", "content": trajectory.episode.messages[-3].content}


def test_the_reward_is_that_of_the_policys_own_last_turn():
    row = bridge.rows(SUMS, 1)[0]
    gold = bridge.Trajectory({"env": SUMS}, row["extra_info"]).env.unwrapped.problem.answer
    score = lambda text: bridge.compute_score(SUMS, text, "", row["extra_info"])  # noqa: E731  # short
    assert score(answer(gold)) == 1.0
    assert score(f"{call('x')}<|im_end|><tool_response>{answer(gold)}</tool_response>I do not know.") == 0.0
    assert (
        score(f"<tool_response>{answer('0')}</tool_response><|im_end|>\n<|im_start|>assistant\n{answer(gold)}") == 1.0
    )


def test_a_tool_that_is_not_there_is_told():
    with pytest.raises(ConfigurationError, match="has only the tools say"):
        bridge.EnvTool({"env": SUMS, "tool": "shout"}, None)
    with pytest.raises(ConfigurationError, match="not have interactions"):
        bridge.EnvInteraction({"env": SUMS})
