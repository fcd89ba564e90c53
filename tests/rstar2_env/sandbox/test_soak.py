"""Thousands of calls do not increase memory, descriptors or files."""

from __future__ import annotations

import os
from typing import Any

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox

MIX = [
    Job("print(1)"),
    Job("import sympy\nx = sympy.symbols('x')\nsympy.expand((x + 1) ** 3)"),
    Job("1 / 0"),
    Job("x = = 1"),
    Job("import sys\nsys.exit(3)"),
    Job("open('x', 'w').write('x' * 100_000)"),
    Job("import os\nif os.fork() == 0:\n    import time\n    time.sleep(60)\nprint('left')"),
    Job(
        "import threading\nall = [threading.Thread(target=abs, args=(1,)) for _ in range(4)]\n[t.start() for t in all]"
    ),
    Job("print('x' * 100_000)", limits=Limits(output_bytes=1000)),
]
EXPECTED = ["ok", "ok", "exception", "syntax_error", "exception", "ok", "ok", "ok", "output_limit"]


def resident(pid: int) -> int:
    """Resident memory of a process in MiB."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def soak(calls: int, look: Any) -> None:
    with LocalSandbox() as sandbox:
        sandbox.run_many(MIX * 5)
        pids = look.pids(sandbox)
        before, memory = look.settled(sandbox), [resident(pid) for pid in pids]
        left = set(os.listdir("/tmp"))
        for _ in range(calls // (len(MIX) * 10)):
            outcomes = sandbox.run_many(MIX * 10)
            assert [outcome.status.value for outcome in outcomes] == EXPECTED * 10
            assert all(outcome.attempts == 1 for outcome in outcomes)
        assert look.settled(sandbox) == before
        assert look.pids(sandbox) == pids
        for pid, start in zip(pids, memory, strict=True):
            assert resident(pid) < start + 16
        assert {name for name in set(os.listdir("/tmp")) - left if "call-" in name} == set()
        assert sandbox.run(Job("print(1)")).status is ToolStatus.OK


@pytest.mark.deadlines
def test_hundreds_of_calls_leave_nothing_behind(look: Any) -> None:
    soak(270, look)


@pytest.mark.proof
def test_five_thousand_calls_leave_nothing_behind(look: Any) -> None:
    soak(5000, look)
