"""Checks of the rules for sandboxes, one function for each rule; ``check_sandbox`` runs them all.

Covered: the rules for every provider: statuses, limits, sessions, waiting, closing, forks, pickling, reproducible
randomness, and isolation of programs. Not covered: calls during which a provider's own processes die; the provider's
own tests must cause these.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.check import try_to_escape
from rstar2_env.sandbox.job import Capability, Job, Outcome, Sandbox
from rstar2_env.sandbox.limits import Limits
from rstar2_env.testing.harness import require
from rstar2_env.testing.hostile_code import hostile_programs, survive
from rstar2_env.testing.runner import by_name, run_checks

SLEEP = Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60))
_PATIENCE_S = 60.0


class SandboxHarness:
    """A sandbox provider under test.

    Args:
        make: Function that makes a running sandbox.
    """

    def __init__(self, make: Callable[[], Sandbox]) -> None:
        self._make, self._open = make, ExitStack()

    @cached_property
    def sandbox(self) -> Sandbox:
        """The sandbox shared by all checks that only run programs."""
        return self.fresh()

    def fresh(self) -> Sandbox:
        """Make a new sandbox for one check, which the check may close."""
        return self.adopt(self._make())

    def adopt(self, sandbox: Sandbox) -> Sandbox:
        """Register a sandbox, so that ``close`` closes it too, and return it."""
        self._open.callback(sandbox.close)
        return sandbox

    def close(self) -> None:
        """Close every sandbox that was made."""
        self._open.close()
        vars(self).pop("sandbox", None)


def protocol(harness: SandboxHarness) -> None:
    """Check that the provider has every method of ``Sandbox``, and lists each isolation layer once."""
    require(isinstance(harness.sandbox, Sandbox), f"{type(harness.sandbox).__name__} lacks a method of Sandbox")
    layers = harness.sandbox.capabilities()
    require(
        all(isinstance(layer, Capability) for layer in layers),
        f"capabilities() returned objects that are not a Capability: {layers}",
    )
    names = [layer.name for layer in layers]
    require(len(set(names)) == len(names), f"capabilities() lists a layer twice: {names}")


def statuses(harness: SandboxHarness) -> None:
    """Check the status, the exit code or signal, and the output of a program for each way in which it can end."""
    for code, status, fields in _ENDINGS:
        outcome = harness.sandbox.run(Job(code))
        _expect(code, outcome, status, attempts=1, truncated=False, session=None, **fields)
    outcome = harness.sandbox.run(Job("x = 1\n\n1 / 0"))
    require("line 3" in (outcome.traceback or ""), f"a traceback lacks the program's own line: {outcome.traceback!r}")
    outcome = harness.sandbox.run(Job("print('ran')\nx = = 1"))
    _expect("a syntax error on line 2", outcome, ToolStatus.SYNTAX_ERROR, stdout="", error_type="SyntaxError")


def inputs(harness: SandboxHarness) -> None:
    """Check that a program receives its standard input and files unchanged, and that its output is unchanged."""
    text = "äöü €\U0001f600 \ud800\n"
    data = bytes(range(256))
    code = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())\n"
    code += "print(open('a/b.bin', 'rb').read() == bytes(range(256)))"
    outcome = harness.sandbox.run(Job(code, stdin=text, files={"a/b.bin": data}))
    _expect(code, outcome, ToolStatus.OK)
    require(
        outcome.stdout.startswith("äöü €\U0001f600 "),
        f"a program that copies its standard input printed {outcome.stdout!r}",
    )
    require(outcome.stdout.endswith("True\n"), f"a file does not contain the bytes of Job.files: {outcome.stdout!r}")
    outcome = harness.sandbox.run(Job("import sys\nsys.stdout.buffer.write(b'a\\xffb')\nsys.stderr.write('warned')"))
    _expect("bytes that are not text", outcome, ToolStatus.OK, stdout="a�b", stderr="warned")
    outcome = harness.sandbox.run(Job("input()"))
    _expect("input() without input", outcome, ToolStatus.EXCEPTION, error_type="EOFError")


def limits(harness: SandboxHarness) -> None:
    """Check the limits of wall-clock time, CPU time, memory, processes, output and files, and their statuses."""
    run = harness.sandbox.run
    outcome = run(Job("print('begun', flush=True)\nwhile True: pass", limits=Limits(wall_s=0.5)))
    _expect("an endless loop", outcome, ToolStatus.TIMEOUT, stdout="begun\n")
    require(0.4 < outcome.wall_s < 10, f"a wall-clock limit of 0.5 s ended a program after {outcome.wall_s:.2f} s")
    _expect("a sleep past the limit", run(replace(SLEEP, limits=Limits(wall_s=0.5))), ToolStatus.TIMEOUT)
    outcome = run(Job("while True: pass", limits=Limits(wall_s=30, cpu_s=1)))
    _expect("an endless loop with a limit of 1 s of CPU time", outcome, ToolStatus.TIMEOUT)
    require(outcome.wall_s < 25, f"a limit of 1 s of CPU time ended a program after {outcome.wall_s:.2f} s")
    outcome = run(Job("x = bytearray(1 << 30)\nprint(len(x))", limits=Limits(memory_mb=256)))
    _expect("1 GiB of memory with a limit of 256 MiB", outcome, ToolStatus.MEMORY, stdout="")
    outcome = run(Job("while True: print('x' * 1000)", limits=Limits(output_bytes=10_000)))
    _expect("output without end", outcome, ToolStatus.OUTPUT_LIMIT, truncated=True)
    require(
        0 < len(outcome.stdout) <= 10_000,
        f"with an output limit of 10,000 bytes, {len(outcome.stdout)} characters were returned",
    )
    forks = "import os, time\nfor n in range(200):\n    if os.fork() == 0:\n        time.sleep(5)\n        os._exit(0)"
    outcome = run(Job(forks, limits=Limits(processes=16)))
    _expect("200 processes with a limit of 16", outcome, ToolStatus.EXCEPTION)
    outcome = run(Job("open('x', 'wb').write(bytes(8 << 20))", limits=Limits(file_mb=4)))
    _expect("8 MiB of files with a limit of 4 MiB", outcome, ToolStatus.EXCEPTION)
    _expect("a short program after all these", run(Job("print(1)")), ToolStatus.OK, stdout="1\n")


def clock(harness: SandboxHarness) -> None:
    """Check that wall-clock time starts with the program: waiting for a free worker does not count."""
    jobs = [Job("import time\ntime.sleep(0.3)", limits=Limits(wall_s=5.0))] * 40
    for outcome in harness.sandbox.run_many(jobs):
        _expect("a program that slept 0.3 s", outcome, ToolStatus.EMPTY)
        require(
            outcome.wall_s >= 0.29, f"a program that slept 0.3 s took {outcome.wall_s:.3f} s according to its outcome"
        )


def fresh_processes(harness: SandboxHarness) -> None:
    """Check that no call finds traces of an earlier call: no files, no new builtins, no changed modules."""
    spoil = "import builtins, json, math\nmath.pi, builtins.left, json.dumps = 3, 1, None\nopen('left', 'w').write('x')"
    look = "import builtins, json, math, os\n"
    look += "print(math.pi > 3.1, 'left' in vars(builtins), json.dumps(1), os.listdir('.'))"
    for _ in range(4):
        _expect(spoil, harness.sandbox.run(Job(spoil)), ToolStatus.EMPTY, ToolStatus.OK)
        _expect(look, harness.sandbox.run(Job(look)), ToolStatus.OK, stdout="True False 1 []\n")


def replay(harness: SandboxHarness) -> None:
    """Check that only equal seeds give equal random draws, and that the hash of a text is the same for all seeds."""
    draw = "import random\nprint(random.random(), hash('a'), sorted({'a', 'b', 'c'}, key=hash))"
    first, again, other = (harness.sandbox.run(Job(draw, seed=seed)).stdout for seed in (1, 1, 2))
    require(first == again, f"one seed gave different random numbers: {first!r} and {again!r}")
    require(first.partition(" ")[0] != other.partition(" ")[0], f"two seeds gave the same random numbers: {first!r}")
    require(first.partition(" ")[2] == other.partition(" ")[2], f"hashes differ between calls: {first!r}, {other!r}")
    late = "def f():\n    import random\n    return random.random()\nprint(f())"
    require(
        harness.sandbox.run(Job(late, seed=1)).stdout.split() == first.split()[:1],
        "a draw depends on where random was imported",
    )


def many_at_once(harness: SandboxHarness) -> None:
    """Check that outcomes are in the order of the jobs, and that each thread and event loop gets its own outcomes."""
    sandbox = harness.sandbox
    outcomes = sandbox.run_many([Job(str(number)) for number in range(30)])
    _values("run_many", outcomes, range(30))
    require(sandbox.run_many([]) == [], "run_many without jobs returned outcomes")
    with ThreadPoolExecutor(8) as pool:
        _values("threads", list(pool.map(lambda number: sandbox.run(Job(str(number))), range(30))), range(30))

        async def gather(start: int) -> list[Outcome]:
            return list(await asyncio.gather(*(sandbox.arun(Job(str(start + n))) for n in range(5))))

        for start, found in zip((0, 10, 20), pool.map(lambda n: asyncio.run(gather(n)), (0, 10, 20)), strict=True):
            _values("arun", found, range(start, start + 5))


def event_loop(harness: SandboxHarness) -> None:
    """Check that ``arun`` does not block the event loop, and that cancelling it ends its program and no other."""

    async def turns() -> int:
        call = asyncio.create_task(harness.sandbox.arun(Job("import time\ntime.sleep(0.5)")))
        count = 0
        while not call.done():
            count += 1
            await asyncio.sleep(0.01)
        return count

    require(asyncio.run(turns()) > 3, "the event loop was blocked while a program ran")

    async def cancel() -> Outcome:
        # More calls than can run at once: if a cancelled one continued, the last call would wait for it.
        calls = [asyncio.create_task(harness.sandbox.arun(SLEEP)) for _ in range(16)]
        await asyncio.sleep(0.3)
        for call in calls:
            call.cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        require(all(isinstance(end, asyncio.CancelledError) for end in ends), "a cancelled call returned an outcome")
        return await harness.sandbox.arun(Job("print(1)"))

    begun = time.monotonic()
    _expect("a call after 16 cancelled calls", asyncio.run(cancel()), ToolStatus.OK, stdout="1\n")
    require(time.monotonic() - begun < 30, "programs that slept 60 s continued after their calls were cancelled")


def mistakes(harness: SandboxHarness) -> None:
    """Check that a job that cannot be run raises ``ConfigurationError`` in its caller, and affects no other call."""
    wrong: dict[str, Any] = {
        "a string for a job": "print(1)",
        "a file outside of the working folder": Job("1", files={"../x": b""}),
        "a file with an absolute path": Job("1", files={"/tmp/x": b""}),
        "files beyond Limits.file_mb": Job("1", limits=Limits(file_mb=1), files={"x": bytes(2 << 20)}),
    }
    for what, job in wrong.items():
        for how in (harness.sandbox.run, lambda job: harness.sandbox.run_many([Job("1"), job])):
            try:
                how(job)
            except ConfigurationError:
                continue
            except Exception as error:
                raise AssertionError(f"{what} raises {type(error).__name__}: {error}") from error
            raise AssertionError(f"{what} does not raise ConfigurationError")
    _expect("a call after the invalid jobs", harness.sandbox.run(Job("1")), ToolStatus.OK, value="1")


def sessions(harness: SandboxHarness) -> None:
    """Check that a session keeps its own state between cells, and that every outcome reports the session's state."""
    run = harness.sandbox.run
    begun = Job("import random\nx = 1\nrandom.random()", session="check a", seed=1)
    _expect("a first cell", run(begun), ToolStatus.OK, session="new", session_note=None, exit_code=None)
    _expect("a second cell", run(Job("x", session="check a", seed=1)), ToolStatus.OK, value="1", session="kept")
    other = run(Job("x", session="check b"))
    _expect("another session", other, ToolStatus.EXCEPTION, error_type="NameError", session="new")
    broken = run(Job("x = 2\n1 / 0", session="check a", seed=1))
    _expect("a cell that raises", broken, ToolStatus.EXCEPTION, error_type="ZeroDivisionError", session="kept")
    slow = Job("x = 3\nwhile True: pass", session="check a", seed=1, limits=Limits(wall_s=0.5))
    outcome = run(slow)
    _expect("a cell without end", outcome, ToolStatus.TIMEOUT, session="interrupted")
    require(outcome.session_note, "a cell that was interrupted has no session_note")
    _expect("a cell after the interrupt", run(Job("x", session="check a")), ToolStatus.OK, value="3", session="kept")
    outcome = run(Job("import sys\nsys.exit(3)", session="check a"))
    _expect("a cell that exits", outcome, ToolStatus.EXCEPTION, session="ended", exit_code=3)
    require(outcome.session_note, "a cell that ended its session has no session_note")
    outcome = run(Job("x", session="check a"))
    _expect("a cell after the exit", outcome, ToolStatus.EXCEPTION, error_type="NameError", session="new")
    run(Job("x = 4", session="check a"))
    harness.sandbox.end_session("check a")
    outcome = run(Job("x", session="check a"))
    _expect("a cell after end_session", outcome, ToolStatus.EXCEPTION, error_type="NameError", session="new")
    for name in ("check a", "check b", "a name that no session has"):
        harness.sandbox.end_session(name)


