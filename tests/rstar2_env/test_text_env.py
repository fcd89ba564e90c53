"""The turn loop: what goes on, what ends, what is counted, what is graded, and what every step reports."""

import json
import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.dialects import make_dialect
from rstar2_env.errors import ConfigurationError, EpisodeOverError, UnknownNameError
from rstar2_env.problems import Problem
from rstar2_env.status import ToolStatus
from rstar2_env.testing import StubTool
from rstar2_env.text_env import ToolEnv
from rstar2_env.tools import ToolResult
from rstar2_env.verify import Reason, Verdict

RSTAR2 = make_dialect("rstar2")
PROBLEMS = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(20)]
GOLD = {"options": {"problem_id": "p5"}}
RIGHT = RSTAR2.format_answer("10")
WRONG = RSTAR2.format_answer("11")
INFO_OF_END = {"end", "answer", "correct", "turns", "tool_errors", "tool_calls_total", "answer_tags"}


def exact(problem, answer):
    equal = problem.answer == answer
    return Verdict(equal, Reason.EQUAL if equal else Reason.DIFFERENT, "exact")


def call(n=0, name="stub"):
    return RSTAR2.format_call(name, {"n": n})


def make(plan=None, **options):
    """An environment over PROBLEMS with one StubTool, and the tool."""
    tool = StubTool(plan)
    options = {"problems": PROBLEMS, "grader": exact, "tools": [tool], **options}
    return ToolEnv(**options), tool


def play(env, *turns):
    """Reset to problem p5 (gold 10), play the turns, return the last step."""
    env.reset(seed=1, **GOLD)
    step = None
    for turn in turns:
        step = env.step(turn)
    return step


def statuses(info):
    return [each["status"] for each in info["tool_calls"]]


class Bytes:
    """Tokens are bytes."""

    def encode(self, text, *, add_special_tokens=True):
        return list(text.encode("utf-8")) + [0] * add_special_tokens

    def decode(self, token_ids):
        return bytes(token_ids).decode("utf-8", "replace")


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


class TestBudgets:
    def test_the_calls_of_the_last_allowed_turn_are_not_run(self):
        env, tool = make(max_turns=2)
        text, reward, terminated, truncated, info = play(env, call(1), call(2) + RIGHT)
        assert [arguments["n"] for arguments, _ in tool.calls] == [1]
        assert (text, reward, terminated, truncated) == ("", 0.0, False, True)
        assert (info["end"], info["turns"], info["tool_calls"], info["tool_calls_total"]) == ("turns", 2, [], 1)

    def test_an_answer_in_the_last_allowed_turn_counts(self):
        env, _ = make(max_turns=2)
        assert play(env, call(), RIGHT)[1:4] == (1.0, True, False)

    def test_one_turn_is_enough_to_answer(self):
        env, _ = make(max_turns=1)
        assert play(env, RIGHT)[2:4] == (True, False)
        assert play(env, call())[2:4] == (False, True)

    def test_tokens_of_policy_and_tools_count_together(self):
        shown = len(RSTAR2.results([ToolResult("stub", ToolStatus.OK, "x" * 100)]))
        for spare, end in ((1, None), (0, "tokens")):
            env, tool = make("x" * 100, max_tokens=2 * len(call()) + shown + spare, tokenizer=Bytes())
            *_, truncated, info = play(env, call(), call())
            assert (truncated, info.get("end")) == (end is not None, end)
            assert len(tool.calls) == (1 if end else 2)

    def test_an_answer_ends_the_episode_before_the_tokens_do(self):
        env, _ = make(max_tokens=5, tokenizer=Bytes())
        assert play(env, RIGHT)[1:4] == (1.0, True, False)

    @pytest.fixture
    def slow_tool(self, monkeypatch):
        """A tool that takes ten seconds of a clock that only it moves."""
        now = [0.0]
        monkeypatch.setattr("rstar2_env.text_env.time", SimpleNamespace(monotonic=lambda: now[0]))

        def work(arguments, context):
            now[0] += 10
            return "done"

        return StubTool(work)

    def test_time_ends_the_episode_between_turns(self, slow_tool):
        env, _ = make(max_seconds=10, tools=[slow_tool])
        *_, truncated, info = play(env, call(), call())
        assert (truncated, info["end"], len(slow_tool.calls)) == (True, "time", 1)

    def test_and_between_the_calls_of_one_turn_and_tells_of_those_that_ran(self, slow_tool):
        env, _ = make(max_seconds=25, tools=[slow_tool])
        _, _, terminated, truncated, info = play(env, call() * 50)
        assert (terminated, truncated, info["end"]) == (False, True, "time")
        assert len(slow_tool.calls) == len(info["tool_calls"]) == info["tool_calls_total"] == 3

    def test_time_is_the_episodes_and_starts_anew(self, slow_tool):
        env, _ = make(max_seconds=15, tools=[slow_tool])
        for _ in range(3):
            assert play(env, call())[2:4] == (False, False)

    def test_an_answer_ends_the_episode_before_the_time_does(self, slow_tool):
        env, _ = make(max_seconds=5, tools=[slow_tool])
        assert play(env, call(), RIGHT)[1:4] == (1.0, True, False)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"max_turns": 0}, "max_turns"),
            ({"max_turns": 2.5}, "max_turns"),
            ({"max_tokens": 0, "tokenizer": Bytes()}, "max_tokens"),
            ({"max_tokens": 5}, "tokenizer"),
            ({"max_seconds": 0}, "max_seconds"),
            ({"max_seconds": -1}, "max_seconds"),
            ({"max_text": 10}, "max_text"),
            ({"max_text": "long"}, "max_text"),
            ({"render_mode": "rgb_array"}, "render_mode"),
            ({"dialect": 7}, "dialect"),
            ({"problems": 7}, "problems"),
            ({"tools": [StubTool(), StubTool()]}, "stub"),
        ],
    )
    def test_options_out_of_their_range_are_refused_at_once(self, options, words):
        with pytest.raises(ConfigurationError, match=words):
            make(**options)


