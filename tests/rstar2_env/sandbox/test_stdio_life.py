"""How programs of the user end, with all of their processes, and which other processes they reach."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import uuid
import warnings
from contextlib import contextmanager

import pytest
from living import alive
from waiting import wait_for

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox import stdio
from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.inside.stdio import layers
from rstar2_env.sandbox.stdio import StdioLimits, check_layers, limited

pytestmark = pytest.mark.skipif(not linux.IS_LINUX, reason="the layers are mechanisms of Linux")

WAYS = pytest.mark.parametrize("without", [(), ("pid",)], ids=["namespace", "keeper"])
ESCAPES = """
import os, signal, sys, time
def escape():
    # Twice forked in a session of its own: neither a child of the program nor in its process group.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print("escaped", flush=True)
            time.sleep(600)
        os._exit(0)
    os.wait()
escape()
"""


@contextmanager
def started(code, token, without=(), **options):
    """A program under limits, which has ``token`` among the words of its command and has printed a line."""
    words = [sys.executable, "-c", code, token]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with limited(StdioLimits(**options), words, without) as (command, variables):
            process = subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            try:
                assert process.stdout.readline()
                yield process
            finally:
                for pid in alive(token):
                    os.kill(pid, signal.SIGKILL)
                process.wait()
                for stream in (process.stdin, process.stdout):
                    stream.close()


@pytest.fixture
def token():
    return f"token-{uuid.uuid4()}"


@WAYS
def test_a_process_that_left_its_session_ends_with_the_program(without, token):
    with started(ESCAPES + "sys.stdin.read()", token, without) as process:
        assert len(alive(token)) >= 3  # the keeper, the program and the process that left
        process.stdin.close()
        assert process.wait(60) == 0
        assert alive(token) == []


@WAYS
def test_a_process_that_left_its_session_ends_after_a_signal_to_the_group(without, token):
    stubborn = ESCAPES.replace("def escape", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef escape")
    with started(f"{stubborn}time.sleep(600)", token, without) as process:
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert alive(token) == []


def test_a_process_that_left_its_session_ends_with_a_killed_keeper(token):
    with started(ESCAPES + "time.sleep(600)", token) as process:
        os.kill(process.pid, signal.SIGKILL)
        wait_for(lambda: alive(token) == [])


@WAYS
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["keeper", "group"])
def test_a_program_is_told_to_end_and_may_end_by_itself(send, without, token):
    code = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("waits", flush=True)
signal.sigwait({signal.SIGTERM})
sys.exit(7)
"""
    with started(code, token, without) as process:
        send(process.pid, signal.SIGTERM)
        assert process.wait(60) == 7


@WAYS
def test_every_process_ends_with_the_process_that_started_the_program(without, token):
    code = f"""
import subprocess, sys, warnings
warnings.simplefilter("ignore")
from rstar2_env.sandbox.stdio import StdioLimits, limited
words = [sys.executable, "-c", {ESCAPES + "time.sleep(600)"!r}, sys.argv[1]]
with limited(StdioLimits(), words, {without!r}) as (command, _):
    subprocess.run(command)
"""
    with subprocess.Popen([sys.executable, "-c", code, token], stdout=subprocess.PIPE, text=True) as starter:
        try:
            assert starter.stdout.readline() == "escaped\n"
        finally:
            starter.kill()
    wait_for(lambda: alive(token) == [])


@WAYS
@pytest.mark.parametrize(
    ("end", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)]
)
def test_the_exit_code_is_that_of_the_program(end, code, without, token):
    with started(f"import os, signal, sys\nprint('runs', flush=True)\n{end}", token, without) as process:
        assert process.wait(60) == code


def test_its_own_proc_shows_itself_alone(token):
    code = (
        "import os\nprint(sorted(p for p in os.listdir('/proc') if p.isdigit()) == ['1', str(os.getpid())], flush=True)"
    )
    if "mount" not in stdio._find(())[0]["namespaces"]:
        pytest.skip("this machine does not let a program mount a /proc")
    words = [sys.executable, "-c", code, token]
    with limited(StdioLimits(), words) as (command, variables):
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


