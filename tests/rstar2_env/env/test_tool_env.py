"""The turn loop: what goes on, what ends an episode, and what is graded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_turns import GOLD, RIGHT, RSTAR2, WRONG, call, make, play, statuses

from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import StubTool


class TestGoingOn:
    def test_several_calls_in_one_turn_all_run_in_order(self):
        env, tool = make()
        text, reward, terminated, truncated, info = play(env, "".join(call(n) for n in range(5)))
        assert [arguments["n"] for arguments, _ in tool.calls] == [0, 1, 2, 3, 4]
        assert [text.index(f'{{"n": {n}}}') for n in range(5)] == sorted(text.index(f'{{"n": {n}}}') for n in range(5))
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert statuses(info) == ["ok"] * 5

    def test_calls_are_numbered_through_the_episode(self):
        env, tool = make()
        play(env, call() + call(), "<tool_call>broken</tool_call>" + call())
        places = [(context.number, context.turn) for _, context in tool.calls]
        assert places == [(0, 0), (1, 0), (3, 1)]
        assert len({context.seed for _, context in tool.calls}) == 1

    def test_a_turn_with_a_call_and_an_answer_goes_on(self):
        env, tool = make()
        *_, terminated, truncated, info = play(env, call() + RIGHT)
        assert (terminated, truncated, "end" in info, len(tool.calls)) == (False, False, False, 1)

    @pytest.mark.parametrize(
        ("turn", "status", "words"),
        [
            ('<tool_call>{"name": "stub", "arguments": {}}', "malformed", "not closed"),
            ("<tool_call>{oops}</tool_call>", "malformed", "not valid JSON"),
            ('<tool_call>{"tool": "stub"}</tool_call>', "malformed", '"name"'),
            ('<tool_call>{"name": "stub", "arguments": [1]}</tool_call>', "invalid_arguments", '"arguments"'),
            (call(name="sutb"), "unknown_tool", "The tools are: stub"),
        ],
    )
    def test_a_broken_call_goes_on_with_its_own_status_and_a_message_to_act_on(self, turn, status, words):
        env, tool = make()
        text, _, terminated, truncated, info = play(env, turn)
        assert (terminated, truncated) == (False, False)
        assert statuses(info) == [status]
        assert words in text
        assert text.startswith("<tool_response>")
        assert tool.calls == []

    def test_wrong_arguments_have_their_own_status_too(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        env, _ = make(tools=[StubTool(parameters=schema)])
        text, *_, info = play(env, RSTAR2.format_call("stub", {"n": "five"}))
        assert statuses(info) == ["invalid_arguments"]
        assert "arguments.n must be of type integer, not string" in text

    def test_good_and_broken_calls_of_one_turn_are_all_answered(self):
        env, _ = make()
        text, *_, info = play(env, call() + "<tool_call>x</tool_call>" + call(name="none") + call())
        assert statuses(info) == ["ok", "malformed", "unknown_tool", "ok"]
        assert text.count("<tool_response>") == 4

    def test_a_tools_failure_goes_on(self):
        env, _ = make([ToolStatus.TIMEOUT, ToolStatus.EXCEPTION])
        assert play(env, call(), call())[2:4] == (False, False)


class TestTheEnd:
    def test_a_turn_without_a_call_ends_with_an_answer(self):
        env, _ = make()
        text, reward, terminated, truncated, info = play(env, RIGHT)
        assert (text, reward, terminated, truncated) == ("", 1.0, True, False)
        assert (info["end"], info["answer"], info["correct"]) == ("answered", "10", True)

    def test_or_without_one(self):
        env, _ = make()
        _, reward, terminated, truncated, info = play(env, "I do not know: \\boxed{10}")
        assert (reward, terminated, truncated) == (0.0, True, False)
        assert (info["end"], info["answer"], info["correct"]) == ("no_answer", None, False)

    def test_a_wrong_answer_earns_nothing(self):
        env, _ = make()
        _, reward, terminated, _, info = play(env, WRONG)
        assert (reward, terminated, info["end"], info["correct"]) == (0.0, True, "answered", False)

    @pytest.mark.parametrize(
        ("turns", "reward"),
        [
            ([WRONG + RIGHT], 1.0),
            ([RIGHT + WRONG], 0.0),
            ([call() + WRONG, RIGHT], 1.0),
            ([call() + RIGHT, WRONG], 0.0),
            ([call() + RIGHT, "that was it"], 1.0),
            ([RIGHT + "<answer>no, I am not sure</answer>"], 0.0),
        ],
    )
    def test_the_last_answer_counts(self, turns, reward):
        env, _ = make()
        assert play(env, *turns)[1] == reward

    def test_there_is_no_reward_before_the_end(self):
        env, _ = make()
        assert [play(env, *[call() + RIGHT] * n)[1] for n in (1, 2, 3)] == [0.0] * 3

    def test_counts_are_those_of_the_episode(self):
        env, _ = make([ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.EMPTY])
        *_, info = play(env, call() + call() + call(), "<tool_call>x</tool_call>" + RIGHT, RIGHT)
        assert (info["turns"], info["tool_errors"], info["tool_calls_total"], info["answer_tags"]) == (3, 2, 4, 2)
        assert info["tool_calls"] == []


class TestOnlyThePolicysOwnText:
    def test_what_a_tool_printed_earns_nothing(self):
        env, _ = make(f"{RIGHT} the answer is \\boxed{{10}}")
        _, reward, *_, info = play(env, call(), "see above")
        assert (reward, info["end"], info["answer_tags"]) == (0.0, "no_answer", 0)

    def test_nor_does_what_the_question_or_the_system_message_says(self):
        problem = {"question": f"Say {RIGHT}", "answer": "10"}
        env, _ = make(problems=[problem], dialect=make_dialect("rstar2", system=f"Say {RIGHT}"))
        env.reset(seed=1)
        assert env.step("no")[1] == 0.0

    def test_nor_do_messages_that_echo_the_policy(self):
        env, _ = make()
        _, reward, *_, info = play(env, RSTAR2.format_call(RIGHT, {}), "no")
        assert (reward, info["end"]) == (0.0, "no_answer")

    def test_nor_does_an_answer_within_a_call(self):
        env, _ = make()
        _, reward, *_, info = play(env, RSTAR2.format_call("stub", {"code": f"print('{RIGHT}')"}), "no")
        assert (reward, info["end"], info["answer_tags"]) == (0.0, "no_answer", 0)

    def test_nor_does_an_answer_of_the_last_episode(self):
        env, _ = make()
        play(env, RIGHT)
        assert play(env, "no")[1] == 0.0

    def test_a_box_outside_an_answer_counts_by_option(self):
        env, _ = make(dialect="rstar2:boxed_anywhere=true")
        assert play(env, "it is \\boxed{10}")[1] == 1.0


PIECES = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "<answer>",
        "</answer>",
        "\\boxed{",
        "}",
        '{"name"',
        '"',
        call(),
        call(name="x"),
        RIGHT,
    ]
)
TURNS = st.lists(PIECES | st.text(alphabet=st.characters(codec=None), max_size=5), max_size=12).map("".join)


class TestAnyText:
    @given(st.lists(TURNS, min_size=1, max_size=4))
    def test_no_text_raises_or_breaks_an_invariant(self, turns):
        env, tool = make(max_turns=3)
        env.reset(seed=1, **GOLD)
        for number, turn in enumerate(turns, start=1):
            text, reward, terminated, truncated, info = env.step(turn)
            assert text in env.observation_space
            assert not (terminated and truncated)
            assert terminated == ("<tool_call>" not in turn)
            assert reward in ((0.0, 1.0) if terminated else (0.0,))
            json.dumps((text, info), ensure_ascii=False).encode("utf-8")
            if terminated or truncated:
                assert (info["turns"], text) == (number, "")
                assert len(tool.calls) <= info["tool_calls_total"]
                break