class TestOurOwnFailures:
    def test_an_unavailable_tool_truncates_and_blames_nobody(self):
        env, tool = make([ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE, ToolStatus.OK])
        text, reward, terminated, truncated, info = play(env, call() + call() + call())
        assert (text, reward, terminated, truncated, info["end"]) == ("", 0.0, False, True, "unavailable")
        assert statuses(info) == ["exception", "unavailable"]
        assert (info["tool_errors"], info["tool_calls_total"]) == (1, 1)
        assert len(tool.calls) == 2

    def test_an_unavailable_grader_truncates_and_blames_nobody(self):
        env, _ = make(grader=lambda problem, answer: Verdict(False, Reason.UNAVAILABLE, "pool"))
        _, reward, terminated, truncated, info = play(env, RIGHT)
        assert (reward, terminated, truncated, info["end"], info["correct"]) == (0.0, False, True, "unavailable", False)
        assert info["answer"] == "10"

    @pytest.mark.parametrize("reason", set(Reason) - {Reason.EQUAL, Reason.UNAVAILABLE})
    def test_every_other_reason_is_an_answer_that_is_not_right(self, reason):
        env, _ = make(grader=lambda problem, answer: Verdict(False, reason, "x"))
        assert play(env, RIGHT)[1:4] == (0.0, True, False)


class TestMiddleware:
    def inject(self, status):
        return lambda call, context, go_on: ToolResult(call.name, status, "a fault", injected=True)

    def test_an_injected_fault_is_marked_and_not_the_policys(self):
        env, tool = make()
        env.unwrapped.tools.use(self.inject(ToolStatus.TIMEOUT))
        _, *_, info = play(env, call())
        assert info["tool_calls"][0]["injected"] is True
        assert tool.calls == []
        *_, info = env.step("done")
        assert (info["tool_errors"], info["tool_calls_total"]) == (0, 0)

    def test_an_injected_outage_goes_on(self):
        env, _ = make()
        env.tools.use(self.inject(ToolStatus.UNAVAILABLE))
        text, _, terminated, truncated, _ = play(env, call())
        assert (terminated, truncated) == (False, False)
        assert "a fault" in text

    def test_after_its_removal_calls_run_again(self):
        env, tool = make()
        fault = self.inject(ToolStatus.TIMEOUT)
        env.tools.use(fault)
        env.tools.remove(fault)
        play(env, call())
        assert len(tool.calls) == 1

    def test_it_stays_over_a_reset(self):
        env, tool = make()
        env.tools.use(lambda call, context, go_on: replace(go_on(call, context), text="changed"))
        assert "changed" in play(env, call())[0]
        assert "changed" in play(env, call())[0]
        assert len(tool.calls) == 2


