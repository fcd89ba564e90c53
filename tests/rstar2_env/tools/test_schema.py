"""Arguments are checked against the schema, and the message names the place, what was expected and what came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.tools.schema import invalid_argument

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)
KINDS = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


@pytest.mark.parametrize(("kind", "value"), KINDS.items())
def test_a_value_of_the_type_fits(kind, value):
    assert invalid_argument({"type": kind}, value) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("other", "value"), KINDS.items())
def test_a_value_of_another_type_does_not(kind, other, value):
    if kind != other and (kind, other) != ("number", "integer"):
        fault = invalid_argument({"type": kind}, value)
        assert fault == f"arguments must be of type {kind}, not {other}"


def test_an_integer_is_a_number_and_a_boolean_is_neither():
    assert invalid_argument({"type": "number"}, 3) is None
    assert invalid_argument({"type": "integer"}, True) == "arguments must be of type integer, not boolean"


def test_one_of_several_types_is_enough():
    schema = {"type": ["string", "null"]}
    assert invalid_argument(schema, None) is None
    assert invalid_argument(schema, 1) == "arguments must be of type string or null, not integer"


def test_a_required_key_that_is_missing_is_named():
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert invalid_argument(schema, {}) == "arguments lacks the required 'a'"


def test_a_fault_deep_inside_is_named_by_its_path():
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}
        },
    }
    fault = invalid_argument(schema, {"rows": [{"n": 1}, {"n": "2"}]})
    assert fault == "arguments.rows[1].n must be of type integer, not string"


def test_an_unknown_key_passes_unless_the_schema_is_closed():
    open_schema = {"type": "object", "properties": {"a": {}}}
    assert invalid_argument(open_schema, {"b": 1}) is None
    fault = invalid_argument({**open_schema, "additionalProperties": False}, {"b": 1})
    assert fault == "arguments has an unknown 'b'; known: 'a'"


def test_an_unknown_key_is_shown_shortened():
    fault = invalid_argument({"type": "object", "additionalProperties": False}, {"x" * 10**6: 1})
    assert len(fault) < 200


def test_a_value_out_of_an_enumeration_is_told_the_choices():
    assert invalid_argument({"enum": ["a", "b"]}, "c") == "arguments must be one of ['a', 'b']"
    assert invalid_argument({"enum": ["a", "b"]}, "a") is None


@given(JSON)
def test_an_empty_schema_takes_everything(value):
    assert invalid_argument({}, value) is None


@given(JSON)
def test_no_value_raises(value):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string", "enum": ["x"]}}},
        "required": ["a"],
        "additionalProperties": False,
    }
    fault = invalid_argument(schema, value)
    fits = isinstance(value, dict) and set(value) == {"a"} and isinstance(value["a"], list)
    assert (fault is None) == (fits and all(item == "x" for item in value["a"]))
