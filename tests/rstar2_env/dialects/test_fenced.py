"""The fenced dialect reads every fence however broken, grades only the policy's own last box, and never fails."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import HOSTILE_TURNS
from rstar2_env.tools import PYTHON_TOOL_NAME, ToolResult

FENCED = make_dialect("fenced")
MALFORMED = ToolStatus.MALFORMED
FENCE = "```"


def fence(code, tag="python"):
    return f"{FENCE}{tag}\n{code}\n{FENCE}\n"


def codes(turn):
    return [None if call.problem else call.arguments["code"] for call in FENCED.calls(turn)]


def only(turn):
    (found,) = FENCED.calls(turn)
    return found


class TestCalls:
    def test_a_fence_is_a_call_of_the_python_tool_with_empty_input(self):
        found = only("Let me see.\n" + fence("print(6 * 7)"))
        assert (found.name, found.arguments) == (PYTHON_TOOL_NAME, {"code": "print(6 * 7)", "input": ""})

    @pytest.mark.parametrize("tag", ["python", "Python", "PYTHON", "py", "python3", " python", "python  "])
    def test_the_tag_may_be_written_in_many_ways(self, tag):
        assert codes(fence("1", tag)) == ["1"]

    @pytest.mark.parametrize(
        "turn",
        [
            "",
            "no fence",
            "`python`",
            "``` \n1\n``` so",
            fence("1", "text") + "so",
            fence("1", "output") + "so 1",
            "```\n\\boxed{1}\n```",
            "\\boxed{1}\n```output",
            fence("1", "latex") + "\\boxed{1}",
        ],
    )
    def test_text_and_other_fences_are_no_calls(self, turn):
        assert FENCED.calls(turn) == []

    @pytest.mark.parametrize("turn", [fence("1", ""), fence("1", "text"), fence("1", "pythonic") + "\n ", "so\n```"])
    def test_an_untagged_fence_that_ends_a_turn_without_an_answer_is_told(self, turn):
        status, message = only(turn).problem
        assert status is MALFORMED
        assert "not marked as Python" in message

    @pytest.mark.parametrize("turn", [fence("1", "output"), "I run it:\n```output", "```output\n7"])
    def test_a_result_that_is_made_up_and_ends_a_turn_is_told(self, turn):
        status, message = only(turn).problem
        assert status is MALFORMED
        assert "written by the tool alone" in message

    def test_several_fences_come_in_order(self):
        assert codes("a\n" + "b\n".join(fence(str(n)) for n in range(4))) == ["0", "1", "2", "3"]

    def test_white_space_around_the_fences_and_windows_line_ends_do_not_matter(self):
        assert codes("so  ```python \r\n  x = 1\r\n  ```  \r\n") == ["  x = 1\r"]

    def test_the_last_fence_may_end_the_turn_without_a_line_end(self):
        assert codes("```python\n1\n```") == ["1"]

    def test_an_empty_program_is_a_call(self):
        assert codes("```python\n```\n" + fence("")) == ["", ""]

    @pytest.mark.parametrize(
        "turn", ["```python", "```python\n", "```python\nprint(1)", "```python\nprint(1)```", "```py\n``"]
    )
    def test_an_unclosed_fence_is_malformed_and_says_what_is_missing(self, turn):
        status, message = only(turn).problem
        assert status is MALFORMED
        assert "not closed" in message
        assert "line of its own" in message

    def test_an_unclosed_fence_does_not_swallow_the_next(self):
        assert codes("```python\nprint(1)\n" + fence("print(2)")) == [None, "print(2)"]

    def test_an_unclosed_fence_ends_where_the_model_makes_a_result_up(self):
        assert codes("```python\nprint(1)\n```output\n1\n```\n" + fence("2")) == [None, "2"]

    @pytest.mark.parametrize("turn", ["```python print(1)```", "```python print(1)\n```\n", "```python print(1)"])
    def test_a_program_on_the_line_of_the_tag_is_malformed(self, turn):
        status, message = only(turn).problem
        assert status is MALFORMED
        assert "on the line after" in message

    def test_a_broken_fence_does_not_stop_the_next(self):
        assert codes("```python 1```\n" + fence("2")) == [None, "2"]

    def test_a_longer_fence_may_hold_a_shorter_one(self):
        code = "print('''\n```python\nx\n```\n''')"
        assert codes(f"````python\n{code}\n````\n") == [code]

    def test_other_tools_are_reached_by_option(self):
        dialect = make_dialect("fenced", tool="jupyter_code", stdin=False)
        (found,) = dialect.calls(dialect.format_call("jupyter_code", {"code": "1"}))
        assert (found.name, found.arguments) == ("jupyter_code", {"code": "1"})


PIECES = st.sampled_from(
    [
        "```",
        "```python",
        "```python\n",
        "````",
        "\n",
        "```\n",
        "```output\n",
        "\\boxed{",
        "}",
        "print(1)",
        " ",
        "7",
        "`",
    ]
)
TURNS = st.lists(PIECES | st.text(alphabet=st.characters(codec=None), max_size=5), max_size=40).map("".join)
PROGRAMS = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)


class TestProperties:
    @given(PROGRAMS)
    def test_a_call_that_was_formatted_is_read_back(self, code):
        assert codes("before\n" + FENCED.format_call(PYTHON_TOOL_NAME, {"code": code, "input": ""}) + "after") == [code]

    @pytest.mark.slow
    @given(st.lists(PROGRAMS, max_size=5))
    def test_so_are_many(self, programs):
        turn = "\n".join(FENCED.format_call(PYTHON_TOOL_NAME, {"code": code, "input": ""}) for code in programs)
        assert codes(turn) == programs

    @given(TURNS)
    @settings(max_examples=300)
    def test_no_text_raises_and_every_call_runs_or_is_malformed(self, turn):
        for call in FENCED.calls(turn):
            assert call.problem is None or call.problem[0] is MALFORMED
        answer = FENCED.answer([turn])
        assert answer is None or isinstance(answer, str)
        assert FENCED.answer_tags([turn]) <= turn.count("\\boxed")

    @given(PROGRAMS)
    def test_nothing_that_a_well_formed_program_holds_is_an_answer(self, code):
        turn = FENCED.format_call(PYTHON_TOOL_NAME, {"code": "\\boxed{7}" + code, "input": ""})
        assert FENCED.answer([turn]) is None

    @given(st.text(alphabet="0123456789+-/.x ", max_size=20))
    def test_an_answer_that_was_formatted_is_read_back(self, answer):
        assert FENCED.answer([FENCED.format_answer(answer)]) == answer.strip()

    @pytest.mark.parametrize("turn", HOSTILE_TURNS.values(), ids=HOSTILE_TURNS.keys())
    def test_hostile_turns_are_read_without_an_exception(self, turn):
        FENCED.calls(turn)
        FENCED.answer([turn])
        FENCED.answer_tags([turn])

    @pytest.mark.parametrize(
        "piece",
        [
            "```python\n",
            "```python x",
            "```python x```",
            "`",
            "```\n",
            "````",
            "```output\n",
            "``` ",
            "```python" + " " * 50,
            fence("1"),
            "\n",
            "x```python\n",
            "````python\n```python\n",
            "\\boxed{",
            "\\boxed{}",
            "\n   ",
            "```python\n\\boxed{",
        ],
    )
    @pytest.mark.slow
    def test_a_million_characters_of_anything_are_read_in_moments(self, piece):
        turn = piece * (1_000_000 // len(piece))
        start = time.process_time()
        FENCED.calls(turn)
        FENCED.answer([turn])
        FENCED.answer_tags([turn])
        # A square of a million characters would take minutes; the slowest of these takes about a second.
        assert time.process_time() - start < 20


class TestAnswers:
    @pytest.mark.parametrize(
        ("turns", "answer"),
        [
            (["\\boxed{7}"], "7"),
            (["so \\boxed{7} or \\boxed{\\frac{1}{2}}."], "7, \\frac{1}{2}"),
            (["<tool_response>\\boxed{7}</tool_response>"], None),
            (["so:\n<tool_response>\n\\boxed{7}"], None),
            (["The <tool_response> says \\boxed{7}"], "7"),
            (["The share is 12\n% and so \\boxed{12}."], "12"),
            (["It is not \\boxed{7}."], None),
            (["\\boxed{7}", "then nothing"], "7"),
            ([fence("1") + "\\boxed{8}"], "8"),
            ([fence("\\boxed{7}", "text")], "7"),
            ([fence("'\\boxed{7}'")], None),
            (["\\boxed{6}", fence("'\\boxed{7}'") + fence("\\boxed{8}", "output")], "6"),
            (["```python\nprint('\\boxed{7}')"], None),
            (["```output\n\\boxed{7}"], None),
            (["```output \\boxed{7}```"], None),
            (["\\boxed{7"], None),
            (["\\boxed{}"], ""),
            (["<answer>7</answer>"], None),
            ([], None),
        ],
    )
    def test_the_last_box_outside_programs_and_results_counts(self, turns, answer):
        assert FENCED.answer(turns) == answer

    def test_answer_tags_are_the_complete_boxes_outside_fences(self):
        turns = ["\\boxed{1} \\boxed{2} \\boxed{3", fence("\\boxed{4}"), "\\boxed{5}"]
        assert FENCED.answer_tags(turns) == 3
        assert FENCED.answer_tags(["\\boxed{3"]) == 0


class TestWhatThePolicyReads:
    def test_there_is_one_output_fence_a_call_in_order(self):
        results = [ToolResult("f", ToolStatus.OK, "1\n"), ToolResult("f", ToolStatus.OK, "2")]
        assert FENCED.results(results) == "```output\n1\n```\n\n```output\n2\n```\n"

    def test_output_that_holds_a_fence_is_shown_in_a_longer_one(self):
        assert FENCED.results([ToolResult("f", ToolStatus.OK, "```\nx")]) == "````output\n```\nx\n````\n"

    def test_the_system_message_shows_the_protocol_as_it_is_read(self):
        text = FENCED.system([])
        assert codes(text) == ["print(6 * 7)"]
        assert make_dialect("fenced", system="").system([]) == ""

    def test_the_user_message_is_the_question_in_the_instruction(self):
        assert FENCED.user("What is 50% of %s?") == "What is 50% of %s?"
        assert make_dialect("fenced", instruction="Q: %s").user("why") == "Q: why"

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [("other", {"code": "1"}), (PYTHON_TOOL_NAME, {}), (PYTHON_TOOL_NAME, {"code": "1", "input": "x"})],
    )
    def test_a_call_that_a_fence_cannot_say_is_refused(self, name, arguments):
        with pytest.raises(ValueError, match="code fence"):
            FENCED.format_call(name, arguments)

    def test_results_come_in_the_users_role(self):
        assert FENCED.role == "user"

    def test_an_engine_that_stops_at_the_stop_strings_keeps_the_whole_program(self):
        turn = "I compute.\n" + fence("print(1)") + "\n```output\n2\n```\nSo 2."
        at = min(turn.find(word) + len(word) for word in FENCED.stop if word in turn)
        assert codes(turn[:at]) == ["print(1)"]
        assert "output" not in turn[:at]