class TestInfo:
    def test_reset_tells_the_problem_the_tools_and_the_system_message(self):
        env, tool = make()
        text, info = env.reset(seed=1, **GOLD)
        assert text.endswith("What is 5 + 5?")
        assert info == {"problem_id": "p5", "tools": [tool.spec.schema()], "system": RSTAR2.system([tool.spec])}

    def test_the_gold_answer_is_in_no_text_and_no_info(self):
        env, _ = make(problems=[{"id": "x", "question": "?", "answer": "271828"}])
        seen = [env.reset(seed=1), env.step(call()), env.step(WRONG)]
        assert "271828" not in json.dumps(seen)

    def test_a_step_tells_the_role_and_how_each_call_went(self):
        env, _ = make(ToolResult("stub", ToolStatus.EXCEPTION, "t", error_type="E", exit_code=2, truncated=True))
        *_, info = play(env, call())
        record = {
            "name": "stub",
            "status": "exception",
            "error_type": "E",
            "exit_code": 2,
            "truncated": True,
            "injected": False,
        }
        assert info == {"role": "user", "tool_calls": [record]}

    @pytest.mark.parametrize("turns", [[RIGHT], ["no"], [call()] * 10])
    def test_every_end_tells_the_same_things(self, turns):
        env, _ = make()
        *_, info = play(env, *turns)
        assert set(info) == {"role", "tool_calls"} | INFO_OF_END

    def test_it_is_the_same_for_the_same_seed_and_turns_however_long_the_tool_took(self):
        traces = []
        for wait_s in (0, 0.02):
            env, tool = make()
            tool.wait_s = wait_s
            traces.append([env.reset(seed=3), env.step(call()), env.step(RIGHT)])
        assert traces[0] == traces[1]

    def test_timings_are_an_option(self):
        env, tool = make(timings=True)
        tool.wait_s = 0.02
        *_, info = play(env, call())
        assert info["tool_calls"][0]["wall_s"] == 0.02

    def test_every_text_and_info_can_be_written_to_a_file(self):
        env, _ = make("out \ud800", problems=[{"id": "x", "question": "\ud800?", "answer": "1"}])
        seen = [
            env.reset(seed=1),
            env.step(RSTAR2.format_call("\ud800", {}) + call()),
            env.step("<answer>\\boxed{\ud800}</answer>"),
        ]
        json.dumps(seen, ensure_ascii=False, allow_nan=False).encode("utf-8")


class TestReset:
    def test_the_same_seed_gives_the_same_episode(self):
        (one, tool), (two, other) = make(), make()
        assert one.reset(seed=7) == two.reset(seed=7)
        assert one.step(call()) == two.step(call())
        assert tool.calls[0][1] == other.calls[0][1]

    def test_without_a_seed_the_stream_goes_on(self):
        (one, _), (two, _) = make(), make()
        first = [one.reset(seed=7)[1]["problem_id"], *(one.reset()[1]["problem_id"] for _ in range(20))]
        again = [two.reset(seed=7)[1]["problem_id"], *(two.reset()[1]["problem_id"] for _ in range(20))]
        assert first == again
        assert len(set(first)) > 5

    def test_every_episode_has_its_own_seed_for_tools(self):
        env, tool = make()
        for _ in range(10):
            env.reset(**GOLD)
            env.step(call())
        assert len({context.seed for _, context in tool.calls}) == 10

    def test_a_problem_can_be_chosen_or_brought(self):
        env, _ = make()
        assert env.reset(options={"problem_id": "p3"})[0].endswith("3 + 3?")
        assert env.reset(options={"problem": {"question": "new?", "answer": "1"}})[0].endswith("new?")
        text, info = env.reset(options={"problem": Problem("mine", "newer?", "2")})
        assert (text[-6:], info["problem_id"]) == ("newer?", "mine")
        assert env.step(RSTAR2.format_answer("2"))[1] == 1.0

    @pytest.mark.parametrize("options", [None, {}])
    def test_no_options_sample_a_problem(self, options):
        env, _ = make()
        assert env.reset(seed=1, options=options) == env.reset(seed=1)

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"problem_id": "p99"}, UnknownNameError, "p99"),
            ({"problem_id": None}, ConfigurationError, "as str"),
            ({"problem_id": 3}, ConfigurationError, "as str"),
            ({"problem_id": "p1", "problem": {}}, ConfigurationError, "either"),
            ({"difficulty": 3}, ConfigurationError, "difficulty"),
            ({"problem": {"question": "no answer"}}, ValueError, "answer"),
            ({"problem": {"question": "x" * 5000, "answer": "1"}}, ConfigurationError, "max_text"),
        ],
    )
    def test_a_reset_that_fails_says_why_and_leaves_no_episode(self, options, error, words):
        env, _ = make(max_text=4000)
        env.reset(seed=1)
        with pytest.raises(error, match=words):
            env.reset(options=options)
        with pytest.raises(EpisodeOverError):
            env.step("x")

    def test_the_problem_is_there_after_a_reset_only(self):
        env, _ = make()
        with pytest.raises(EpisodeOverError, match="reset"):
            _ = env.problem
        env.reset(seed=1, **GOLD)
        assert env.problem.answer == "10"


