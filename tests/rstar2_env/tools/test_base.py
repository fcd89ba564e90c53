"""What a tool tells about itself and its results."""

import json
from dataclasses import FrozenInstanceError
from types import MappingProxyType

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.tools import ToolCall, ToolResult, ToolSpec


def test_a_schema_has_the_form_that_chat_models_know():
    spec = ToolSpec("f", "Does f.", {"type": "object", "properties": {}})
    assert spec.schema() == {
        "type": "function",
        "function": {"name": "f", "description": "Does f.", "parameters": {"type": "object", "properties": {}}},
    }


def test_a_schema_is_the_callers_to_change():
    spec = ToolSpec("f", "", {"properties": {"x": {"type": "string"}}, "required": ["x"]})
    schema = spec.schema()
    schema["function"]["parameters"]["properties"]["x"].clear()
    schema["function"]["parameters"]["required"].append("y")
    assert spec.schema()["function"]["parameters"] == {"properties": {"x": {"type": "string"}}, "required": ["x"]}


def test_a_schema_of_any_mapping_goes_into_json():
    spec = ToolSpec("f", "", MappingProxyType({"required": ("x",)}))
    assert json.loads(json.dumps(spec.schema()))["function"]["parameters"] == {"required": ["x"]}


def test_a_record_holds_no_clock_and_goes_into_json():
    result = ToolResult("f", ToolStatus.EXCEPTION, "text", error_type="ValueError", exit_code=1, wall_s=1.5)
    assert json.loads(json.dumps(result.record())) == {
        "name": "f",
        "status": "exception",
        "error_type": "ValueError",
        "exit_code": 1,
        "truncated": False,
        "injected": False,
    }


def test_a_record_can_be_written_to_a_file_whatever_the_name_was():
    json.dumps(ToolResult("\ud800", ToolStatus.OK, "").record(), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("record", [ToolSpec("f", "", {}), ToolCall("f"), ToolResult("f", ToolStatus.OK, "")])
def test_records_are_frozen(record):
    with pytest.raises(FrozenInstanceError):
        record.name = "g"
