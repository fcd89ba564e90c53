"""Resources of the kernel that programs share: locks, memory, sessions, signals, pipes, output, threads, orphans.

Each test runs in every local mode that the machine allows: with all layers, without control groups, without a mount
namespace, and without any namespace. ``test_ordinary_user.py`` repeats them as an ordinary user.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
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
from rstar2_env.sandbox.inside.kernel import autogroup
from rstar2_env.sandbox.inside.zygote.watch import descendants

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


def test_memory_policies_and_names_of_mappings_are_refused(sandbox: LocalSandbox) -> None:
    code = """
    import ctypes, errno, mmap, platform
    libc = ctypes.CDLL(None, use_errno=True)
    held = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(held)))
    size = ctypes.c_size_t(mmap.PAGESIZE)
    mbind = 237 if platform.machine() == "x86_64" else 235
    found = []
    for result in (
        lambda: libc.syscall(mbind, at, size, 0, None, ctypes.c_ulong(0), 0),
        lambda: libc.prctl(0x53564D41, 0, at, size, b"name"),  # PR_SET_VMA, PR_SET_VMA_ANON_NAME
    ):
        ctypes.set_errno(0)
        found.append((result(), errno.errorcode.get(ctypes.get_errno())))
    found
    """
    assert run(sandbox, code).value == "[(-1, 'ENOSYS'), (-1, 'EINVAL')]"


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


MANY_MAPPINGS = 6_000


@pytest.mark.parametrize("mappings", [0, MANY_MAPPINGS], ids=["few-mappings", "many-mappings"])
def test_no_orphan_outlasts_its_program(sandbox: LocalSandbox, look: Any, mappings: int) -> None:
    code = f"""
    import ctypes, mmap, os, time
    ctypes.CDLL(None).prctl(15, b"orphan")  # the name of its children, too
    kinds = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)  # two kinds, which the kernel does not merge
    own = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    kept = [mmap.mmap(-1, mmap.PAGESIZE, own, kinds[at % 2]) for at in range({mappings})]
    for _ in range(20):
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    print("orphans")
    """
    assert run(sandbox, code).stdout == "orphans\n"
    outcomes = [sandbox.run(Job("print(6 * 7)")) for _ in range(20)]  # while the orphans end
    assert {(outcome.status, outcome.stdout) for outcome in outcomes} == {(ToolStatus.OK, "42\n")}
    wait_for(lambda: not named("orphan", sandbox, look))


SPINNERS = """
import ctypes, os, platform, threading
libc = ctypes.CDLL(None)
read, write = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        def spin():
            os.write(write, b"x")
            while True: pass
        libc.prctl(15, b"spinner")
        threading.Thread(target=spin, daemon=True).start()
        libc.syscall(60 if platform.machine() == "x86_64" else 93, 0)  # ends the first thread alone
started = sum(len(os.read(read, 1)) for _ in range(3))
started
"""


def test_nothing_of_a_resting_session_runs_after_its_first_threads_have_ended(sandbox: LocalSandbox, look: Any) -> None:
    assert run(sandbox, SPINNERS, session="spinners").value == "3"
    spinners = named("spinner", sandbox, look)
    assert len(spinners) == 3
    wait_for(lambda: all(states(pid) == {"Z", "T"} for pid in spinners))
    before = [cpu_of(pid) for pid in spinners]
    assert [run(sandbox, "print(sum(range(100_000)))").status for _ in range(20)] == [ToolStatus.OK] * 20
    assert [cpu_of(pid) for pid in spinners] == before

    def run_again() -> bool:
        cell = run(sandbox, "import time\ntime.sleep(0.1)\nstarted + 1", session="spinners")
        assert (cell.session, cell.value) == ("kept", "4")
        return all(cpu_of(pid) > was for pid, was in zip(spinners, before, strict=True))

    wait_for(run_again)
    sandbox.end_session("spinners")
    wait_for(lambda: not named("spinner", sandbox, look))


def states(pid: int) -> set[str]:
    """The states of the threads of a process, as letters of the kernel."""
    found = set()
    for task in descendants([pid])[pid]:
        found.add(Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0])
    return found


def cpu_of(pid: int) -> int:
    """CPU time of all threads of a process, in clock ticks."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


BOUNDS = ("one share of the cores", "counted kernel memory", "own pipes and signals")
MECHANISMS = ("system-call filter", "control groups", "own users")