class TestMisuse:
    def test_a_step_before_the_first_reset_says_to_reset(self):
        env, _ = make()
        with pytest.raises(EpisodeOverError, match="no episode yet: call reset"):
            env.step("x")

    @pytest.mark.parametrize("turns", [[RIGHT], [call()] * 2])
    def test_a_step_after_the_end_says_to_reset(self, turns):
        env, tool = make(max_turns=2)
        play(env, *turns)
        ran = len(tool.calls)
        for _ in range(2):
            with pytest.raises(EpisodeOverError, match="over: call reset"):
                env.step(call())
        assert len(tool.calls) == ran

    @pytest.mark.parametrize("action", [None, 7, b"text", ["text"]])
    def test_an_action_that_is_no_text_is_refused_and_the_episode_stands(self, action):
        env, _ = make()
        env.reset(seed=1, **GOLD)
        with pytest.raises(TypeError, match=type(action).__name__):
            env.step(action)
        assert env.step(RIGHT)[1] == 1.0

    def test_an_action_outside_the_space_is_refused_and_the_episode_stands(self):
        env, _ = make(max_text=2000)
        env.reset(seed=1, **GOLD)
        with pytest.raises(ConfigurationError, match="2001 characters, more than max_text=2000"):
            env.step("x" * 2001)
        assert env.step(RIGHT)[1] == 1.0


class TestSpaces:
    def test_results_that_do_not_fit_are_cut_in_the_middle_and_say_so(self):
        env, _ = make("x" * 3000, max_text=2000)
        text, *_ = play(env, call())
        assert text in env.observation_space
        assert "characters left out" in text
        assert text.startswith("<tool_response>")
        assert text.endswith("</tool_response>")

    def test_thousands_of_broken_calls_in_one_turn_stay_in_the_space(self):
        env, _ = make()
        text, *_, info = play(env, "<tool_call></tool_call>" * 40_000)
        assert text in env.observation_space
        assert len(info["tool_calls"]) == 40_000


class TestRendering:
    def test_ansi_gives_the_conversation_so_far_with_statuses(self):
        env, _ = make([ToolStatus.OK, ToolStatus.TIMEOUT], render_mode="ansi")
        play(env, "I try " + call(), call())
        drawn = env.render()
        for words in ("What is 5 + 5?", "I try", "\x1b[32mok", "\x1b[31mtimeout"):
            assert words in drawn
        env.step(RIGHT)
        assert "[end: answered]" in env.render()
        assert "correct" in env.render()

    def test_ansi_shows_no_escape_sequence_of_a_tool(self):
        env, _ = make("\x1b[2J\x9b2J\rgone", render_mode="ansi")
        play(env, call())
        assert "\x1b[2J" not in env.render()
        assert "\\x1b[2J\\x9b2J\\rgone" in env.render()

    def test_human_prints_every_event_once(self, capsys):
        env, _ = make("shown once", render_mode="human")
        play(env, call(), RIGHT)
        assert env.render() is None
        printed = capsys.readouterr().out
        for words in ("What is 5 + 5?", "shown once", "[end: answered]"):
            assert printed.count(words) == 1

    def test_human_survives_what_cannot_be_printed(self, capsys):
        env, _ = make("\ud800", render_mode="human", problems=[{"question": "\ud800\x1b", "answer": "1"}])
        env.reset(seed=1)
        env.step(call() + "\udfff")
        assert "\\x1b" in capsys.readouterr().out

    def test_without_a_mode_nothing_is_printed_or_drawn(self, capsys):
        env, _ = make()
        play(env, call(), RIGHT)
        assert env.render() is None
        assert capsys.readouterr().out == ""


class TestLifetime:
    def test_close_lets_the_tools_go_and_twice_is_harmless(self):
        env, tool = make()
        env.close()
        env.close()
        assert tool.closed

    def test_a_pickled_environment_goes_on_in_the_middle_of_an_episode(self):
        env, _ = make()
        play(env, call() + WRONG)
        copy = pickle.loads(pickle.dumps(env))
        assert copy.step(RIGHT) == env.step(RIGHT)
        assert copy.reset() == env.reset()

    def test_instances_share_nothing(self):
        (one, _), (two, _) = make(), make()
        play(one, call())
        assert play(two, RIGHT)[4]["turns"] == 1
        one.tools.use(lambda call, context, go_on: pytest.fail("the other's middleware ran"))
        play(two, call())
