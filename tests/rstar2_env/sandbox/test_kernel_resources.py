"""Resources of the kernel that programs share: locks, policies, sessions, signals, pipes, output and orphans.

Each test runs in every local mode that the machine allows: with all layers, without control groups, without a mount
namespace, and without any namespace. ``test_ordinary_user.py`` repeats them as an ordinary user.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from waiting import wait_for

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome

pytestmark = pytest.mark.deadlines

MODES: dict[str, tuple[str, ...]] = {
    "all-layers": (),
    "no-groups": ("cgroups",),
    "no-mount": ("mount", "cgroups"),
    "no-namespaces": ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "cgroups"),
}


TIMES = 5


@pytest.fixture(scope="module", params=MODES)
def sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """A sandbox in each mode."""
    with LocalSandbox(workers=2, waiting=2, preload=(), without=MODES[request.param]) as made:
        yield made


def run(sandbox: LocalSandbox, code: str, **fields: Any) -> Outcome:
    """Run a program with a limit that no busy machine reaches."""
    return sandbox.run(Job(dedent(code), **{"limits": Limits(wall_s=60.0), **fields}))


def test_file_locks_are_refused_in_every_form(sandbox: LocalSandbox) -> None:
    code = """
    import errno, fcntl, os, struct
    found = []
    for path, flags in (("own", os.O_RDWR | os.O_CREAT), (os.__file__, os.O_RDONLY), ("/dev/null", os.O_RDONLY)):
        descriptor = os.open(path, flags)
        for command in (6, 7, 37, 38):  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
            for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
                try:
                    found.append(fcntl.fcntl(descriptor, command, struct.pack("hhqqi", kind, 0, 0, 0, 0)))
                except OSError as error:
                    found.append(errno.errorcode[error.errno])
        try:
            found.append(fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except OSError as error:
            found.append(errno.errorcode[error.errno])
    sorted(set(map(str, found))), len(found)
    """
    assert run(sandbox, code).value == "(['ENOLCK'], 27)"


def test_a_database_in_a_file_is_kept_apart_from_other_processes_without_kernel_locks(sandbox: LocalSandbox) -> None:
    code = """
    import os, sqlite3
    first = sqlite3.connect("x.db", isolation_level=None)
    first.execute("create table t (n)")
    first.execute("begin exclusive")
    first.execute("insert into t values (6)")
    if os.fork() == 0:
        other = sqlite3.connect("x.db", timeout=0)
        try:
            other.execute("insert into t values (7)")
            os._exit(1)
        except sqlite3.OperationalError as error:
            os._exit(2 if "locked" in str(error) else 3)
    status = os.waitstatus_to_exitcode(os.wait()[1])
    first.execute("commit")
    status, sqlite3.connect("x.db").execute("select n from t").fetchall()
    """
    assert run(sandbox, code).value == "(2, [(6,)])"


def test_no_process_starts_a_session_of_its_own(sandbox: LocalSandbox) -> None:
    code = """
    import os, subprocess, sys
    seen = []
    if os.fork() == 0:
        try:
            os.setsid()
            os._exit(0)
        except PermissionError:
            os._exit(os.getsid(0) == os.getsid(os.getppid()) and 7)
    seen.append(os.waitstatus_to_exitcode(os.wait()[1]))
    try:
        subprocess.run(["/bin/true"], start_new_session=True)
    except PermissionError as error:
        seen.append(error.errno)
    seen
    """
    assert run(sandbox, code).value == "[7, 1]"


def test_queued_signals_are_few(sandbox: LocalSandbox) -> None:
    code = """
    import resource
    resource.getrlimit(resource.RLIMIT_SIGPENDING)
    """
    assert run(sandbox, code).value == "(256, 256)"


def test_a_program_with_more_pipes_than_its_share_of_a_shared_user_is_ended(sandbox: LocalSandbox) -> None:
    shares_its_user = not next(layer.active for layer in sandbox.capabilities() if layer.name == "own users")
    code = """
    import os, time
    for _ in range(3):
        if os.fork() == 0:
            kept = [os.pipe() for _ in range(60)]
            time.sleep(600)
    time.sleep(1)
    print("kept")
    os._exit(0)
    """
    outcome = run(sandbox, code)
    expected = (ToolStatus.EXCEPTION, "pipes") if shares_its_user else (ToolStatus.OK, None)
    assert (outcome.status, outcome.reason) == expected, outcome


def test_a_program_with_as_many_pipes_as_a_pool_of_processes_needs_goes_on(sandbox: LocalSandbox) -> None:
    code = """
    import os, time
    kept = [os.pipe() for _ in range(100)]
    time.sleep(0.3)  # several checks
    len(kept)
    """
    assert run(sandbox, code).value == "100"


def test_output_that_something_outside_holds_open_does_not_hold_the_worker(sandbox: LocalSandbox, look: Any) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to open the pipe of a program")
    code = """
    import ctypes, os, time
    print("said", flush=True)
    ctypes.CDLL(None).prctl(15, b"held")
    while not os.path.exists("go"):
        time.sleep(0.01)
    """
    started = time.monotonic()
    for _ in range(TIMES):
        with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as held:
            call = pool.submit(run, sandbox, code)
            wait_for(lambda: named("held", sandbox, look))
            (pid,) = named("held", sandbox, look)
            held.callback(os.close, os.open(f"/proc/{pid}/fd/1", os.O_WRONLY))
            Path(f"/proc/{pid}/cwd/go").touch()
            assert call.result().stdout == "said\n"
    # If each waited until its pipe is given up, they would take two seconds each.
    assert time.monotonic() - started < TIMES * 1.5


def named(name: str, sandbox: LocalSandbox, look: Any) -> list[int]:
    """Processes of a sandbox with a name that they have set."""
    found = []
    for pid in look.descendants(look.pids(sandbox)[0]):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
    return found


def test_no_orphan_outlasts_its_program(sandbox: LocalSandbox, look: Any) -> None:
    code = """
    import ctypes, os, time
    ctypes.CDLL(None).prctl(15, b"orphan")  # the name of its children, too
    for _ in range(20):
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    print("orphans")
    """
    assert run(sandbox, code).stdout == "orphans\n"
    wait_for(lambda: not named("orphan", sandbox, look))
    assert run(sandbox, "print(6 * 7)").stdout == "42\n"


def test_the_shared_resources_are_named_with_the_mode(sandbox: LocalSandbox) -> None:
    found = {layer.name: layer for layer in sandbox.capabilities()}
    shares = [found[name] for name in ("one share of the cores", "counted kernel memory", "own pipes and signals")]
    active = {name: found[name].active for name in ("system-call filter", "control groups", "own users")}
    filtered, grouped, own = active.values()
    assert [layer.active for layer in shares] == [filtered, filtered and grouped, own]
    assert all(layer.detail and not layer.required for layer in shares)


def test_the_page_names_the_bounds_that_do_not_hold_in_a_mode(sandbox: LocalSandbox) -> None:
    page = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text()
    rows = dict(
        re.findall(r"^\| ([^|]+) \| [^|]+ \| (.*) \|$", page.partition("### Differences between modes")[2], re.M)
    )
    mechanisms = {"system-call filter", "control groups", "own users"}
    active = {layer.name: layer.active for layer in sandbox.capabilities()}
    named = {name for each in mechanisms if not active[each] for name in re.findall(r"\*([^*]+)\*", rows[f"no {each}"])}
    bounds = ("one share of the cores", "counted kernel memory", "own pipes and signals")
    assert {name.lower() for name in named} == {name for name in bounds if not active[name]}
