"""The users of programs, if root is that of a container and can change users and create user namespaces."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rstar2_env.sandbox.inside.kernel import users
from rstar2_env.sandbox.inside.kernel.attempt import attempt
from rstar2_env.sandbox.inside.kernel.plan import IsolationPlan
from rstar2_env.sandbox.inside.kernel.users import USERS_EACH, enter_user_namespace, free_users, try_process_limit

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become the root of a container")

CAPABILITIES = {
    "chown": 0,
    "dac_override": 1,
    "fowner": 3,
    "kill": 5,
    "setgid": 6,
    "setuid": 7,
    "setpcap": 8,
    "setfcap": 31,
}
CONTAINER = tuple(CAPABILITIES)
"""What is left to root in a container, as far as it matters here."""
STORM = """
import os, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        made += 1
except OSError:
    pass
if made >= 32:
    time.sleep(60)
print("made", made)
os._exit(0)
"""
PROGRAM = """
import json, os, sys
from rstar2_env.sandbox.inside.kernel import linux
kept, without, code = json.loads(sys.argv[1])
if kept is not None:
    for capability in range(41):
        if capability not in kept:
            linux.prctl(24, capability)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1], json.dumps([None, without, code])])
from rstar2_env.sandbox import Job, Limits, LocalSandbox
with LocalSandbox(workers=1, waiting=1, preload=(), without=without) as sandbox:
    outcome = sandbox.run(Job(code, limits=Limits(wall_s=120, memory_mb=512, processes=32)))
    layers = {layer.name: layer.detail for layer in sandbox.capabilities() if layer.active}
print(json.dumps([layers, outcome.status.value, outcome.stdout, outcome.error_message]))
"""


def as_container_root(capabilities: tuple[str, ...], code: str, *without: str) -> tuple[dict[str, str], str, str, str]:
    """Run a program in a sandbox of a root with these capabilities; return layers, status, output and message."""
    given = json.dumps([[CAPABILITIES[name] for name in capabilities], ["cgroups", *without], code])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given], capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stderr
    layers, status, output, message = json.loads(done.stdout)
    return layers, status, output, message


def test_a_fork_storm_of_a_containers_root_meets_the_limit_of_a_separate_user() -> None:
    layers, status, output, _ = as_container_root(CONTAINER, STORM)
    assert "user namespace" in layers, "the machine gave more than a container does"
    assert "own users" in layers
    assert layers["bounded processes"] == "by rlimit of a separate user"
    assert (status, output) == ("ok", "made 31\n")


@pytest.mark.parametrize(
    ("capabilities", "without"),
    [(CONTAINER, ("users",)), (("setfcap",), ()), ((), ())],
    ids=["switched off", "no right to change users", "no rights at all"],
)
def test_where_the_kernel_does_not_count_the_watch_does_and_the_promise_says_so(
    capabilities: tuple[str, ...], without: tuple[str, ...]
) -> None:
    layers, status, _, message = as_container_root(capabilities, STORM, *without)
    assert layers["bounded processes"].startswith("by a watch alone, which polls")
    assert status == "exception"
    assert "more processes and threads than its limit" in message


def test_the_machines_root_is_not_counted_in_any_namespace() -> None:
    assert "does not limit the number of processes" in str(attempt(lambda: try_process_limit(IsolationPlan(user=True))))


@pytest.mark.parametrize("user", [False, True])
def test_a_separate_user_is_counted(user: bool) -> None:
    assert attempt(lambda: try_process_limit(IsolationPlan(user=user, users_from=free_users()))) is None


@pytest.mark.parametrize(("count", "blocks"), [(65536, 64), (16384, 16), (8192, 8)])
def test_wardens_of_a_container_with_few_users_share_none(
    monkeypatch: pytest.MonkeyPatch, count: int, blocks: int
) -> None:
    monkeypatch.setattr(users, "open", lambda path: io.StringIO(f"0 100000 {count}\n"), raising=False)
    first = []
    for process in range(1000, 1000 + blocks):
        monkeypatch.setattr(users.os, "getpid", lambda process=process: process)
        first.append(free_users())
    taken = [user for start in first for user in range(start, start + USERS_EACH)]
    assert len(set(taken)) == len(taken)
    assert count // 2 <= min(taken) <= max(taken) < count


def test_a_container_with_too_few_users_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "open", lambda path: io.StringIO("0 100000 8191\n"), raising=False)
    with pytest.raises(OSError, match="too few users"):
        free_users()


def test_separate_users_are_known_in_the_user_namespace() -> None:
    first = free_users()

    def enter() -> None:
        enter_user_namespace(first)
        assert os.getuid() == 0
        last = first + USERS_EACH - 1
        os.setresuid(last, last, last)

    assert attempt(enter) is None


def test_a_user_without_the_right_to_others_is_told() -> None:
    def enter() -> None:
        os.setresuid(65534, 65534, 65534)
        enter_user_namespace(free_users())

    assert "could not be mapped" in str(attempt(enter))


def test_without_a_mount_namespace_no_file_of_the_user_changes_its_mode(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    code = f"import os, shutil\nprint(os.path.exists({str(secret)!r}))\nos.chmod({str(secret)!r}, 0o777)"
    layers, status, output, _ = as_container_root(("setfcap",), code, "mount")
    assert "user namespace" in layers
    assert "mount namespace" not in layers
    assert (status, output) == ("exception", "True\n"), "the file is in sight, and its mode cannot be changed"
    assert secret.stat().st_mode & 0o777 == 0o600
