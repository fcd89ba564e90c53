"""The rstar2 dialect reads every call however broken, grades nothing but the policy's last answer, and never fails."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import HOSTILE_TURNS, StubTool
from rstar2_env.tools import ToolResult

RSTAR2 = make_dialect("rstar2")
ANYWHERE = make_dialect("rstar2", boxed_anywhere=True)
CALL = RSTAR2.format_call("f", {"x": 1})
MALFORMED = ToolStatus.MALFORMED


def call(body):
    return f"<tool_call>{body}</tool_call>"


def only(turn):
    (found,) = RSTAR2.calls(turn)
    return found


class TestCalls:
    def test_a_call_is_its_name_and_arguments(self):
        found = only(call('{"name": "f", "arguments": {"x": [1, null]}}'))
        assert (found.name, found.arguments, found.problem) == ("f", {"x": [1, None]}, None)

    def test_text_and_white_space_around_it_do_not_matter(self):
        turn = 'I think\n<tool_call>\n\t {"name": "f",\n "arguments": {}} \n</tool_call>\n and so'
        assert only(turn).name == "f"

    def test_several_calls_come_in_order(self):
        turn = "a" + "b".join(RSTAR2.format_call("f", {"n": n}) for n in range(5))
        assert [found.arguments["n"] for found in RSTAR2.calls(turn)] == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize(
        "turn", ["", "no call", "</tool_call>", '{"name": "f", "arguments": {}}', "<tool_call", "<Tool_Call>"]
    )
    def test_a_turn_without_an_opening_tag_has_none(self, turn):
        assert RSTAR2.calls(turn) == []

    def test_code_may_hold_the_closing_tag(self):
        code = "print('</tool_call>')\nprint('<tool_call>{}</tool_call>')"
        found = RSTAR2.calls(RSTAR2.format_call("f", {"code": code}) + CALL)
        assert [each.arguments for each in found] == [{"code": code}, {"x": 1}]

    def test_code_far_longer_than_any_buffer_may_hold_it_too(self):
        code = "x = 1  # padding\n" * 5_000 + "</tool_call>" + '"' * 1000
        assert only(RSTAR2.format_call("f", {"code": code})).arguments["code"] == code

    def test_an_unclosed_call_says_so(self):
        status, message = only('<tool_call>{"name": "f", "arguments": {}}').problem
        assert status is MALFORMED
        assert message == "The tool call was not closed: </tool_call> is missing. Nothing was run."

    def test_an_unclosed_call_does_not_swallow_the_next(self):
        first, second = RSTAR2.calls('<tool_call>{"name": "f", "arguments": {}}\n' + CALL)
        assert "not closed" in first.problem[1]
        assert (second.name, second.problem) == ("f", None)

    def test_a_broken_call_does_not_stop_the_next(self):
        first, second = RSTAR2.calls(call("{") + CALL)
        assert first.problem[0] is MALFORMED
        assert second.problem is None

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ("", "Expecting value at character 0"),
            ("print(1)", "Expecting value at character 0"),
            ("{'name': 'f'}", "Expecting property name enclosed in double quotes at character 1"),
            ('{"name": "f", "arguments": {}', "Expecting ',' delimiter"),
            ('{"name": "f", "arguments": {}}}', "something else follows the JSON value at character 30"),
            ('{"name": "f", "arguments": {}} x', "something else follows"),
            ('{"name": "f" "arguments": {}}', "Expecting ',' delimiter at character 13"),
            ('{"name": "f", "arguments": {"code": "a\nb"}}', r"a line break inside a string is written \n"),
            ('{"name": "f", "arguments": {"code": "\\sin x"}}', "Invalid \\escape at character"),
            ('{"name": "f", "arguments": {"code": "\\sin x"}}', r"a backslash inside a string is written \\"),
            ('{"name": "f", "arguments": {"code": "print("hi")"}}', "Expecting ',' delimiter"),
            ('{"name": "f", "arguments": {"code": "abc}}', "Unterminated string at character 36"),
            ('{"name": "f", "arguments": {"x": NaN}}', "NaN is not JSON"),
            ('{"name": "f", "arguments": {"x": -Infinity}}', "-Infinity is not JSON"),
            ('{"name": "f", "arguments": {"x": 1e999}}', "the number 1e999 is too large"),
            ('{"name": "f", "arguments": {"x": ' + "9" * 100_000 + "}}", "a number has more than 4000 digits"),
            ('{"name": "f", "arguments": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}", "nested too deeply"),
            ('{"name": "f", "arguments": {"x": 1, "x": 2}}', "the key 'x' occurs more than once"),
            ('{"name": "f", "name": "g", "arguments": {}}', "the key 'name' occurs more than once"),
            ('{"name": "f", "arguments": {}, }', "at character"),
            ('{"name": "f", "arguments": {}} // why', "something else follows"),
        ],
    )
    def test_bad_json_says_what_is_wrong_and_what_was_expected(self, body, words):
        found = only(call(body))
        assert found.problem[0] is MALFORMED
        assert words in found.problem[1]
        assert 'Expected {"name": "...", "arguments": {...}}. Nothing was run.' in found.problem[1]
        assert len(found.problem[1]) < 300

    @pytest.mark.parametrize(
        "body",
        ["[]", "7", '"f"', "null", "true", "{}", '{"arguments": {}}', '{"name": 1, "arguments": {}}', '{"name": null}'],
    )
    def test_json_that_names_no_tool_is_malformed(self, body):
        status, message = only(call(body)).problem
        assert status is MALFORMED
        assert 'a string under "name"' in message

    @pytest.mark.parametrize("arguments", ["[]", '"x"', "null", "7", '"{\\"x\\": 1}"'])
    def test_arguments_that_are_no_object_have_a_status_of_their_own(self, arguments):
        found = only(call('{"name": "f", "arguments": ' + arguments + "}"))
        assert (found.name, found.problem[0]) == ("f", ToolStatus.INVALID_ARGUMENTS)
        assert 'a JSON object under "arguments"' in found.problem[1]

    def test_missing_arguments_are_invalid_arguments(self):
        assert only(call('{"name": "f"}')).problem[0] is ToolStatus.INVALID_ARGUMENTS

    def test_a_call_in_a_call_is_broken_once_and_the_rest_is_text(self):
        assert [found.problem[0] for found in RSTAR2.calls(call(CALL))] == [MALFORMED]


NAMES = st.text()
ARGUMENTS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda children: st.lists(children) | st.dictionaries(st.text(), children),
        max_leaves=8,
    ),
)
PIECES = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "<answer>",
        "</answer>",
        "\\boxed{",
        "}",
        "{",
        '"',
        "\\",
        '"name"',
        ":",
        "[",
        CALL,
        "7",
    ]
)
TURNS = st.lists(PIECES | st.text(alphabet=st.characters(codec=None), max_size=5), max_size=40).map("".join)


class TestProperties:
    @given(NAMES, ARGUMENTS)
    def test_a_call_that_was_formatted_is_read_back(self, name, arguments):
        found = only("before " + RSTAR2.format_call(name, arguments) + " after")
        assert (found.name, found.arguments, found.problem) == (name, arguments, None)

    @pytest.mark.slow
    @given(st.lists(st.tuples(NAMES, ARGUMENTS), max_size=5))
    def test_so_are_many(self, calls):
        turn = "\n".join(RSTAR2.format_call(name, arguments) for name, arguments in calls)
        assert [(found.name, found.arguments) for found in RSTAR2.calls(turn)] == calls

    @pytest.mark.slow
    @given(NAMES, ARGUMENTS, st.integers(0, 600))
    def test_a_call_is_read_the_same_wherever_a_window_ends(self, name, arguments, padding):
        turn = (
            RSTAR2.format_call(name, {**arguments, "pad": "x" * padding, "tail": [1.5, -2, "</tool_call>"]}) + CALL * 3
        )
        first, *rest = RSTAR2.calls(turn)
        assert first.problem is None
        assert len(rest) == 3

    @given(TURNS)
    @settings(max_examples=300)
    def test_no_text_raises_and_every_opening_tag_outside_a_call_is_one(self, turn):
        found = RSTAR2.calls(turn)
        assert bool(found) == ("<tool_call>" in turn)
        for each in found:
            assert each.problem is None or each.problem[0] in (MALFORMED, ToolStatus.INVALID_ARGUMENTS)
        assert RSTAR2.answer([turn]) is None or isinstance(RSTAR2.answer([turn]), str)
        assert ANYWHERE.answer([turn]) is None or isinstance(ANYWHERE.answer([turn]), str)
        assert 0 <= RSTAR2.answer_tags([turn]) <= turn.count("<answer>")

    @given(st.text(alphabet="0123456789+-/.x ", max_size=20))
    def test_an_answer_that_was_formatted_is_read_back(self, answer):
        assert RSTAR2.answer([RSTAR2.format_answer(answer)]) == answer.strip()

    @pytest.mark.parametrize("turn", HOSTILE_TURNS.values(), ids=HOSTILE_TURNS.keys())
    def test_hostile_turns_are_read_without_an_exception(self, turn):
        RSTAR2.calls(turn)
        RSTAR2.answer([turn])
        RSTAR2.answer_tags([turn])

    @pytest.mark.parametrize(
        "piece",
        [
            "<tool_call>",
            "</tool_call>",
            "<tool_call></tool_call>",
            "<tool_call>{}x</tool_call>",
            '<tool_call>{"a</tool_call>',
            '<tool_call>"</tool_call>',
            '<tool_call>{"name": "f", "arguments": {}} ',
            "<tool_call>[[[[[[</tool_call>",
            "<tool_call>" + " " * 50,
            CALL,
            "<answer>",
            "</answer>",
            "<answer>\\boxed{1}</answer>",
            "\\boxed{",
            "\\boxed{}",
            "<answer>\\boxed{<tool_call>",
        ],
    )
    @pytest.mark.slow
    def test_a_million_characters_of_anything_are_read_in_moments(self, piece):
        turn = piece * (1_000_000 // len(piece))
        start = time.process_time()
        RSTAR2.calls(turn)
        RSTAR2.answer([turn])
        ANYWHERE.answer([turn])
        RSTAR2.answer_tags([turn])
        # A square of a million characters would take minutes; the slowest of these takes under a second.
        assert time.process_time() - start < 20

    @pytest.mark.parametrize("piece", ["<tool_call>{}x</tool_call>", '<tool_call>{"a</tool_call>', CALL, "<answer>"])
    def test_time_grows_with_the_length_and_not_with_its_square(self, piece):
        def cpu_s(count):
            turn, start = piece * count, time.thread_time()
            RSTAR2.calls(turn)
            RSTAR2.answer([turn])
            RSTAR2.answer_tags([turn])
            return time.thread_time() - start

        least = max(min(cpu_s(2_500) for _ in range(3)), 0.005)
        assert any(cpu_s(40_000) < 16 * 4 * least for _ in range(4))


class TestAnswers:
    @pytest.mark.parametrize(
        ("turns", "answer"),
        [
            (["<answer>\\boxed{7}</answer>"], "7"),
            (["<answer>so it is \\boxed{7}.</answer>"], "7"),
            (["<answer>According to the <tool_response>: \\boxed{7}</answer>"], "7"),
            (["<answer>\n<tool_response>\\boxed{7}</answer>"], None),
            (["<answer>\n\\boxed{ \\frac{1}{2} }\n</answer>"], "\\frac{1}{2}"),
            (["<answer>\\boxed{1}</answer> no, <answer>\\boxed{2}</answer>"], "2"),
            (["<answer>\\boxed{1}</answer>", "<answer>\\boxed{2}</answer>"], "2"),
            (["<answer>\\boxed{1} \\boxed{2}</answer>"], "1, 2"),
            (["<answer>\\boxed{1}</answer>", "then nothing"], "1"),
            (["<answer><answer>\\boxed{1}</answer></answer>"], "1"),
            (["<answer>\\boxed{1}</answer> <answer>\\boxed{2}"], "1"),
            (["<answer>\\boxed{1} <answer>\\boxed{2}</answer>"], "2"),
            (["<answer>\\boxed{1}</answer><answer>no box</answer>"], None),
            (["<answer>7</answer>"], None),
            (["<answer></answer>"], None),
            (["<answer>\\boxed{7}"], None),
            (["\\boxed{7}</answer>"], None),
            (["\\boxed{7}"], None),
            (["<answer>", "\\boxed{7}</answer>"], None),
            ([], None),
            (["<answer>\\boxed{}</answer>"], ""),
        ],
    )
    def test_the_last_box_of_the_last_complete_answer_counts(self, turns, answer):
        assert RSTAR2.answer(turns) == answer

    @pytest.mark.parametrize(
        ("turns", "answer"),
        [
            (["\\boxed{7}"], "7"),
            (["\\boxed{7}", "\\boxed{8} or \\boxed{9}", "hm"], "8, 9"),
            (["<answer>\\boxed{1}</answer> \\boxed{2}"], "1"),
            (["<answer>none</answer> \\boxed{2}"], None),
            (["nothing"], None),
        ],
    )
    def test_a_box_outside_counts_only_by_option_and_only_without_an_answer(self, turns, answer):
        assert ANYWHERE.answer(turns) == answer

    @pytest.mark.parametrize("dialect", [RSTAR2, ANYWHERE], ids=["in tags", "anywhere"])
    def test_code_that_prints_an_answer_is_no_answer(self, dialect):
        code = "print('<answer>\\\\boxed{7}</answer> \\\\boxed{7}')"
        assert dialect.answer([dialect.format_call("f", {"code": code}), "I give up"]) is None
        assert dialect.answer(["<tool_call>{broken <answer>\\boxed{7}</answer>"]) is None

    def test_an_answer_beside_a_call_is_one(self):
        assert RSTAR2.answer([f"<answer>\\boxed{{7}}</answer>{CALL}", "done"]) == "7"

    @pytest.mark.parametrize(
        ("turns", "tags"),
        [
            ([], 0),
            (["nothing"], 0),
            (["<answer>\\boxed{7}</answer>"], 1),
            (["<answer>no box</answer>"], 1),
            (["<answer>\\boxed{7}"], 0),
            (["\\boxed{7}</answer>"], 0),
            (["</answer><answer>"], 0),
            (["<answer>1</answer><answer>2</answer>"], 2),
            (["<answer>1</answer>", "<answer>2</answer>"], 2),
            (["<answer><answer>1</answer></answer>"], 2),
            (["<answer>1</answer><answer>"], 2),
            (["<answer>", "</answer>"], 0),
            (["<answer>1</answer>", RSTAR2.format_call("f", {"code": "'<answer></answer>'"})], 1),
            ([RSTAR2.format_call("f", {"code": "'<answer></answer>'"})], 0),
        ],
    )
    def test_answer_tags_are_opening_tags_outside_calls_and_none_without_a_closed_one(self, turns, tags):
        assert RSTAR2.answer_tags(turns) == tags


class TestWhatThePolicyReads:
    def test_the_system_message_holds_every_schema_on_a_line(self):
        specs = [StubTool(name="a").spec, StubTool(name="b", description="π in 100% of cases: %s").spec]
        lines = RSTAR2.system(specs).splitlines()
        start = lines.index("<tools>")
        assert [json.loads(line) for line in lines[start + 1 : start + 3]] == [spec.schema() for spec in specs]
        assert lines[start + 3] == "</tools>"
        assert "π in 100% of cases: %s" in lines[start + 2]

    def test_without_tools_the_system_message_does_not_speak_of_any(self):
        text = RSTAR2.system([])
        assert "<answer>" in text
        assert not [word for word in ("# Tools", "<tools>", "<tool_call>", "<tool_response>", "%s") if word in text]
        assert RSTAR2.system([StubTool().spec]).startswith(text + "\n\n# Tools\n")

    def test_the_system_message_can_be_replaced_or_left_out(self):
        assert make_dialect("rstar2", system="Tools: %s!").system([]) == "Tools: !"
        assert make_dialect("rstar2", system="").system([StubTool().spec]) == ""

    def test_the_user_message_holds_the_question_as_it_is(self):
        question = "What is 50% of %s, {x} and \\boxed{}?"
        assert RSTAR2.user(question).endswith(f"Problem: {question}")

    def test_the_instruction_can_be_replaced_or_left_out(self):
        assert make_dialect("rstar2", instruction="Q: %s?").user("why") == "Q: why?"
        assert make_dialect("rstar2", instruction="").user("why") == "why"

    def test_there_is_one_response_a_call_in_order(self):
        results = [ToolResult("f", ToolStatus.OK, "1\n"), ToolResult("f", ToolStatus.OK, "2")]
        assert RSTAR2.results(results) == ("<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>")

    def test_a_call_that_json_cannot_hold_is_refused(self):
        with pytest.raises(ValueError):
            RSTAR2.format_call("f", {"x": float("nan")})

    def test_results_come_in_the_users_role(self):
        assert RSTAR2.role == "user"