def isolation(harness: SandboxHarness) -> None:
    """Check that programs cannot escape from the sandbox: every attempt of ``rstar2 sandbox check`` fails."""
    if broken := [f"{trial.layer} ({trial.detail})" for trial in try_to_escape(harness.sandbox) if not trial.held]:
        raise AssertionError(f"programs escaped from the sandbox: {'; '.join(broken)}")


def survival(harness: SandboxHarness) -> None:
    """Check that hostile programs end with an acceptable status, and that the next call is unaffected."""
    for program in hostile_programs():
        survive(harness.sandbox, program)


def closing(harness: SandboxHarness) -> None:
    """Check that ``close`` ends running calls as ``unavailable``, can be repeated, and makes later calls raise."""
    with harness.fresh() as sandbox, ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(sandbox.run, SLEEP) for _ in range(2)]
        threading.Timer(0.5, sandbox.close).start()
        for call in calls:
            _expect("a call in flight", call.result(_PATIENCE_S), ToolStatus.UNAVAILABLE)
    sandbox.close()
    sandbox.end_session("any")

    async def arun() -> Outcome:
        return await sandbox.arun(Job("1"))

    for use in (lambda: sandbox.run(Job("1")), lambda: sandbox.run_many([Job("1")]), lambda: asyncio.run(arun())):
        _must_refuse(use, "after close")