def mechanisms(sandbox: LocalSandbox) -> dict[str, bool]:
    """Whether each mechanism of the bounds on shared resources is active, by its name on the page."""
    layers = {layer.name: layer.active for layer in sandbox.capabilities()}
    shared = "autogroup" not in sandbox.options.without and not autogroup.why_inactive()
    return {**{name: layers[name] for name in MECHANISMS}, "autogroup or cpu control group": shared or weighed(sandbox)}


def weighed(sandbox: LocalSandbox) -> bool:
    """Whether each slot has a control group of the cpu controller."""
    (groups,) = (layer for layer in sandbox.capabilities() if layer.name == "control groups")
    return groups.active and "cpu" in groups.detail


def check_bounds(sandbox: LocalSandbox) -> None:
    """Check that the page and ``capabilities`` name the same bounds, and that these follow from the mechanisms.

    Raises:
        AssertionError: They differ.
    """
    filtered, grouped, own, shared = mechanisms(sandbox).values()
    layers = {layer.name: layer for layer in sandbox.capabilities()}
    bounds = [layers[name] for name in BOUNDS]
    assert [layer.active for layer in bounds] == [
        shared and (filtered or weighed(sandbox)),
        filtered and grouped,
        own,
    ]
    assert all(layer.detail and not layer.required for layer in bounds)
    page = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text()
    rows = dict(
        re.findall(r"^\| ([^|]+) \| [^|]+ \| (.*) \|$", page.partition("### Differences between modes")[2], re.M)
    )
    lacking = [name for name, active in mechanisms(sandbox).items() if not active]
    on_page = {name.lower() for each in lacking for name in re.findall(r"\*([^*]+)\*", rows[f"no {each}"])}
    assert on_page == {layer.name for layer in bounds if not layer.active}


def test_the_page_and_the_capabilities_name_the_bounds_that_hold_in_a_mode(sandbox: LocalSandbox) -> None:
    check_bounds(sandbox)


def test_without_autogroup_and_control_groups_each_process_has_a_share_of_the_cores() -> None:
    with LocalSandbox(workers=1, waiting=1, preload=(), without=("autogroup", "cgroups")) as sandbox:
        check_bounds(sandbox)
        (shares,) = (layer for layer in sandbox.capabilities() if layer.name == "one share of the cores")
        assert not shares.active
        assert shares.detail.startswith("autogroup: ")


def test_without_autogroup_control_groups_bound_the_share_of_the_cores() -> None:
    with LocalSandbox(workers=1, waiting=1, preload=(), without=("autogroup",)) as sandbox:
        if not weighed(sandbox):
            pytest.skip("control groups of the cpu controller cannot be created here")
        check_bounds(sandbox)


SPIN = """
import os, resource, signal, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
until = time.monotonic() + 2
others = []
for _ in range(%d):
    if (pid := os.fork()) == 0:
        while True: pass
    others.append(pid)
while time.monotonic() < until: pass
for pid in others:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
"""
SHARES = """
import os, sys
from pathlib import Path
from rstar2_env.sandbox import Job, Limits, LocalSandbox
group, without, *programs = sys.argv[1:]
Path(group, "cgroup.procs").write_text(str(os.getpid()))  # autogroup acts only in the root group
with LocalSandbox(workers=2, waiting=2, preload=(), without=tuple(without.split())) as sandbox:
    calls = [sandbox._submit(Job(program, limits=Limits(wall_s=60))).future for program in programs]
    print(*(call.result().stdout.strip() for call in calls))
"""


@pytest.fixture
def cpu_group() -> Iterator[Path]:
    """A new control group of the cpu controller in version 1."""
    group = Path(f"/sys/fs/cgroup/cpu/rstar2-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"control groups of the cpu controller cannot be created here: {error.strerror}")
    yield group
    wait_for(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@pytest.mark.parametrize(("without", "fair"), [("", True), ("cgroups", False)])
def test_in_a_control_group_a_program_of_many_processes_has_the_share_of_one(
    cpu_group: Path, without: str, fair: bool
) -> None:
    words = [sys.executable, "-c", SHARES, str(cpu_group), without, SPIN % 12, SPIN % 0]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    many, one = map(float, done.stdout.split())
    assert (one / (many + one) > 0.25) == fair, done.stdout
