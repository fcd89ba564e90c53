"""A typed function becomes a tool: its signature is the schema, its exceptions are statuses."""

import pickle
from typing import Annotated, Any, Literal

import pytest

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.tools import CallContext, FunctionTool, Tool, ToolCall, ToolChain

WHERE = CallContext(seed=11, number=0, turn=0)


def power(base: float, exponent: Annotated[int, "Not negative."] = 2) -> float:
    """Raise a number
    to a power.

    More that only a programmer needs to know.
    """
    if exponent < 0:
        raise ValueError("exponent must not be negative")
    return base**exponent


def call(function, **arguments):
    return ToolChain([FunctionTool(function)]).call(ToolCall(function.__name__, arguments), WHERE)


def test_it_is_a_tool():
    assert isinstance(FunctionTool(power), Tool)


def test_the_schema_is_read_from_the_signature_and_the_docstring():
    spec = FunctionTool(power).spec
    assert (spec.name, spec.description) == ("power", "Raise a number to a power.")
    assert spec.parameters == {
        "type": "object",
        "properties": {"base": {"type": "number"}, "exponent": {"type": "integer", "description": "Not negative."}},
        "required": ["base"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object"}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[list[str]], {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        (str | None, {"type": ["string", "null"]}),
        (Literal["up", "down"], {"enum": ["up", "down"]}),
    ],
)
def test_annotations_that_json_has_a_type_for(annotation, schema):
    def f(x):
        """Does."""

    f.__annotations__ = {"x": annotation}
    assert FunctionTool(f).spec.parameters["properties"]["x"] == schema


@pytest.mark.parametrize("annotation", [complex, Any, bytes, list[complex], list[int] | None, set])
def test_others_are_refused_with_the_parameters_name(annotation):
    def f(x):
        """Does."""

    f.__annotations__ = {"x": annotation}
    with pytest.raises(ConfigurationError, match="'x' of the tool 'f'"):
        FunctionTool(f)


def test_a_function_that_says_too_little_is_refused():
    def silent(x: int) -> int:
        return x

    def untyped(x):
        """Does."""

    def starred(*numbers: int) -> int:
        """Does."""
        return len(numbers)

    for function, words in ((silent, "docstring"), (untyped, "annotation"), (starred, "by name")):
        with pytest.raises(ConfigurationError, match=words):
            FunctionTool(function)


def test_what_it_returns_is_shown_as_text():
    result = call(power, base=3)
    assert (result.status, result.text) == (ToolStatus.OK, "9")


def test_an_empty_text_is_an_empty_result():
    def nothing() -> str:
        """Gives nothing."""
        return ""

    assert call(nothing).status is ToolStatus.EMPTY


def test_an_exception_is_the_policys_with_its_type_and_message():
    result = call(power, base=3, exponent=-1)
    assert (result.status, result.error_type) == (ToolStatus.EXCEPTION, "ValueError")
    assert result.text == "ValueError: exponent must not be negative"


def test_an_outage_is_ours():
    def away() -> str:
        """Asks a service."""
        raise SandboxUnavailableError("no answer")

    assert call(away).status is ToolStatus.UNAVAILABLE


@pytest.mark.parametrize("arguments", [{}, {"base": "3"}, {"base": 3, "exponent": 2.5}, {"base": 3, "scale": 1}])
def test_arguments_that_do_not_fit_do_not_reach_it(arguments):
    assert call(power, **arguments).status is ToolStatus.INVALID_ARGUMENTS


def test_a_call_context_is_given_and_not_asked_of_the_policy():
    def seeded(n: int, context: CallContext) -> str:
        """Shows its seed."""
        return f"{n} {context.seed}"

    assert list(FunctionTool(seeded).spec.parameters["properties"]) == ["n"]
    assert call(seeded, n=1).text == "1 11"
    assert call(seeded, n=1, context=2).status is ToolStatus.INVALID_ARGUMENTS


def test_the_name_can_be_another():
    assert FunctionTool(power, name="pow").spec.name == "pow"


def test_it_is_pickled_with_its_function():
    assert pickle.loads(pickle.dumps(FunctionTool(power))).call({"base": 2.0}, WHERE).text == "4.0"