def pickling(harness: SandboxHarness) -> None:
    """Check that a pickled copy runs programs, and that closing the copy does not affect the original."""
    with harness.adopt(pickle.loads(pickle.dumps(harness.sandbox))) as copy:
        require(copy is not harness.sandbox, "the unpickled copy and the original are one object")
        _expect("a call in the copy", copy.run(Job("1")), ToolStatus.OK, value="1")
    _expect("a call in the original after the copy", harness.sandbox.run(Job("1")), ToolStatus.OK, value="1")


def forks(harness: SandboxHarness) -> None:
    """Check that, after a fork, the parent still runs jobs, and the child runs them or reports that it cannot."""
    if not hasattr(os, "fork"):
        return
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if harness.sandbox.run(Job("6 * 7")).value == "42" else 2
        except SandboxUnavailableError:
            code = 0
        finally:
            harness.sandbox.close()
            os._exit(code)
    deadline = time.monotonic() + _PATIENCE_S
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, 9)
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(ended[1])
    how = {1: "raised another error than SandboxUnavailableError", 2: "gave a wrong outcome", -9: "hung"}
    require(code == 0, f"in a forked process it {how.get(code, f'ended with {code}')}")
    _expect("a call after the fork", harness.sandbox.run(Job("1")), ToolStatus.OK, value="1")


