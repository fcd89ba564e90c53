"""A program of the user under the layers of the sandbox: each test runs one that tries what a layer forbids."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.sandbox import base
from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.inside.stdio import layers
from rstar2_env.sandbox.stdio import StdioLimits, check_layers, limited

pytestmark = pytest.mark.skipif(not linux.IS_LINUX, reason="the layers are mechanisms of Linux")

TRY = """
import ctypes, json, os, socket, sys
def tried(action):
    try:
        return action() or "done"
    except OSError as error:
        return type(error).__name__
"""


def run(code, *arguments, without=(), **options):
    """Run a program under limits; returns what it printed, read as JSON."""
    words = [sys.executable, "-c", TRY + code, *map(str, arguments)]
    with limited(StdioLimits(**options), words, without) as (command, variables):
        done = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


CONNECT = """
def send():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(sys.argv[2])))
print(json.dumps([tried(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).close()), tried(send)]))
"""


@pytest.fixture
def ports():
    """A TCP and a UDP port of this machine on which somebody listens."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        yield tcp.getsockname()[1], udp.getsockname()[1]


@pytest.mark.parametrize(
    "alone", [(), ("net", "landlock"), ("seccomp", "landlock")], ids=["all", "filter", "namespace"]
)
def test_there_is_no_network(alone, ports):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert "done" not in run(CONNECT, *ports, without=alone, isolation="best")


def test_the_network_is_there_if_the_user_allows_it(ports):
    assert run(CONNECT, *ports, network=True) == ["done", "done"]


@pytest.mark.parametrize(("network", "reached"), [(False, "PermissionError"), (True, "done")])
def test_a_socket_with_a_path_belongs_to_the_network(network, reached, tmp_path):
    path = tmp_path / "s"
    code = "print(json.dumps(tried(lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[1]))))"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert run(code, path, network=network, write=(str(path),)) == reached


def test_rings_which_make_sockets_without_a_call_do_not_exist():
    code = """
call = ctypes.CDLL(None, use_errno=True).syscall
print(json.dumps([call(425, 1, ctypes.create_string_buffer(256)), ctypes.get_errno()]))
"""
    assert run(code) == [-1, 38]


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_RAW"])
def test_a_pair_of_sockets_that_could_send_to_a_path_is_refused(kind):
    code = f"print(json.dumps(tried(lambda: socket.socketpair(socket.AF_UNIX, socket.{kind})[0].close())))"
    assert run(code) == "PermissionError"
    assert run(code, network=True) == "done"


def test_connected_pairs_of_sockets_stay_for_event_loops():
    code = "import asyncio\nprint(json.dumps(asyncio.run(asyncio.sleep(0, 'slept'))))"
    assert run(code) == "slept"


WRITE = """
def write(folder):
    with open(os.path.join(folder, "mark"), "w") as file:
        file.write("x")
print(json.dumps([tried(lambda: write(folder)) for folder in (os.environ["TMPDIR"], *sys.argv[1:])]))
"""


def test_it_writes_only_into_its_own_folder_and_those_that_the_user_names(tmp_path):
    named, other = tmp_path / "named", tmp_path / "other"
    for folder in (named, other):
        folder.mkdir()
        folder.chmod(0o777)
    assert run(WRITE, named, other, write=(str(named),)) == ["done", "done", "PermissionError"]
    assert (named / "mark").read_text() == "x"
    assert not (other / "mark").exists()


def test_it_neither_empties_nor_writes_other_files_and_overwrites_those_that_the_user_names(tmp_path):
    named, other = tmp_path / "named", tmp_path / "other"
    for file in (named, other):
        file.write_text("before")
        file.chmod(0o666)
    code = """
def write(path):
    with open(path, "w") as file:
        file.write("after")
named, other = sys.argv[1:]
print(json.dumps([tried(lambda: write(named)), tried(lambda: write(other)), tried(lambda: os.truncate(other, 0))]))
"""
    assert run(code, named, other, write=(str(named),)) == ["done", "PermissionError", "PermissionError"]
    assert (named.read_text(), other.read_text()) == ("after", "before")


def test_a_landlock_that_cannot_forbid_truncation_is_not_enough(monkeypatch):
    monkeypatch.setattr(layers.landlock, "version", lambda: 2)
    found = layers.find([])
    assert "version 2 of Landlock cannot prevent programs from emptying files" in found.missing["landlock"]
    held = {one["name"]: one["active"] for one in found.record()["guarantees"]}
    assert not held["no writing outside of its folders"]


def test_it_reads_the_users_files(tmp_path):
    (tmp_path / "data").write_text("mine")
    assert run("print(json.dumps(open(sys.argv[1]).read()))", tmp_path / "data") == "mine"


def test_its_own_folder_ends_with_it():
    folder = run("print(json.dumps(os.environ['TMPDIR']))")
    assert not Path(folder).exists()


def test_it_has_few_processes():
    code = """
waits, held = os.pipe()
pids = []
try:
    for _ in range(40):
        pid = os.fork()
        if pid == 0:
            os.close(held)
            os.read(waits, 1)
            os._exit(0)
        pids.append(pid)
except BlockingIOError:
    pass
os.close(held)
for pid in pids:
    os.waitpid(pid, 0)
print(json.dumps(len(pids)))
"""
    assert run(code, processes=20) == 19
    assert run(code, processes=200) == 40


def test_it_cannot_reach_the_process_that_started_it():
    code = """
parent = int(sys.argv[1])
print(json.dumps([tried(lambda: os.kill(parent, 0)), tried(lambda: open(f"/proc/{parent}/environ").read())]))
"""
    found = run(code, os.getpid())
    assert set(found) <= {"PermissionError", "ProcessLookupError", "FileNotFoundError"}
    assert run(code, os.getpid(), without=("pid",)) == ["PermissionError"] * 2


def test_it_gains_no_privileges():
    code = """
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(json.dumps([int(status["CapEff"], 16), int(status["NoNewPrivs"]), tried(lambda: os.setuid(0))]))
"""
    capabilities, no_new_privileges, root = run(code)
    assert capabilities == (1 << linux.CAP_DAC_OVERRIDE if os.geteuid() == 0 else 0)
    assert no_new_privileges == 1
    assert root != "done"


def test_strict_refuses_what_the_machine_does_not_provide():
    with pytest.raises(SandboxUnavailableError, match=r"no writing outside of its folders \(landlock: the option"):
        check_layers(StdioLimits(), without=("landlock",))
    with pytest.raises(SandboxUnavailableError, match=r"no network \(seccomp: the option `without`"):
        check_layers(StdioLimits(), without=("seccomp",))
    check_layers(StdioLimits(network=True), without=("seccomp",))


def test_best_runs_with_the_rest_and_warns_once(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_warned", set())
    tmp_path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="without these layers of isolation: no writing outside of its folders"):
        assert run(WRITE, tmp_path, without=("landlock",), isolation="best")[0] == "done"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_layers(StdioLimits(isolation="best"), without=("landlock",))


def test_none_keeps_only_the_limits_on_memory_and_files(tmp_path, ports):
    assert run(WRITE, tmp_path, isolation="none") == ["done", "done"]
    assert run(CONNECT, *ports, isolation="none") == ["done", "done"]
    allocate = "try:\n    bytearray(1 << 30)\nexcept MemoryError:\n    print('1')"
    assert run(allocate, isolation="none", memory_mb=200) == 1


def test_a_folder_to_write_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"`write` contains the folder .*absent.*does not exist"):
        StdioLimits(write=(str(tmp_path / "absent"),))
