"""Long-running programs let short ones pass, and lose only time."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome
from rstar2_env.sandbox.inside.warden.deprioritizing import AFTER_S, MOST
from rstar2_env.sandbox.inside.zygote.priority import LEVEL

pytestmark = pytest.mark.deadlines

OWN = os.getpriority(os.PRIO_PROCESS, 0)
LOWERED_TO = min(OWN + LEVEL, 19)
LOWERED = f"import os, time\nwhile os.getpriority(os.PRIO_PROCESS, 0) < {LOWERED_TO}: time.sleep(0.01)\n"
SLEEP = "import time\ntime.sleep(60)"
NO_NAMESPACES = ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "cgroups")
MODES = pytest.mark.parametrize(
    "race",
    [
        pytest.param({}, id="all layers"),
        pytest.param({"without": NO_NAMESPACES}, id="without namespaces"),
        pytest.param({"without": ("autogroup",)}, id="shares by control groups"),
    ],
    indirect=True,
)
BESIDE_A_CELL = pytest.mark.parametrize("race", [pytest.param({"workers": 2}, id="two workers")], indirect=True)


class Race:
    """Calls of a sandbox, started in order, and the order of their ends."""

    def __init__(self, sandbox: LocalSandbox) -> None:
        self._sandbox = sandbox
        self.ends: list[str] = []

    def start(self, name: str, code: str, wall_s: float = 30.0, session: str | None = None) -> Future[Outcome]:
        future = self._sandbox._submit(Job(code, limits=Limits(wall_s=wall_s), session=session)).future
        future.add_done_callback(lambda _: self.ends.append(name))
        return future


@pytest.fixture
def race(request: pytest.FixtureRequest) -> Iterator[Race]:
    """A sandbox with one worker and room for two deprioritized programs; parametrized by other options."""
    options = {"workers": 1, "deprioritize": 2, "waiting": 1, "preload": (), **getattr(request, "param", {})}
    with LocalSandbox(**options) as sandbox:
        yield Race(sandbox)


@MODES
def test_short_calls_pass_an_endless_loop(race: Race) -> None:
    loop = race.start("loop", "while True: pass", wall_s=20.0)
    short = [race.start("short", f"print({number})") for number in range(20)]
    assert [call.result().stdout for call in short] == [f"{number}\n" for number in range(20)]
    assert not loop.done()


def test_at_most_the_given_number_is_deprioritized(race: Race) -> None:
    assert race.start("earlier", LOWERED + "print('lowered')").result().stdout == "lowered\n"
    sleepers = [race.start("long", SLEEP, wall_s) for wall_s in (30.0, 30.0, 3.0)]
    short = race.start("short", "print(1)")
    assert short.result().stdout == "1\n"
    assert race.ends == ["earlier", "long", "short"]
    assert sleepers[2].result().status is ToolStatus.TIMEOUT


@pytest.mark.parametrize("race", [pytest.param({"deprioritize": 8, "parents": 1}, id="room for eight")], indirect=True)
def test_each_deprioritized_program_has_a_slot(race: Race) -> None:
    sleepers = [race.start("long", SLEEP, wall_s=120.0) for _ in range(8)]
    assert race.start("short", "print(1)").result().stdout == "1\n"
    assert not any(sleeper.done() for sleeper in sleepers)


@pytest.fixture
def may_raise() -> Iterator[None]:
    """Allow the caller of the sandbox to raise weights, if this user can have that right."""
    kinds = (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO)
    before = [resource.getrlimit(kind) for kind in kinds]
    for kind in kinds:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (40, 40))
    yield
    for kind, limits in zip(kinds, before, strict=True):
        resource.setrlimit(kind, limits)


UNDO = (
    LOWERED
    + """
import ctypes, resource
tried = []
def attempt(what, *values):
    try:
        what(*values)
        tried.append(what.__name__)
    except (OSError, ValueError):
        pass
attempt(os.nice, -5)
attempt(os.setpriority, os.PRIO_PROCESS, 0, 0)
attempt(os.setpriority, os.PRIO_USER, 0, 0)
attempt(os.setpriority, os.PRIO_PGRP, 0, 0)
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    attempt(os.sched_setscheduler, 0, policy, os.sched_param(1))
attempt(resource.setrlimit, resource.RLIMIT_NICE, (40, 40))
for path in ("/proc/self/autogroup", f"/proc/{os.getpid()}/autogroup", "/sys/fs/cgroup/cpu/cgroup.procs"):
    attempt(open, path, "r+")
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
if (child := os.fork()) == 0:
    os._exit(os.getpriority(os.PRIO_PROCESS, 0))
print(tried, os.getpriority(os.PRIO_PROCESS, 0), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
)


@MODES
def test_no_program_raises_its_weight_again(may_raise: None, race: Race) -> None:
    outcome = race.start("undo", UNDO).result()
    assert outcome.stdout == f"[] {LOWERED_TO} {LOWERED_TO}\n", outcome


def test_the_next_calls_of_a_slot_have_full_weight(race: Race) -> None:
    assert race.start("long", LOWERED + "print('lowered')").result().stdout == "lowered\n"
    look = "import os\nprint(os.getpriority(os.PRIO_PROCESS, 0), open('/proc/self/autogroup').read().split()[-1:])"
    expected = f"{OWN} ['0']\n" if os.path.exists("/proc/self/autogroup") else ""
    for _ in range(5):
        assert race.start("short", look).result().stdout == expected


def spin(until: str) -> str:
    """A program that computes on a given core."""
    core = min(os.sched_getaffinity(0))
    return f"import os, time\nos.sched_setaffinity(0, {{{core}}})\nwhile {until}: pass\nprint('done')"


@BESIDE_A_CELL
def test_a_program_that_waits_for_others_gets_time_for_half_of_its_limit(race: Race) -> None:
    wall_s = 2.0
    # A cell keeps its weight, so it has most of the core: in two seconds of the clock the other gets too little of it.
    rival = race.start("cell", spin("True"), session="rival")
    program = race.start("program", spin(f"time.process_time() < {wall_s / 2}"), wall_s).result()
    # On a machine that others keep busy even the hard limit may be too little.
    assert program.stdout == "done\n" or program.wall_s >= MOST * wall_s, program
    assert not rival.done()


@BESIDE_A_CELL
def test_a_loop_that_waits_for_others_ends(race: Race) -> None:
    race.start("cell", spin("True"), session="rival")
    outcome = race.start("loop", spin("True"), 1.0).result()
    assert (outcome.status, outcome.reason) == (ToolStatus.TIMEOUT, "wall_clock")
    assert outcome.wall_s > 1.0 + AFTER_S, "it was held back"


NICED = """
import os, sys
from rstar2_env.sandbox import Job, Limits, LocalSandbox
look = "os.getpriority(os.PRIO_PROCESS, 0)"
program = f"import os, time\\nfirst = {look}\\nwhile {look} == first: time.sleep(0.01)\\nprint({look} - first)"
os.nice(5)
with LocalSandbox(workers=1, deprioritize=1, waiting=1, preload=()) as sandbox:
    print(sandbox.run(Job(program, limits=Limits(wall_s=30))).stdout, end="")
"""


@pytest.mark.skipif(OWN + 5 + LEVEL > 19, reason="no nice value is as much higher")
def test_a_sandbox_of_low_priority_lowers_its_programs_by_as_much() -> None:
    done = subprocess.run([sys.executable, "-c", NICED], capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{LEVEL}\n", done.stderr