SANDBOX_CHECKS = by_name(
    protocol,
    statuses,
    inputs,
    limits,
    clock,
    fresh_processes,
    replay,
    many_at_once,
    event_loop,
    mistakes,
    sessions,
    isolation,
    survival,
    closing,
    pickling,
    forks,
)
"""Checks by name; the first line of a check's docstring describes the check."""

_ENDINGS: tuple[tuple[str, ToolStatus, dict[str, Any]], ...] = (
    ("print(6 * 7)", ToolStatus.OK, {"stdout": "42\n", "stderr": "", "value": None, "exit_code": 0, "signal": None}),
    ("6 * 7", ToolStatus.OK, {"stdout": "", "value": "42", "exit_code": 0}),
    ("x = 1", ToolStatus.EMPTY, {"stdout": "", "value": None, "exit_code": 0, "error_type": None}),
    ("", ToolStatus.EMPTY, {"exit_code": 0}),
    ("import sys\nsys.exit()", ToolStatus.EMPTY, {"exit_code": 0}),
    ("x = = 1", ToolStatus.SYNTAX_ERROR, {"error_type": "SyntaxError"}),
    ("1 / 0", ToolStatus.EXCEPTION, {"error_type": "ZeroDivisionError", "error_message": "division by zero"}),
    ("import sys\nsys.exit(3)", ToolStatus.EXCEPTION, {"exit_code": 3, "signal": None}),
    ("import os\nos._exit(7)", ToolStatus.EXCEPTION, {"exit_code": 7}),
    ("print('ok')\nimport os\nos._exit(7)", ToolStatus.EXCEPTION, {"exit_code": 7}),
    ("import os\nos.kill(os.getpid(), 9)", ToolStatus.EXCEPTION, {"signal": "SIGKILL", "exit_code": None}),
    ("import os\nos.abort()", ToolStatus.EXCEPTION, {"signal": "SIGABRT", "exit_code": None}),
    ("raise MemoryError", ToolStatus.MEMORY, {"error_type": "MemoryError"}),
)
"""Programs that end in different ways, each with its expected status and expected fields of the outcome."""


