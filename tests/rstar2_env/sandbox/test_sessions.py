"""Sessions: cells in one isolated process, with limits and interrupts, and reports of a lost process."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from session_tools import STUBBORN, cpu_of

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome

Run = Callable[..., Outcome]

pytestmark = pytest.mark.deadlines

NUMBERS = itertools.count()


@pytest.fixture
def cell(local: LocalSandbox) -> Iterator[Run]:
    """Run a cell in a session of this test: ``cell(code, **fields of Job)``."""
    name = f"test-{next(NUMBERS)}"
    yield lambda code, **fields: local.run(Job(code, session=name, **fields))
    local.end_session(name)


# State


def test_state_lives_from_cell_to_cell(cell: Run) -> None:
    outcomes = [cell("import math\nx = 41"), cell("def f():\n    return math.floor(x) + 1"), cell("f()")]
    assert [outcome.session for outcome in outcomes] == ["new", "kept", "kept"]
    assert outcomes[2].value == "42"
    assert outcomes[2].session_note is None


def test_a_session_that_lives_on_has_no_exit_code(cell: Run) -> None:
    assert (cell("1").exit_code, cell("1 / 0").exit_code, cell("x y").exit_code) == (None, None, None)


def test_two_sessions_do_not_see_each_other_and_a_call_without_one_sees_neither(local: LocalSandbox) -> None:
    local.run(Job("x = 1\nopen('file', 'w').write('one')", session="one"))
    other = local.run(Job("import os\n'x' in globals() or os.path.exists('file')", session="two"))
    alone = local.run(Job("import os\n'x' in globals() or os.path.exists('file')"))
    assert (other.value, alone.value, alone.session) == ("False", "False", None)
    local.end_session("one")
    local.end_session("two")


def test_a_traceback_shows_the_source_of_the_cell_that_defined_the_function(cell: Run) -> None:
    cell("def divide(a):\n    return a / 0  # where it happens")
    trace = cell("divide(1)").traceback or ""
    assert 'File "<cell 2>", line 1, in <module>\n    divide(1)\n' in trace
    assert 'File "<cell 1>", line 2, in divide\n    return a / 0  # where it happens\n' in trace
    assert "session.py" not in trace


def test_an_exception_leaves_what_was_done_before_it(cell: Run) -> None:
    failed = cell("x = 5\nraise ValueError('no')")
    assert (failed.status, failed.error_type, failed.session) == (ToolStatus.EXCEPTION, "ValueError", "new")
    assert cell("x").value == "5"


def test_a_syntax_error_leaves_the_session_as_it_was(cell: Run) -> None:
    cell("x = 5")
    broken = cell("x = = 6")
    assert (broken.status, broken.session) == (ToolStatus.SYNTAX_ERROR, "kept")
    assert cell("x").value == "5"


def test_future_features_stay_on(cell: Run) -> None:
    cell("from __future__ import annotations")
    assert cell("def f(a: nothing.of.this): pass\nf.__annotations__").value == "{'a': 'nothing.of.this'}"


def test_files_come_with_each_cell_and_stay(cell: Run) -> None:
    cell("open('made', 'w').write('made')", files={"first/given": b"first"})
    joined = cell("open('made').read() + open('first/given').read() + open('given').read()", files={"given": b"2"})
    assert joined.value == "'madefirst2'"


def test_standard_input_is_each_cells_own(cell: Run) -> None:
    assert cell("input()", stdin="one\nleft over\n").value == "'one'"
    assert cell("input()", stdin="two\n").value == "'two'"
    assert cell("input()").error_type == "EOFError"


def test_a_seed_starts_random_states_anew_and_the_same_seed_draws_on(cell: Run) -> None:
    draw = "import random\nrandom.random()"
    first, on = cell(draw, seed=7).value, cell(draw, seed=7).value
    other, again = cell(draw, seed=8).value, cell(draw, seed=7).value
    assert len({first, on, other}) == 3
    assert again == first


def test_a_large_cell_and_a_large_output_pass_whole(cell: Run) -> None:
    outcome = cell(f"text = {'x' * 3_000_000!r}\nprint(text[:900_000])")
    assert outcome.stdout == "x" * 900_000 + "\n"
    assert cell("len(text)").value == "3000000"


def test_what_a_cell_ruins_in_builtins_is_mended_for_the_next(cell: Run) -> None:
    cell("import builtins\nbuiltins.len = builtins.open = builtins.print = None")
    assert cell("len('four')").value == "4"


# Output


def test_each_cell_has_its_own_output(cell: Run) -> None:
    assert [cell(f"print({number})").stdout for number in range(20)] == [f"{number}\n" for number in range(20)]


def test_what_a_thread_prints_between_cells_comes_with_the_next(cell: Run) -> None:
    cell("import threading, time\nlate = threading.Timer(0.3, print, ['from behind'])\nlate.start()\nprint('first')")
    assert cell("late.join()\nprint('second')").stdout == "from behind\nsecond\n"


def test_a_thread_that_prints_without_end_between_cells_is_held_up(cell: Run, local: LocalSandbox, look: Any) -> None:
    flood = "import threading\ndef flood():\n    while go: print('spam', flush=True)\n"
    cell(flood + "go = True\nthreading.Thread(target=flood, daemon=True).start()")
    time.sleep(0.5)
    before = cpu_of(look.pids(local)[0])
    time.sleep(1.0)
    assert cpu_of(look.pids(local)[0]) - before < 0.3  # of a warden that reads nothing
    assert cell("go = False").session in ("kept", "interrupted")


# Limits


def test_a_cell_that_runs_too_long_is_interrupted_and_the_state_kept(cell: Run) -> None:
    cell("x = 5")
    late = cell("import time\nx = 6\ntime.sleep(60)\nx = 7", limits=Limits(wall_s=0.5))
    assert (late.status, late.session, late.signal) == (ToolStatus.TIMEOUT, "interrupted", None)
    assert "wall-clock limit and was interrupted" in (late.session_note or "")
    assert "line 3" in (late.traceback or "")
    assert late.wall_s >= 0.5
    after = cell("x")
    assert (after.value, after.session, after.session_note) == ("6", "kept", None)


def test_an_interrupt_is_for_one_cell_alone(cell: Run) -> None:
    """An interrupt that is too late for a cell that ends at its deadline must not reach the next cell."""
    for number in range(12):
        cell(f"import time\ntime.sleep({0.05 + 0.0005 * number})", limits=Limits(wall_s=0.05))
        assert cell("sum(range(20000))").value == "199990000"


def test_a_cell_that_does_not_stop_ends_its_session(cell: Run) -> None:
    cell("x = 5")
    ended = cell(STUBBORN, limits=Limits(wall_s=0.3))
    assert (ended.status, ended.signal, ended.session) == (ToolStatus.TIMEOUT, "SIGKILL", "ended")
    assert "did not stop when it was interrupted" in (ended.session_note or "")
    after = cell("'x' in globals()")
    assert (after.session, after.value, after.session_note) == ("new", "False", None)


def test_a_cell_stuck_in_c_ends_its_session(cell: Run) -> None:
    loop = cell("import itertools\nsum(itertools.repeat(1))", limits=Limits(wall_s=0.3))
    assert (loop.status, loop.session) == (ToolStatus.TIMEOUT, "ended")


def test_a_cell_that_prints_too_much_is_interrupted(cell: Run) -> None:
    cell("x = 5")
    loud = cell("while True: print('spam')", limits=Limits(output_bytes=1000))
    assert (loud.status, loud.session, loud.truncated) == (ToolStatus.OUTPUT_LIMIT, "interrupted", True)
    assert len(loud.stdout) == 1000
    assert cell("x").value == "5"


def test_memory_that_cannot_be_had_is_an_error_that_leaves_the_session(cell: Run) -> None:
    for _ in range(3):
        greedy = cell("big = bytearray(10**10)")
        assert (greedy.status, greedy.error_type) == (ToolStatus.MEMORY, "MemoryError")
    assert cell("'big' in globals()").session == "kept"


def test_the_first_cells_limits_hold_for_the_life_of_the_session(cell: Run) -> None:
    cell("kept = []", limits=Limits(memory_mb=128))
    grown = cell("kept.append(bytearray(256 << 20))", limits=Limits(memory_mb=1024))
    assert grown.status is ToolStatus.MEMORY


def test_the_first_cells_processes_hold_for_the_life_of_the_session(cell: Run) -> None:
    many = "import threading, time\nfor _ in range(40): threading.Thread(target=time.sleep, args=(5,)).start()"
    cell("'few'", limits=Limits(processes=10))
    refused = cell(many, limits=Limits(processes=1000))
    assert (refused.error_type, refused.session) == ("RuntimeError", "kept")


def test_limits_hold_also_when_the_first_cell_cannot_begin(cell: Run) -> None:
    limits = Limits(memory_mb=128)
    refused = cell("1", files={"a": b"", "a/b": b""}, limits=limits)
    assert (refused.status, refused.error_type, refused.session) == (ToolStatus.EXCEPTION, "FileExistsError", "new")
    assert cell("bytearray(256 << 20)", limits=limits).status is ToolStatus.MEMORY


@pytest.mark.slow
def test_processes_that_share_the_limit_and_exceed_it_end_the_session(cell: Run) -> None:
    hog = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        for at in range(0, len(held), 4096): held[at] = 1
        time.sleep(30)
        os._exit(0)
held = bytearray(60 << 20)
for at in range(0, len(held), 4096): held[at] = 1
time.sleep(1)
"""
    first = cell(hog, limits=Limits(memory_mb=200, wall_s=10))
    # The kernel chooses whom it ends; the first process may live on.
    assert first.session in ("new", "ended")
    assert cell("1 + 1").value == "2"


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "name"),
    [
        ("exit()", ToolStatus.EMPTY, 0, None),
        ("import sys\nsys.exit(3)", ToolStatus.EXCEPTION, 3, None),
        ("import os\nos._exit(0)", ToolStatus.EMPTY, 0, None),
        ("import os\nos.kill(os.getpid(), 9)", ToolStatus.EXCEPTION, None, "SIGKILL"),
        ("import ctypes\nctypes.string_at(0)", ToolStatus.EXCEPTION, None, "SIGSEGV"),
        ("import os\nos.abort()", ToolStatus.EXCEPTION, None, "SIGABRT"),
    ],
)
def test_an_exit_or_a_crash_ends_the_session_and_says_how(
    cell: Run, code: str, status: ToolStatus, exit_code: int | None, name: str | None
) -> None:
    cell("x = 1")
    ended = cell(code)
    assert (ended.status, ended.exit_code, ended.signal, ended.session) == (status, exit_code, name, "ended")
    assert str(exit_code if name is None else name) in (ended.session_note or "")
    assert cell("'x' in globals()").value == "False"


