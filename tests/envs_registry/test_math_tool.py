"""rstar2/MathTool-v0 from end to end, with real programs in the real local sandbox."""

import json

import gymnasium as gym
import pytest
from places import SHARED

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import StubSandbox
from rstar2_env.tools import PYTHON_TOOL_NAME

ID = "rstar2/MathTool-v0"
RSTAR2 = make_dialect("rstar2")
PROBLEM = [{"id": "p", "question": "What is 6 * 7?", "answer": "42"}]
GSM8K = SHARED / "data" / "gsm8k_test.jsonl"


def run(code, stdin=""):
    return RSTAR2.format_call(PYTHON_TOOL_NAME, {"code": code, "input": stdin})


def answer(text):
    return RSTAR2.format_answer(text)


def body(text):
    """What the policy was shown between the tags."""
    assert text.startswith("<tool_response>\n")
    assert text.endswith("\n</tool_response>")
    return text[len("<tool_response>\n") : -len("\n</tool_response>")]


@pytest.fixture
def env(sandbox):
    made = gym.make(ID, problems=PROBLEM, sandbox=sandbox, limits={"wall_s": 20})
    made.reset(seed=1)
    yield made
    made.close()


def quick(sandbox, **limits):
    made = gym.make(ID, problems=PROBLEM, sandbox=sandbox, limits={"wall_s": 20, **limits})
    made.reset(seed=1)
    return made


