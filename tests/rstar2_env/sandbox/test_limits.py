"""Every limit is enforced, and the outcome names the limit that ended a program."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from textwrap import dedent

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import RULE
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome

pytestmark = pytest.mark.deadlines

Run = Callable[..., Outcome]


def test_cpu_time_is_bounded_apart_from_the_wall_clock(run: Run) -> None:
    outcome = run("while True: pass", limits=Limits(wall_s=20, cpu_s=1))
    assert outcome.status is ToolStatus.TIMEOUT
    assert outcome.cpu_s < 4


def test_a_program_that_catches_the_warning_of_cpu_time_is_ended_all_the_same(run: Run) -> None:
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert run(code, limits=Limits(wall_s=20, cpu_s=1)).status is ToolStatus.TIMEOUT


def test_sleeping_uses_no_cpu(run: Run) -> None:
    outcome = run("import time\ntime.sleep(0.5)")
    assert outcome.wall_s >= 0.5
    assert outcome.cpu_s < 0.25


def test_the_wall_clock_starts_with_the_program_not_in_the_queue() -> None:
    with LocalSandbox(workers=1) as sandbox:
        jobs = [Job("import time\ntime.sleep(0.3)\nprint('done')", limits=Limits(wall_s=2))] * 9
        outcomes = sandbox.run_many(jobs)
    assert [outcome.stdout for outcome in outcomes] == ["done\n"] * 9


def test_output_up_to_the_limit_is_kept_whole(run: Run) -> None:
    outcome = run("import sys\nsys.stdout.write('x' * 1000)", limits=Limits(output_bytes=1000))
    assert (outcome.status, len(outcome.stdout), outcome.truncated) == (ToolStatus.OK, 1000, False)


def test_one_byte_more_than_the_limit_is_output_limit_however_the_program_ended(run: Run) -> None:
    outcome = run("import sys\nsys.stdout.write('x' * 1001)", limits=Limits(output_bytes=1000))
    assert (outcome.status, outcome.stdout, outcome.truncated) == (ToolStatus.OUTPUT_LIMIT, "x" * 1000, True)
    assert outcome.stdout_left_out >= 1


def test_streams_are_bounded_each(run: Run) -> None:
    code = "import sys\nsys.stdout.write('x' * 900)\nsys.stderr.write('y' * 900)"
    outcome = run(code, limits=Limits(output_bytes=1000))
    assert (outcome.status, len(outcome.stdout), len(outcome.stderr)) == (ToolStatus.OK, 900, 900)


def test_processes_and_threads_are_bounded(run: Run) -> None:
    code = """
    import threading, time
    made = 0
    try:
        for made in range(100):
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    except RuntimeError:
        print("refused at", made)
    """
    assert run(dedent(code), limits=Limits(processes=10)).stdout == "refused at 9\n"


def test_a_file_larger_than_its_bound_is_refused(run: Run) -> None:
    outcome = run("open('x', 'wb').write(b'0' * (5 << 20))", limits=Limits(file_mb=2))
    assert (outcome.status, outcome.error_type) == (ToolStatus.EXCEPTION, "OSError")


def test_many_files_together_are_bounded(run: Run) -> None:
    code = "for n in range(10): open(str(n), 'wb').write(b'0' * (1 << 20))"
    outcome = run(code, limits=Limits(file_mb=4))
    assert (outcome.status, outcome.error_type) == (ToolStatus.EXCEPTION, "OSError")


def test_a_change_of_the_files_bound_reaches_the_next_call(run: Run) -> None:
    code = "open('x', 'wb').write(b'0' * (3 << 20))\nprint('wrote')"
    statuses = [run(code, limits=Limits(file_mb=size)).status for size in (2, 8, 2, 8)]
    assert statuses == [ToolStatus.EXCEPTION, ToolStatus.OK] * 2


def test_memory_taken_by_the_program_itself_until_the_kernel_ends_it(run: Run) -> None:
    # Two processes share the bound, each below it; the kernel ends the larger one.
    code = """
    import os, time
    if os.fork() == 0:
        block = bytearray(120 << 20)
        for at in range(0, len(block), 4096): block[at] = 1
        time.sleep(30)
    time.sleep(1)
    block = bytearray(250 << 20)
    for at in range(0, len(block), 4096): block[at] = 1
    time.sleep(30)
    """
    outcome = run(dedent(code), limits=Limits(memory_mb=300, wall_s=15))
    assert (outcome.status, outcome.signal) == (ToolStatus.MEMORY, "SIGKILL")


def test_peak_memory_is_reported(run: Run) -> None:
    assert 90 < run("x = bytearray(b'1' * (100 << 20))\nlen(x)").peak_memory_mb < 400


def test_a_deadline_is_kept_to_the_tenth_of_a_second_when_the_machine_is_not_busy(run: Run) -> None:
    started = time.monotonic()
    outcome = run("import time\ntime.sleep(60)", limits=Limits(wall_s=0.5))
    assert outcome.status is ToolStatus.TIMEOUT
    assert 0.5 <= outcome.wall_s <= time.monotonic() - started < 8


@pytest.mark.parametrize("field", ["wall_s", "memory_mb", "processes", "output_bytes", "file_mb", "cpu_s"])
def test_a_limit_that_nothing_could_run_under_is_refused(field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        Limits(**{field: 0})


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", "a\0b"])
def test_a_file_outside_the_working_folder_is_refused(run: Run, name: str) -> None:
    with pytest.raises(ConfigurationError, match="must be relative"):
        run("1", files={name: b""})


def test_files_beyond_their_bound_are_refused(run: Run) -> None:
    with pytest.raises(ConfigurationError, match="file_mb"):
        run("1", files={"x": b"0" * (2 << 20)}, limits=Limits(file_mb=1))


def test_a_file_name_that_the_file_system_refuses_is_told(run: Run) -> None:
    outcome = run("1", files={"x" * 300: b""})
    assert (outcome.status, outcome.error_type) == (ToolStatus.EXCEPTION, "OSError")


def test_the_largest_limits_are_limits_that_a_program_runs_under(run: Run) -> None:
    most = {item.name: item.metadata[RULE].most for item in fields(Limits)}
    bounded = {name: most[name] for name in ("memory_mb", "processes", "output_bytes", "file_mb")}
    outcome = run("print(6 * 7)", limits=Limits(wall_s=60.0, cpu_s=1e9, **bounded))
    assert (outcome.status, outcome.stdout) == (ToolStatus.OK, "42\n"), outcome
    assert run("print(6 * 7)").stdout == "42\n"


@pytest.mark.parametrize("name", ["memory_mb", "processes", "output_bytes", "file_mb"])
@pytest.mark.parametrize("wrong", ["more", 2.5, 512.0, math.inf, math.nan, "512", True])
def test_a_limit_that_is_no_whole_number_in_its_range_is_refused(name: str, wrong: object) -> None:
    if wrong == "more":
        wrong = next(item.metadata[RULE].most for item in fields(Limits) if item.name == name) + 1
    with pytest.raises(ConfigurationError, match=name):
        Limits(**{name: wrong})  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("name", ["wall_s", "cpu_s"])
@pytest.mark.parametrize("wrong", [0, -1.0, 1e30, math.inf, math.nan, "5"])
def test_a_time_that_is_no_positive_number_in_its_range_is_refused(name: str, wrong: object) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Limits(**{name: wrong})  # type: ignore[arg-type]  # wrong on purpose


FEW_DESCRIPTORS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from rstar2_env.sandbox import Job, LocalSandbox
with LocalSandbox(workers=16, waiting=8, preload=(), max_sessions=16) as sandbox:
    calls = sandbox.run_many([Job(f"import time; time.sleep(0.2)\\n{n}") for n in range(32)])
    cells = sandbox.run_many([Job(f"{n}", session=str(n)) for n in range(16)])
    print([outcome.value for outcome in calls + cells] == [str(n) for n in (*range(32), *range(16))])
"""


def test_more_children_and_sessions_than_the_callers_soft_limit_on_descriptors_has_room_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FEW_DESCRIPTORS], capture_output=True, text=True, timeout=800, check=False
    )
    assert done.stdout == "True\n", done.stdout + done.stderr