def test_exit_runs_what_was_left_for_the_end(cell: Run) -> None:
    cell("import atexit\natexit.register(print, 'goodbye')")
    assert cell("raise SystemExit").stdout == "goodbye\n"


# Attacks from inside


@pytest.mark.parametrize(
    "attack",
    [
        "import os\nos.write(4, b'{\"done\": 999999}')",
        'import os\nfor number in range(2000): os.write(4, b\'{"done": %d, "value": "forged"}\' % number)',
        "import os, time\nos.write(4, b'[' * 100_000)",
        "import os\nos.close(4)",
        "import os\nos.close(3)",
        "import os\nos.close(5)",
        "import os\nos.closerange(0, 100)",
        "import sys\nsys.stdout.close()\nsys.stdin.close()",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal = None",
        "import gc\n[frame.clear() for frame in gc.get_objects() if type(frame).__name__ == 'frame']",
        "import sys\nsys.settrace(lambda *_: 1 / 0)\nsys.setrecursionlimit(60)",
        "import os\nif os.fork() == 0:\n    while True: os.read(3, 1)",
        "import sys\nsys._getframe(1).f_globals.clear()",
        "import sys\nfor module in list(sys.modules.values()): vars(module).clear()",
        "import os, signal\nfor _ in range(50): os.kill(0, signal.SIGINT)",
    ],
)
def test_an_attack_on_the_harness_stays_in_its_session(cell: Run, local: LocalSandbox, attack: str) -> None:
    limits = Limits(wall_s=1.0)
    cell("1", limits=limits)
    outcomes = [cell(attack, limits=limits), cell("1 + 1", limits=limits)]
    assert all(outcome.status is not ToolStatus.UNAVAILABLE for outcome in outcomes)
    beside = local.run(Job("6 * 7", session="beside"))
    assert (beside.value, local.run(Job("print(1)")).stdout) == ("42", "1\n")
    local.end_session("beside")