def _expect(what: str, outcome: Outcome, *allowed: ToolStatus, **fields: Any) -> None:
    wanted = " or ".join(repr(status.value) for status in allowed)
    require(
        outcome.status in allowed,
        f"{what!r} got the status {outcome.status.value!r} instead of {wanted}: {outcome.error_type}: "
        f"{outcome.error_message}",
    )
    for name, value in fields.items():
        found = getattr(outcome, name)
        require(found == value, f"{what!r} has {name}={found!r:.200}, not {value!r}")


def _values(how: str, outcomes: list[Outcome], numbers: range) -> None:
    found = [outcome.value for outcome in outcomes]
    expected = [str(number) for number in numbers]
    require(found == expected, f"{how} returned the values {found}, not {expected}")


def _must_refuse(use: Callable[[], object], when: str) -> None:
    try:
        use()
    except SandboxUnavailableError:
        return
    except Exception as error:
        raise AssertionError(f"a call {when} raises {type(error).__name__}: {error}") from error
    raise AssertionError(f"a call {when} must raise SandboxUnavailableError")


def check_sandbox(make: Callable[[], Sandbox], *, skip: Collection[str] = ()) -> list[str]:
    """Check a provider of sandboxes against the contract of docs/sandbox.md. Needs no pytest.

    Args:
        make: Function that makes a running sandbox: ``lambda: make_sandbox("mine", workers=2)``. It is called several
            times; its sandboxes are closed at the end.
        skip: Names of checks to leave out (``SANDBOX_CHECKS``): ``"sessions"`` for a provider without
            sessions, ``"isolation"`` and ``"survival"`` for a provider without isolation.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The provider breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check.
    """
    harness = SandboxHarness(make)
    try:
        return run_checks("The sandbox", SANDBOX_CHECKS, harness, skip=skip, strict=False)
    finally:
        harness.close()
