"""StubTool keeps the tool protocol and answers by plan."""

import json
import pickle
import time

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing import StubTool
from rstar2_env.tools import CallContext, Tool, ToolResult

WHERE = CallContext(seed=1, number=2, turn=3)


def test_it_is_a_tool():
    assert isinstance(StubTool(), Tool)


def test_without_a_plan_it_shows_its_arguments():
    result = StubTool().call({"x": "é"}, WHERE)
    assert (result.status, json.loads(result.text)) == (ToolStatus.OK, {"x": "é"})


def test_it_notes_the_calls():
    tool = StubTool()
    tool.call({"x": 1}, WHERE)
    assert tool.calls == [({"x": 1}, WHERE)]


def test_a_sequence_is_answered_in_order_and_its_last_answer_stays():
    tool = StubTool([ToolStatus.EXCEPTION, "fine"])
    assert [tool.call({}, WHERE).status for _ in range(3)] == ["exception", "ok", "ok"]


def test_a_function_sees_arguments_and_context():
    tool = StubTool(lambda arguments, context: f"{arguments['x']} in turn {context.turn}")
    assert tool.call({"x": 5}, WHERE).text == "5 in turn 3"


def test_a_result_is_given_as_it_is():
    result = ToolResult("stub", ToolStatus.OK, "text", truncated=True)
    assert StubTool(result).call({}, WHERE) == result


def test_only_an_error_has_an_error_type():
    assert StubTool(ToolStatus.BLOCKED).call({}, WHERE).error_type == "blocked"
    assert StubTool(ToolStatus.UNAVAILABLE).call({}, WHERE).error_type is None


def test_its_name_and_schema_can_be_set():
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    spec = StubTool(name="count", description="Counts.", parameters=parameters).spec
    assert (spec.name, spec.description, spec.parameters) == ("count", "Counts.", parameters)


def test_waiting_takes_the_set_time():
    start = time.monotonic()
    result = StubTool(wait_s=0.05).call({}, WHERE)
    assert time.monotonic() - start >= 0.05
    assert result.wall_s == 0.05


def test_a_plan_that_means_nothing_is_refused():
    with pytest.raises(ConfigurationError):
        StubTool(7)


def test_it_is_pickled_with_its_place():
    tool = StubTool(["first", "second"])
    tool.call({}, WHERE)
    assert pickle.loads(pickle.dumps(tool)).call({}, WHERE).text == "second"