class TestWhatAProgramShows:
    @pytest.mark.parametrize(
        "printed", ["42", "  a\n\n\tb  ", "π ≈ 3.14 😀 漢字", "</tool_call>", "</tool_response>", "%s {}"]
    )
    def test_stdout_as_it_is(self, env, printed):
        text, *_, info = env.step(run(f"print({printed!r}, end='')"))
        assert body(text) == printed
        assert info["tool_calls"][0]["status"] == "ok"

    def test_the_value_of_a_trailing_expression_after_what_was_printed(self, env):
        assert body(env.step(run("print('sum:')\nx = 40\nx + 2"))[0]) == "sum:\n42"

    def test_what_it_reads_from_its_input(self, env):
        assert body(env.step(run("print(int(input()) * 2)", "21\n"))[0]) == "42"

    def test_sympy_and_numpy(self, env):
        code = "import numpy as np, sympy as sp\nprint(int(np.arange(9).sum()))\nsp.factor(sp.Symbol('x')**2 - 1)"
        assert body(env.step(run(code))[0]) == "36\n(x - 1)*(x + 1)"

    def test_that_it_printed_nothing(self, env):
        text, *_, info = env.step(run("x = 1"))
        assert info["tool_calls"][0]["status"] == "empty"
        assert "print" in body(text)

    def test_a_warning_is_no_error(self, env):
        text, *_, info = env.step(run("import warnings\nwarnings.warn('careful')\nprint(3)"))
        assert info["tool_calls"][0]["status"] == "ok"
        assert body(text).startswith("3\n")
        assert "careful" in text

    def test_an_error_after_what_was_printed_with_the_models_own_line_numbers(self, env):
        code = "def half(n):\n    return n / 0\n\nprint('before')\nhalf(3)\nprint('after')"
        text, *_, info = env.step(run(code))
        lines = body(text).splitlines()
        assert lines[:2] == ["before", "Traceback (most recent call last):"]
        assert '  File "<cell>", line 5, in <module>' in lines
        assert '  File "<cell>", line 2, in half' in lines
        assert "    return n / 0" in lines
        assert lines[-1] == "ZeroDivisionError: division by zero"
        assert "after" not in text
        record = info["tool_calls"][0]
        assert (record["status"], record["error_type"], record["exit_code"]) == ("exception", "ZeroDivisionError", 1)

    def test_a_syntax_error_before_anything_ran(self, env):
        text, *_, info = env.step(run("print('ran')\nx = (1,\n"))
        assert info["tool_calls"][0]["status"] == "syntax_error"
        assert "line 2" in text
        assert "never closed" in text
        assert "ran\n" not in text

    @pytest.mark.parametrize("code", ["\0", "print('\0')", "\ud800", "x = '\ud800'; print(x)", "π = 3; print(π)"])
    def test_odd_characters_in_code_are_no_failure_of_ours(self, env, code):
        text, *_, info = env.step(run(code))
        assert info["tool_calls"][0]["status"] in ("ok", "syntax_error", "exception")
        text.encode("utf-8")

    def test_a_timeout_with_what_was_printed_before(self, sandbox):
        env = quick(sandbox, wall_s=0.5)
        text, _, terminated, truncated, info = env.step(run("print('before')\nwhile True: pass"))
        assert body(text) == "before\nThe program was stopped: it ran longer than 0.5 s."
        assert info["tool_calls"][0]["status"] == "timeout"
        assert (terminated, truncated) == (False, False)

    def test_a_program_that_takes_too_much_memory(self, sandbox):
        text, *_, info = quick(sandbox, memory_mb=64).step(run("print('before')\nx = bytearray(10**9)"))
        assert info["tool_calls"][0]["status"] == "memory"
        assert body(text).startswith("before\n")
        assert "64 MiB" in text

    def test_a_program_that_never_stops_printing(self, sandbox):
        env = quick(sandbox, output_bytes=100_000)
        text, *_, info = env.step(run("while True: print('spam')"))
        record = info["tool_calls"][0]
        assert (record["status"], record["truncated"]) == ("output_limit", True)
        assert len(text) < 6000
        assert "100000 bytes" in text

    def test_long_output_is_cut_in_the_middle_and_still_ok(self, sandbox):
        env = gym.make(ID, problems=PROBLEM, sandbox=sandbox, max_output=100)
        env.reset(seed=1)
        text, *_, info = env.step(run("print('a' * 500 + 'b' * 500)"))
        assert body(text) == "a" * 50 + "\n[... 901 characters left out ...]\n" + "b" * 49
        record = info["tool_calls"][0]
        assert (record["status"], record["truncated"]) == ("ok", True)

    def test_an_exit_code_that_is_not_zero(self, env):
        text, *_, info = env.step(run("print('x')\nraise SystemExit(3)"))
        assert (info["tool_calls"][0]["status"], info["tool_calls"][0]["exit_code"]) == ("exception", 3)
        assert body(text).startswith("x\n")

    def test_a_program_that_prints_the_word_error_succeeded(self, env):
        *_, info = env.step(run("print('Traceback: relative error 0.01')"))
        assert info["tool_calls"][0]["status"] == "ok"

    def test_a_program_that_kills_itself(self, env):
        text, *_, info = env.step(run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"))
        assert info["tool_calls"][0]["status"] == "exception"
        assert "SIGKILL" in text


class TestSeveralCalls:
    def test_all_run_in_order_each_in_a_fresh_process(self, env):
        text, *_, info = env.step(run("x = 1\nprint(x)") + " and " + run("print('x' in globals())") + run("1/0"))
        first, second, third = text.split("\n<tool_response>\n")
        assert (body(first), "False" in second, "ZeroDivisionError" in third) == ("1", True, True)
        assert [call["status"] for call in info["tool_calls"]] == ["ok", "ok", "exception"]

    def test_an_episode_replays_exactly_and_no_two_calls_share_their_draws(self, sandbox):
        code = (
            "import random, numpy\nprint(random.random(), numpy.random.rand())\nprint(hash('x'), list({'a', 'b', 'c'}))"
        )
        traces = []
        for _ in range(2):
            env = gym.make(ID, problems=PROBLEM, sandbox=sandbox)
            traces.append([env.reset(seed=5)[0], env.step(run(code) + run(code)), env.step(run(code))])
        assert traces[0] == traces[1]
        first, second = traces[0][1][0].split("\n<tool_response>\n")
        assert body(first).splitlines()[0] != second.splitlines()[0]
        assert body(first).splitlines()[1] == second.splitlines()[1]

    def test_another_seed_draws_other_numbers(self, env):
        shown = set()
        for seed in range(3):
            env.reset(seed=seed)
            shown.add(env.step(run("import random\nprint(random.random())"))[0])
        assert len(shown) == 3


class TestReward:
    @pytest.mark.parametrize("right", ["42", "42.0", "\\frac{42}{1}", " 42 ", "\\text{42}"])
    def test_one_for_the_right_answer_in_any_form(self, env, right):
        assert env.step(answer(right))[1:4] == (1.0, True, False)

    @pytest.mark.parametrize("wrong", ["43", "4 2 x", "", "6 \\cdot 8", "6 \\cdot 7", "\\frac{84}{2}", "the answer"])
    def test_nothing_for_another(self, env, wrong):
        assert env.step(answer(wrong))[1:4] == (0.0, True, False)

    def test_nothing_for_what_a_program_printed(self, env):
        text, *_ = env.step(run("print(r'<answer>\\boxed{42}</answer>')"))
        assert "<answer>\\boxed{42}</answer>" in text
        _, reward, *_, info = env.step("as printed above")
        assert (reward, info["end"], info["answer_tags"]) == (0.0, "no_answer", 0)

    def test_nothing_for_a_box_outside_the_answer_unless_asked_for(self, env):
        assert env.step("\\boxed{42}")[1] == 0.0
        lenient = gym.make(ID, problems=PROBLEM, dialect="rstar2:boxed_anywhere=true")
        lenient.reset(seed=1)
        assert lenient.step("\\boxed{42}")[1] == 1.0

    def test_a_whole_episode(self, env):
        _, reward, *_ = env.step("<reason>Let me compute.</reason>" + run("6 * 7"))
        assert reward == 0.0
        text, reward, terminated, truncated, info = env.step("So it is " + answer("42"))
        assert (text, reward, terminated, truncated) == ("", 1.0, True, False)
        assert info == {
            "role": "user",
            "tool_calls": [],
            "end": "answered",
            "answer": "42",
            "correct": True,
            "turns": 2,
            "tool_errors": 0,
            "tool_calls_total": 1,
            "answer_tags": 1,
            "verdict": {"reason": "equal", "method": "number"},
        }


class TestOurOwnFailures:
    def test_an_unavailable_sandbox_truncates(self):
        env = gym.make(ID, problems=PROBLEM, sandbox=StubSandbox(ToolStatus.UNAVAILABLE))
        env.reset(seed=1)
        _, reward, terminated, truncated, info = env.step(run("1"))
        assert (reward, terminated, truncated, info["end"]) == (0.0, False, True, "unavailable")
        assert (info["tool_errors"], info["tool_calls_total"]) == (0, 0)


class TestOptions:
    def test_the_bare_id_works_and_its_splits_do_not_meet(self):
        train, test = gym.make(ID), gym.make(ID, split="test")
        questions = [{env.reset(seed=seed)[0] for seed in range(200)} for env in (train, test)]
        assert len(questions[0]) > 100
        assert not questions[0] & questions[1]

    def test_problems_come_from_a_file(self, tmp_path):
        path = tmp_path / "mine.jsonl"
        path.write_text(json.dumps({"question": "1+1?", "answer": "2", "id": "one"}) + "\n")
        env = gym.make(ID, problems=path)
        assert env.reset(seed=1)[1]["problem_id"] == "one"

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"limits": {"walls": 3}}, "walls"),
            ({"limits": {"wall_s": -1}}, "wall_s"),
            ({"max_output": 0}, "max_output"),
            ({"verify_timeout_s": 0}, "verify_timeout_s"),
            ({"max_turns": 0}, "max_turns"),
            ({"dialect": "rstar"}, "rstar2"),
            ({"problems": "arithmetik"}, "arithmetic"),
        ],
    )
    def test_a_wrong_one_is_refused_when_the_environment_is_made(self, options, words):
        with pytest.raises((ConfigurationError, KeyError), match=words):
            gym.make(ID, **options)

    def test_the_sandbox_that_the_process_shares_is_let_go_of_and_had_again(self):
        env = gym.make(ID, problems=PROBLEM)
        for _ in range(2):
            env.reset(seed=1)
            assert body(env.step(run("6 * 7"))[0]) == "42"
            env.close()

    def test_it_renders_the_whole_episode(self, sandbox):
        env = gym.make(ID, problems=PROBLEM, sandbox=sandbox, render_mode="ansi")
        env.reset(seed=1)
        env.step(run("print('\\x1b[2Jhi')"))
        env.step(answer("42"))
        drawn = env.render()
        assert "\x1b[2J" not in drawn
        for words in ("What is 6 * 7?", "\\x1b[2Jhi", "ok", "[end: answered]", "correct"):
            assert words in drawn


@pytest.mark.skipif(not GSM8K.exists(), reason="../shared/data/gsm8k_test.jsonl is not there")
def test_the_gold_answers_of_gsm8k_earn_one_and_neighbours_nothing():
    env = gym.make(ID, problems=GSM8K)
    records = [json.loads(line) for line in GSM8K.read_text(encoding="utf-8").splitlines()]
    for problem in list(env.unwrapped.problems)[:: len(records) // 60]:
        for given, reward in ((problem.answer, 1.0), (problem.answer + "1", 0.0)):
            env.reset(options={"problem_id": problem.id})
            assert env.step(answer(given))[1] == reward, problem.id
