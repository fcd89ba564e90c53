"""The allowed calls are the calls in traces of the test suites of CPython, NumPy and SymPy, and listed exceptions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest
from places import ROOT

from rstar2_env.sandbox.inside.kernel import commands, syscalls

TOOL = ROOT / "tools" / "trace_calls.py"
RECORD: dict[str, Any] = json.loads((ROOT / "tools" / "traced_calls.json").read_text())["suites"]
MADE = {name for suite in RECORD.values() for name in suite["calls"]}
ALLOWED = syscalls.names(*syscalls.ALLOWED.values())


def test_every_suite_was_traced() -> None:
    assert set(RECORD) == {"cpython", "numpy", "sympy", "threads"}
    assert sum(RECORD["cpython"]["calls"].values()) > 1_000_000


def test_a_call_is_allowed_because_it_was_seen_or_for_a_reason_that_is_written_down() -> None:
    reasons = {*syscalls.KIN.split(), *syscalls.EXTRA}
    assert ALLOWED - MADE - set(syscalls.SPECIAL) - reasons == set()
    assert reasons & MADE == set(), "these need no reason any more"


def test_a_call_that_was_seen_is_in_one_list() -> None:
    refused = syscalls.names(syscalls.REFUSED, syscalls.LOCKS, syscalls.ENDED_FOR, syscalls.ABSENT)
    assert MADE - ALLOWED - refused - set(syscalls.SPECIAL) == set()


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        ("ioctl", commands.IOCTL),
        ("fcntl", commands.FCNTL),
        ("prctl", commands.PRCTL),
        ("arch_prctl", commands.ARCH_PRCTL),
    ],
)
def test_a_command_that_was_seen_is_allowed_or_refused_by_name(call: str, allowed: dict[int, str]) -> None:
    seen = {int(value) for suite in RECORD.values() for value in suite.get(call, {})}
    assert seen - set(allowed) - set(commands.SEEN_AND_REFUSED[call]) == set()


def test_every_clone_that_was_seen_is_allowed() -> None:
    seen = {int(value) & ~commands.CLONE_FREE for suite in RECORD.values() for value in suite.get("clone", {})}
    assert seen
    assert seen <= set(commands.CLONE)


@pytest.mark.skipif(shutil.which("strace") is None, reason="tracing needs strace")
def test_the_tool_sees_calls_and_their_commands() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(TOOL.parent)!r})
from trace_calls import trace
program = "import fcntl, os, socket; fcntl.fcntl(0, 3); os.fork() or os._exit(0); socket.socketpair()"
calls, commands = trace([sys.executable, "-c", program], 60)
print(calls["openat"] > 0, commands["fcntl"]["3"], dict(commands["clone"]), dict(commands["socketpair"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=True)
    assert done.stdout.splitlines()[-1] == "True 1 {'18874385': 1} {'524289': 1}"


def test_the_tool_compares_what_is_recorded() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "--compare"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without being listed: none" in done.stdout