def test_a_forged_end_ends_its_own_cell_and_no_failed_exit_is_hidden(cell: Run) -> None:
    """A program can find the call's id in memory; if it forges the end, its later actions count for the next cell."""
    forged = """
import os, sys, time
frame = sys._getframe()
while "call_id" not in frame.f_locals: frame = frame.f_back
os.write(4, b'{"done": %d, "value": "forged"}' % frame.f_locals["call_id"])
time.sleep(1.5)
os._exit(9)
"""
    first = cell(forged)
    assert (first.value, first.session, first.exit_code) == ("forged", "new", None)
    second = cell("'an honest cell'")
    assert (second.status, second.exit_code, second.session) == (ToolStatus.EXCEPTION, 9, "ended")


def test_a_session_sees_no_network_no_home_and_no_other_process(cell: Run) -> None:
    cell("import os, socket")
    assert cell("socket.socket()").error_type == "PermissionError"
    assert cell("os.path.exists(os.path.expanduser('~root'))").value == "False"
    assert cell("'SECRET_TOKEN' in os.environ").value == "False"
    assert cell(f"os.kill({os.getpid()}, 0)").error_type in ("ProcessLookupError", "PermissionError")


# Wrong use


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_a_session_needs_a_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Job\.session must be a string of 1 to 200 characters"):
        Job("1", session=name)


def test_any_text_is_a_name(local: LocalSandbox) -> None:
    for name in ("naïve \0 \ud800", "../../etc", "0"):
        assert local.run(Job("1", session=name)).session == "new"
        assert local.run(Job("1", session=name)).session == "kept"
        local.end_session(name)


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_sessions", 0), ("max_sessions", None), ("session_timeout_s", 0), ("session_memory_mb", 0)],
)
def test_bounds_that_allow_no_session_are_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=option):
        LocalSandbox(**{option: value})


def test_an_interrupt_arrives_also_when_the_thread_that_made_the_sandbox_blocks_signals() -> None:
    made: list[LocalSandbox] = []

    def make() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        made.append(LocalSandbox(workers=1, waiting=1, preload=()))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    with made[0] as sandbox:
        sandbox.run(Job("x = 1", session="a"))
        outcome = sandbox.run(Job("while True: pass", session="a", limits=Limits(wall_s=0.3)))
        assert (outcome.session, outcome.error_type) == ("interrupted", "KeyboardInterrupt")
        assert sandbox.run(Job("x", session="a")).value == "1"
