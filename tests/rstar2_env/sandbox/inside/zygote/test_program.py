"""A program runs like a notebook cell, and its report is correct."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome
from rstar2_env.sandbox.inside.zygote import program

Run = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("5", "5"),
        ("x = 5\nx", "5"),
        ("'a'", "'a'"),
        ("None", None),
        ("x = 5", None),
        ("5;", None),
        ("5 ; # quiet", None),
        ("def f():\n    return 1\nf()", "1"),
        ("if True:\n    5", None),
        ("print(1)", None),
        ("[\n 1,\n 2]", "[1, 2]"),
        ("'é';", None),
        ("from __future__ import annotations\nx: undefined = 1\n__annotations__", "{'x': 'undefined'}"),
    ],
)
def test_a_trailing_expression_is_echoed_as_in_a_notebook(run: Run, code: str, value: str | None) -> None:
    assert run(code).value == value


def test_a_value_counts_as_something_shown(run: Run) -> None:
    assert [run(code).status for code in ("1", "x = 1", "", "# nothing", "None")] == [
        ToolStatus.OK,
        *[ToolStatus.EMPTY] * 4,
    ]


def test_output_on_stderr_alone_is_ok(run: Run) -> None:
    outcome = run("import warnings\nwarnings.warn('careful')")
    assert outcome.status is ToolStatus.OK
    assert "UserWarning: careful" in outcome.stderr


def test_a_traceback_shows_the_models_own_lines_and_no_others(run: Run) -> None:
    outcome = run("def f(n):\n    return 1 / n\n\nf(0)")
    assert outcome.status is ToolStatus.EXCEPTION
    assert (outcome.error_type, outcome.error_message, outcome.exit_code) == (
        "ZeroDivisionError",
        "division by zero",
        1,
    )
    assert outcome.traceback is not None
    assert 'File "<cell>", line 4, in <module>\n    f(0)' in outcome.traceback
    assert 'File "<cell>", line 2, in f\n    return 1 / n' in outcome.traceback
    assert outcome.traceback.startswith('Traceback (most recent call last):\n  File "<cell>"')
    assert outcome.stderr == ""


def test_a_traceback_shows_the_cause(run: Run) -> None:
    outcome = run("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e")
    assert outcome.traceback is not None
    assert "The above exception was the direct cause" in outcome.traceback


def test_a_failing_trailing_expression_has_its_own_line_number(run: Run) -> None:
    outcome = run("x = 0\n\n\n1 / x")
    assert outcome.traceback is not None
    assert "line 4, in <module>" in outcome.traceback


def test_a_syntax_error_is_found_before_any_code_runs(run: Run) -> None:
    outcome = run("print('ran')\nx = = 1")
    assert (outcome.status, outcome.stdout, outcome.error_type) == (ToolStatus.SYNTAX_ERROR, "", "SyntaxError")
    assert outcome.traceback is not None
    assert 'File "<cell>", line 2' in outcome.traceback


def test_an_error_of_eval_at_run_time_is_no_syntax_error_of_the_program(run: Run) -> None:
    outcome = run("print('ran')\neval('= 1')")
    assert (outcome.status, outcome.error_type, outcome.stdout) == (ToolStatus.EXCEPTION, "SyntaxError", "ran\n")


def test_what_was_printed_before_an_error_is_kept(run: Run) -> None:
    outcome = run("print('one')\nprint('two', end='')\n1 / 0")
    assert outcome.stdout == "one\ntwo"


def test_what_was_printed_before_a_time_out_is_kept_without_a_flush(run: Run) -> None:
    outcome = run("print('no newline', end='')\nwhile True: pass", limits=Limits(wall_s=0.5))
    assert (outcome.status, outcome.stdout, outcome.signal) == (ToolStatus.TIMEOUT, "no newline", "SIGKILL")


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("import sys; sys.exit()", ToolStatus.EMPTY, 0),
        ("import sys; sys.exit(0)", ToolStatus.EMPTY, 0),
        ("import sys; sys.exit(None)", ToolStatus.EMPTY, 0),
        ("print(1); exit()", ToolStatus.OK, 0),
        ("import sys; sys.exit(3)", ToolStatus.EXCEPTION, 3),
        ("raise SystemExit(True)", ToolStatus.EXCEPTION, 1),
        ("import os; os._exit(0)", ToolStatus.EMPTY, 0),
        ("import os; os._exit(9)", ToolStatus.EXCEPTION, 9),
    ],
)
def test_exit_codes_decide(run: Run, code: str, status: ToolStatus, exit_code: int) -> None:
    outcome = run(code)
    assert (outcome.status, outcome.exit_code, outcome.signal) == (status, exit_code, None)


def test_an_exit_with_words_prints_them_and_fails(run: Run) -> None:
    outcome = run("import sys; sys.exit('no good')")
    assert (outcome.status, outcome.exit_code, outcome.stderr) == (ToolStatus.EXCEPTION, 1, "no good\n")
    assert (outcome.error_type, outcome.error_message) == ("SystemExit", "no good")


def test_a_signal_is_named(run: Run) -> None:
    outcome = run("import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)")
    assert (outcome.status, outcome.signal, outcome.exit_code) == (ToolStatus.EXCEPTION, "SIGUSR1", None)


def test_stdin_is_read(run: Run) -> None:
    assert run("int(input()) + int(input())", stdin="1\n2\n").value == "3"
    assert run("import sys\nsys.stdin.read()", stdin="ä\n").value == "'ä\\n'"


def test_stdin_that_is_missing_is_at_its_end(run: Run) -> None:
    outcome = run("print('ask')\ninput()")
    assert (outcome.status, outcome.error_type, outcome.stdout) == (ToolStatus.EXCEPTION, "EOFError", "ask\n")


def test_files_are_there_and_can_be_imported(run: Run) -> None:
    outcome = run(
        "import helper\nprint(open('data/x.bin', 'rb').read(), helper.double(4))",
        files={"helper.py": b"def double(n): return 2 * n", "data/x.bin": b"\x00\xff"},
    )
    assert outcome.stdout == "b'\\x00\\xff' 8\n"


def test_a_memory_error_that_nobody_caught_is_memory(run: Run) -> None:
    outcome = run("x = bytearray(4 << 30)")
    assert (outcome.status, outcome.error_type, outcome.exit_code) == (ToolStatus.MEMORY, "MemoryError", 1)


def test_a_memory_error_that_was_caught_is_a_success(run: Run) -> None:
    assert run("try: bytearray(4 << 30)\nexcept MemoryError: print('caught')").stdout == "caught\n"


def test_exit_handlers_and_threads_are_waited_for(run: Run) -> None:
    code = """
    import atexit, threading, time
    atexit.register(print, "bye")
    def late():
        time.sleep(0.1)
        print("late")
    threading.Thread(target=late).start()
    print("main")
    """
    assert run(dedent(code)).stdout == "main\nlate\nbye\n"


def test_it_is_main_and_its_classes_can_be_pickled(run: Run) -> None:
    code = """
    import pickle
    class A:
        x = 3
    a = pickle.loads(pickle.dumps(A()))
    (__name__, a.x, A.__module__)
    """
    assert run(dedent(code)).value == "('__main__', 3, '__main__')"


def test_processes_and_event_loops_work(run: Run) -> None:
    code = """
    import asyncio, math
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
    async def five():
        await asyncio.sleep(0)
        return 5
    with ProcessPoolExecutor(2) as pool, ThreadPoolExecutor(4) as threads:
        print(list(pool.map(math.sqrt, [4, 9])), list(threads.map(abs, [-1, 1])), asyncio.run(five()))
    """
    assert run(dedent(code)).stdout == "[2.0, 3.0] [1, 1] 5\n"


def test_what_it_leaves_in_memory_is_gone_in_the_next_call(run: Run) -> None:
    run("import math, sympy, builtins\nmath.pi = 3\nsympy.pi = 3\nbuiltins.leak = 1\nopen('left', 'w').write('x')")
    assert run("import math, os, sympy\n(math.pi, sympy.pi, 'leak' in dir(__builtins__), os.listdir())").value == (
        "(3.141592653589793, pi, False, [])"
    )


DRAWS = """
import random, numpy, sympy.core.random as s
(random.random(), float(numpy.random.rand()), s.random())
"""


def test_random_states_follow_the_seed(run: Run) -> None:
    first, again, other = (run(DRAWS, seed=seed).value for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_generators_of_different_kinds_do_not_draw_the_same(run: Run) -> None:
    assert len(set(map(str, eval(str(run(DRAWS, seed=1).value))))) == 3


def test_a_generator_imported_by_the_program_is_seeded_too() -> None:
    with LocalSandbox(preload=()) as sandbox:
        jobs = [Job(DRAWS, seed=1), Job(DRAWS, seed=1), Job(DRAWS, seed=2)]
        first, again, other = (outcome.value for outcome in sandbox.run_many(jobs))
    assert first is not None
    assert first == again
    assert first != other


def test_hashes_are_the_same_in_every_call(run: Run) -> None:
    assert run("hash('rstar2')").value == run("hash('rstar2')").value


def test_a_long_value_is_cut_and_says_so(run: Run) -> None:
    outcome = run("'x' * 200_000")
    assert outcome.value is not None
    assert len(outcome.value) < 100_000
    assert "characters left out" in outcome.value
    assert outcome.truncated
    assert outcome.stdout_left_out == 0


def test_a_value_of_controls_and_a_hostile_message_fit_one_report(run: Run) -> None:
    assert run("'\\x01' * 60_000").value is not None
    outcome = run("raise ValueError('\\x00' * 10_000_000)")
    assert outcome.error_type == "ValueError"
    assert outcome.error_message is not None
    assert len(outcome.error_message) < 10_000


def test_deep_recursion_keeps_a_short_traceback(run: Run) -> None:
    outcome = run(
        "import sys\nsys.setrecursionlimit(50_000)\ndef f(n):\n    return g(n)\ndef g(n):\n    return f(n + 1)\nf(0)"
    )
    assert outcome.error_type == "RecursionError"
    assert outcome.traceback is not None
    assert len(outcome.traceback) < 20_000


LINES = (
    "x = 1", "x", "(x +", "1)", "'''", '"""a"""', "if x:", "    y", "else:", "x;", "x # y", "x = \\",
    "\\", "def f():", "    return 1", "f()", "[1,", "2]", "@f", "'a' 'b'", "lambda: 0", "yield 1", "await x",
    "*x, 1", "y := 1", "(y := 1)", "1\r2", "\f1", "from __future__ import annotations", "print", "...", "-1", "~x",
    ".5", "match x:", "é", "    case _: pass", "", " ", "# x", "x <> 1", "f'{x}'", "'\\d'", "x is 1", "for _ in x:",
    "return x", "x\0y", "\ud800",
)  # fmt: skip
"""Lines of which some begin, continue or end statements."""
LAST = ("x", "f()", "1)", "'a' 'b'", "y := 1", "(y := 1)", "-1", "[1, 2]", "'''", "1\r2", "x <> 1", "...", "x;", "é")
"""Last lines: expressions, and lines that look like one."""


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(LINES), max_size=5), st.sampled_from(LAST), st.sampled_from(["", "\n", "\n\n"]))
def test_a_cell_is_compiled_alike_with_and_without_a_tree(lines: list[str], last: str, end: str) -> None:
    source = "\n".join([*lines, last]) + end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = program._compile_last_line(source, "<cell>", 0)
        if quick is not None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(program, "_compile_last_line", lambda *_: None)
                assert quick == program.compile_cell(source)


def test_a_last_line_that_is_an_expression_needs_no_tree() -> None:
    for source in ("print(1)", "x = 1\nif x:\n    y = 2\n[x, y]\n", "def f(): pass\nf()\n\n"):
        assert program._compile_last_line(source, "<cell>", 0) is not None
