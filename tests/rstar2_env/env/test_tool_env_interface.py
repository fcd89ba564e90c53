"""What reset and step take and tell, what they refuse, and how an environment is drawn, copied and closed."""

import json
import pickle

import pytest
from toy_turns import GOLD, RIGHT, RSTAR2, WRONG, call, make, play

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.problems import Problem
from rstar2_env.tools import ToolResult
from rstar2_env.verification import Reason, Verdict

INFO_OF_END = {"end", "answer", "correct", "turns", "tool_errors", "tool_calls_total", "answer_tags"}


class TestInfo:
    def test_reset_tells_the_problem_the_tools_and_the_system_message(self):
        env, tool = make()
        text, info = env.reset(seed=1, **GOLD)
        assert text.endswith("What is 5 + 5?")
        assert info == {
            "problem_id": "p5",
            "tools": [tool.spec.schema()],
            "system": RSTAR2.system([tool.spec]),
            "stop": [],
        }

    def test_reset_tells_where_the_dialect_wants_a_turn_to_stop(self):
        env, _ = make(dialect="fenced:tool=stub")
        _, info = env.reset(seed=1)
        assert info["stop"] == ["\n```\n", "```output"]

    def test_every_step_tells_the_answers_marked_so_far_since_the_player_may_end_the_episode(self):
        env, _ = make()
        env.reset(seed=1, **GOLD)
        tags = [env.step(turn)[4]["answer_tags"] for turn in (call(), call() + WRONG, call(), RIGHT)]
        assert tags == [0, 1, 1, 2]

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
        assert info == {"role": "user", "tool_calls": [record], "answer_tags": 0}

    @pytest.mark.parametrize(("turns", "graded"), [([RIGHT], {"verdict"}), (["no"], set()), ([call()] * 10, set())])
    def test_every_end_tells_the_same_things_and_a_graded_one_why(self, turns, graded):
        env, _ = make()
        *_, info = play(env, *turns)
        assert set(info) == {"role", "tool_calls"} | INFO_OF_END | graded

    @pytest.mark.parametrize("reason", Reason)
    def test_the_verdict_is_the_graders_reason_and_method_and_no_time(self, reason):
        env, _ = make(grader=lambda problem, answer: Verdict(reason is Reason.EQUAL, reason, "symbolic", seconds=0.2))
        *_, before = play(env, call() + WRONG)
        assert "verdict" not in before, "the answer may still change"
        *_, info = env.step(RIGHT)
        assert info["verdict"] == {"reason": reason.value, "method": "symbolic"}
        assert type(info["verdict"]["reason"]) is str

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
            ({"problem_id": None}, ConfigurationError, "problem_id must be a string"),
            ({"problem_id": 3}, ConfigurationError, "problem_id must be a string"),
            ({"problem_id": "p1", "problem": {}}, ConfigurationError, "accepts only"),
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
        with pytest.raises(ConfigurationError, match=r"2001 characters; the maximum is 2000 \(max_text\)"):
            env.step("x" * 2001)
        assert env.step(RIGHT)[1] == 1.0


def test_a_dialect_without_calls_by_name_refuses_tools_that_it_cannot_call():
    with pytest.raises(ConfigurationError, match=r"dialect 'fenced', the policy can call only .*, but not stub"):
        make(dialect="fenced")


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
