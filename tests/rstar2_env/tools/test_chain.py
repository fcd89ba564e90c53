"""Every call passes through the middleware in order, and what is wrong with it comes back as a status and a message."""

from dataclasses import replace

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing import StubTool
from rstar2_env.tools import CallContext, ToolCall, ToolChain, ToolResult

WHERE = CallContext(seed=1, number=0, turn=0)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
def tool():
    return StubTool("ran", name="count", parameters=SCHEMA)


@pytest.fixture
def chain(tool):
    return ToolChain([tool, StubTool(name="other")])


def marker(word, log):
    def middleware(call, context, go_on):
        log.append(f"{word} in")
        result = go_on(call, context)
        log.append(f"{word} out")
        return result

    return middleware


class TestWhatIsWrongWithACall:
    def test_a_good_call_reaches_its_tool(self, chain, tool):
        result = chain.call(ToolCall("count", {"n": 3}), WHERE)
        assert (result.status, result.text) == (ToolStatus.OK, "ran")
        assert tool.calls == [({"n": 3}, WHERE)]

    def test_an_unknown_tool_is_told_which_there_are(self, chain):
        result = chain.call(ToolCall("cuont", {}), WHERE)
        assert (result.status, result.error_type) == (ToolStatus.UNKNOWN_TOOL, "unknown_tool")
        assert result.text == "There is no tool named 'cuont'. The tools are: count, other. Nothing was run."

    def test_without_tools_there_are_none(self):
        assert "The tools are: none" in ToolChain([]).call(ToolCall("x"), WHERE).text

    def test_the_name_of_an_unknown_tool_is_shown_shortened_and_harmless(self, chain):
        text = chain.call(ToolCall("\ud800\x1b" + "x" * 10**6), WHERE).text
        assert len(text) < 300
        text.encode("utf-8")
        assert "\x1b" not in text

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [({}, "lacks the required 'n'"), ({"n": "3"}, "arguments.n must be of type integer, not string")],
    )
    def test_wrong_arguments_are_named_and_do_not_reach_the_tool(self, chain, tool, arguments, words):
        result = chain.call(ToolCall("count", arguments), WHERE)
        assert (result.status, result.error_type) == (ToolStatus.INVALID_ARGUMENTS, "invalid_arguments")
        assert words in result.text
        assert "count" in result.text
        assert tool.calls == []

    @pytest.mark.parametrize("status", [ToolStatus.MALFORMED, ToolStatus.INVALID_ARGUMENTS])
    def test_a_call_that_did_not_parse_keeps_its_status_and_message(self, chain, tool, status):
        result = chain.call(ToolCall("count", {"n": 3}, problem=(status, "broken")), WHERE)
        assert (result.status, result.text, result.error_type) == (status, "broken", str(status))
        assert tool.calls == []

    def test_two_tools_of_one_name_are_refused(self):
        with pytest.raises(ConfigurationError, match="'stub'"):
            ToolChain([StubTool(), StubTool()])


class TestMiddleware:
    def test_the_last_that_was_added_is_the_outermost(self, chain):
        log = []
        chain.use(marker("first", log))
        chain.use(marker("second", log))
        chain.call(ToolCall("count", {"n": 1}), WHERE)
        assert log == ["second in", "first in", "first out", "second out"]

    def test_one_that_was_removed_is_out(self, chain):
        log = []
        kept, gone = marker("kept", log), marker("gone", log)
        chain.use(kept)
        chain.use(gone)
        chain.remove(gone)
        chain.call(ToolCall("count", {"n": 1}), WHERE)
        assert log == ["kept in", "kept out"]

    def test_a_bound_method_can_be_removed(self, chain):
        class Budget:
            def act(self, call, context, go_on):
                raise AssertionError

        budget = Budget()
        chain.use(budget.act)
        chain.remove(budget.act)
        assert chain.call(ToolCall("count", {"n": 1}), WHERE).status is ToolStatus.OK

    def test_removing_what_is_not_there_is_an_error(self, chain):
        with pytest.raises(ValueError):
            chain.remove(marker("x", []))

    def test_it_may_answer_without_the_tool(self, chain, tool):
        chain.use(lambda call, context, go_on: ToolResult(call.name, ToolStatus.TIMEOUT, "fault", injected=True))
        result = chain.call(ToolCall("count", {"n": 1}), WHERE)
        assert (result.status, result.injected) == (ToolStatus.TIMEOUT, True)
        assert tool.calls == []

    def test_it_may_change_the_call_and_the_result(self, chain, tool):
        chain.use(lambda call, context, go_on: replace(go_on(replace(call, arguments={"n": 9}), context), text="other"))
        assert chain.call(ToolCall("count", {"n": 1}), WHERE).text == "other"
        assert tool.calls[0][0] == {"n": 9}

    def test_it_may_try_again(self, chain, tool):
        chain.use(lambda call, context, go_on: (go_on(call, context), go_on(call, context))[1])
        chain.call(ToolCall("count", {"n": 1}), WHERE)
        assert len(tool.calls) == 2

    @pytest.mark.parametrize(
        "call",
        [ToolCall("nobody"), ToolCall("", problem=(ToolStatus.MALFORMED, "broken")), ToolCall("count", {"n": "x"})],
    )
    def test_broken_calls_pass_through_it_too(self, chain, call):
        seen = []
        chain.use(lambda call, context, go_on: seen.append(call) or go_on(call, context))
        chain.call(call, WHERE)
        assert seen == [call]


def test_closing_closes_every_tool(tool):
    other = StubTool()
    ToolChain([tool, other]).close()
    assert tool.closed
    assert other.closed


def test_specs_come_in_the_order_of_the_tools(chain):
    assert [spec.name for spec in chain.specs] == ["count", "other"]