SIGNAL = """
import os, sys
try:
    os.kill(int(sys.argv[2]), 0)
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""
FIND = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
print("reached" if libc.shmget(int(sys.argv[2]), 0, 0) >= 0 else "refused")
"""


def said(code, argument, without):
    words = [sys.executable, "-c", code, "token", str(argument)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with limited(StdioLimits(isolation="best"), words, without) as (command, variables):
            done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def guarantee(name, without):
    return next(one for one in stdio._find(tuple(without))[1] if one.name == name)


OWN = ("users",) if os.geteuid() == 0 else ()
"""Without these, the program runs as the user of this process."""


@pytest.mark.parametrize(
    "without", [OWN, (*OWN, "pid"), (*OWN, "scope"), (*OWN, "pid", "scope")], ids=["all", "scope", "namespace", "none"]
)
def test_a_process_of_the_same_user_is_not_signalled_or_strict_refuses(without):
    held = guarantee("no signals to other processes", without)
    assert held.active == (said(SIGNAL, os.getpid(), without) != "reached")
    if not held.active:
        with pytest.raises(SandboxUnavailableError, match=r"no signals to other processes \(.*scope: the option"):
            check_layers(StdioLimits(), without)
    if set(without) >= {"pid", "scope"}:
        assert not held.active
        assert not guarantee("no leftover processes", without).active  # the program could kill its keeper


LIMIT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    resource.prlimit(int(sys.argv[2]), resource.RLIMIT_CPU, (3600, resource.RLIM_INFINITY))
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""
"""Sets its own limit, and one of another process."""


@pytest.mark.parametrize("missing", [(), ("pid",), ("pid", "seccomp")], ids=["namespace", "filter", "none"])
def test_no_limit_of_a_process_of_the_same_user_is_set_or_the_guarantee_says_so(missing):
    without = (*OWN, *missing)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        held = guarantee("no signals to other processes", without)
        assert held.active == (said(LIMIT, other.pid, without) != "reached")
    assert held.active == ("seccomp" not in missing)


@pytest.mark.parametrize("missing", [(), ("ipc",), ("seccomp",), ("ipc", "seccomp")])
def test_memory_of_the_same_user_is_not_found_or_the_guarantee_says_so(missing):
    without = (*OWN, *missing)
    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3), "big") + 1
    block = libc.shmget(key, 4096, 0o1666)
    assert block >= 0
    try:
        assert guarantee("no memory shared with others", without).active == (said(FIND, key, without) != "reached")
    finally:
        libc.shmctl(block, 0, None)
    assert guarantee("no memory shared with others", without).active == (missing != ("ipc", "seccomp"))


def test_an_old_landlock_is_named_with_the_version_that_holds_back_signals(monkeypatch):
    monkeypatch.setattr(layers.landlock, "version", lambda: 5)
    assert "version 6 (Linux 6.12) can" in layers.find([]).missing["scope"]


def test_the_reason_why_a_program_has_no_proc_of_its_own_is_kept(monkeypatch):
    if "pid" not in layers.find([]).plan.namespaces:
        pytest.skip("this machine does not have process namespaces")
    monkeypatch.setattr(layers.linux, "CLONE_NEWNS", 1)  # not a flag of unshare
    found = layers.find([])
    assert "Invalid argument" in found.missing["mount"]
    assert "mount" not in found.plan.namespaces


def test_layers_that_cannot_be_tried_in_time_are_an_error_of_ours(monkeypatch):
    monkeypatch.setattr(stdio, "_PROBE_S", 0.001)
    with pytest.raises(SandboxUnavailableError, match="could not be tested within"):
        check_layers(StdioLimits(), without=("a name of this test alone",))
