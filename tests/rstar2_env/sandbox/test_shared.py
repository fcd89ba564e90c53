"""One sandbox per process and set of options: reference-counted, safe across forks, pickled as its options."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import PROVIDERS, Job, Limits, SharedSandbox, end_idle_sandboxes, shared, shared_sandbox
from rstar2_env.testing import StubSandbox

OPTIONS: dict[str, Any] = {"workers": 1, "waiting": 1, "preload": []}


CALL = (
    '<tool_call>{"name": "execute_python_code_with_standard_io", '
    '"arguments": {"code": "print(6 * 7)", "input": ""}}</tool_call>'
)


@pytest.fixture(autouse=True)
def nothing_is_idle() -> Iterator[None]:
    """Start and end each test without idle sandboxes."""
    end_idle_sandboxes()
    yield
    end_idle_sandboxes()


@pytest.fixture
def stubs() -> Iterator[list[StubSandbox]]:
    """All sandboxes of a provider named ``counted``."""
    made: list[StubSandbox] = []

    def make(name: str = "") -> StubSandbox:
        made.append(StubSandbox(name or "stub"))
        return made[-1]

    PROVIDERS.register("counted")(make)
    yield made
    end_idle_sandboxes()
    del PROVIDERS._parts["counted"]


def warden(handle: SharedSandbox) -> int:
    sandbox: Any = handle._sandbox()
    return int(sandbox._connection.host.warden_pid)


def test_equal_options_share_and_others_do_not() -> None:
    other = OPTIONS | {"limits": Limits(file_mb=9)}
    with shared_sandbox(**OPTIONS) as a, shared_sandbox(**OPTIONS) as b, shared_sandbox(**other) as c:
        assert warden(a) == warden(b) != warden(c)


def test_environments_made_one_after_the_other_use_one_sandbox(look: Any) -> None:
    wardens = set()
    for _ in range(3):
        env = gym.make("rstar2/MathTool-v0", sandbox=OPTIONS)
        env.reset(seed=1)
        assert "42" in env.step(CALL)[0]
        (entry,) = shared._entries.values()
        sandbox: Any = entry.sandbox
        wardens.add(sandbox._connection.host.warden_pid)
        assert entry.handles == 1
        env.close()
        assert entry.handles == 0
    assert len(wardens) == 1
    assert look.alive(wardens.pop())


def test_a_handle_refuses_once_it_is_closed_whoever_else_goes_on(look: Any) -> None:
    a, b = shared_sandbox(**OPTIONS), shared_sandbox(**OPTIONS)
    pid = warden(a)
    a.close()
    a.close()
    assert b.run(Job("1")).value == "1"
    for use in (lambda: a.run(Job("1")), lambda: a.run_many([Job("1")]), a.capabilities):
        with pytest.raises(SandboxUnavailableError, match="handle"):
            use()
    b.close()
    assert look.alive(pid)
    with pytest.raises(SandboxUnavailableError, match="handle"):
        b.run(Job("1"))


def test_the_sandbox_ends_when_it_was_idle_for_long_enough(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "KEEP_S", 0.3)
    handle = shared_sandbox(**OPTIONS)
    pid = warden(handle)
    time.sleep(0.6)  # in use, it is not idle
    assert handle.run(Job("1")).value == "1"
    handle.close()
    look.wait_for(lambda: not look.alive(pid))
    look.wait_for(lambda: not any(thread.name == "rstar2-sandbox-idle" for thread in threading.enumerate()))
    with shared_sandbox(**OPTIONS) as other:
        assert warden(other) != pid


def test_a_handle_that_is_forgotten_counts_no_longer(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "KEEP_S", 0.1)
    handle = shared_sandbox(**OPTIONS)
    pid = warden(handle)
    del handle
    look.wait_for(lambda: not look.alive(pid))


def test_idle_sandboxes_can_be_ended_by_hand(stubs: list[StubSandbox]) -> None:
    kept, used = shared_sandbox("counted", name="a"), shared_sandbox("counted", name="b")
    kept.close()
    end_idle_sandboxes()
    assert [stub.closed for stub in stubs] == [True, False]
    used.close()


def test_only_so_many_are_kept_and_the_longest_idle_goes_first(stubs: list[StubSandbox]) -> None:
    names = [f"n{number}" for number in range(shared.KEEP_MOST + 2)]
    handles = [shared_sandbox("counted", name=name) for name in names]
    for handle in handles:
        handle.close()
    assert [stub.closed for stub in stubs] == [True, True] + [False] * shared.KEEP_MOST
    for name in names[2:]:
        shared_sandbox("counted", name=name).close()  # taken out of the idle ones, and put back
    assert len(stubs) == len(names)


def test_one_that_failed_for_good_is_not_used_again(stubs: list[StubSandbox]) -> None:
    shared_sandbox("counted").close()
    stubs[0].close()
    with shared_sandbox("counted") as handle:
        assert handle.run(Job("1")).status is ToolStatus.OK
    assert len(stubs) == 2


def test_sessions_end_with_the_last_handle() -> None:
    with shared_sandbox(**OPTIONS) as handle:
        pid = warden(handle)
        assert handle.run(Job("x = 1", session="notes")).session == "new"
    with shared_sandbox(**OPTIONS) as handle:
        assert warden(handle) == pid
        outcome = handle.run(Job("x", session="notes"))
        assert (outcome.session, outcome.error_type) == ("new", "NameError")


def test_closing_the_last_handle_ends_what_runs(look: Any) -> None:
    handle = shared_sandbox(**OPTIONS)
    pid = warden(handle)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(handle.run, Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60)))
        look.wait_for(lambda: next(iter(shared._entries.values())).calls == 1)
        handle.close()
        assert call.result(30).status is ToolStatus.UNAVAILABLE
    look.wait_for(lambda: not look.alive(pid))


AT_EXIT = """
import os, sys
from rstar2_env.sandbox import Job, shared_sandbox
handle = shared_sandbox(workers=1, waiting=1, preload=[])
assert handle.run(Job("1")).value == "1"
connection = handle._sandbox()._connection
print(connection.host.warden_pid, connection.zygote_pid, connection.host.scratch, flush=True)
handle.close()
"""
ENDINGS = {
    "a usual exit": "",
    "a kill": "import signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "an exit without hooks": "os._exit(0)",
    "an exit in the middle of ending it": (
        "import time\nfrom rstar2_env.sandbox import shared\nshared.KEEP_S = 0.0\nhandle = shared_sandbox("
        "workers=1, waiting=1, preload=[])\nhandle.close()\ntime.sleep(0.02)"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=[name.replace(" ", "_") for name in ENDINGS])
def test_a_process_that_ends_leaves_nothing_of_one_that_was_kept(look: Any, ending: str) -> None:
    done = subprocess.run([sys.executable, "-c", AT_EXIT + ending], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    wardens, zygote, scratch = done.stdout.split()
    look.wait_for(lambda: not look.alive(int(wardens)) and not look.alive(int(zygote)))
    look.wait_for(lambda: not os.path.exists(scratch))


def test_a_forked_process_neither_uses_nor_ends_what_its_parent_keeps(look: Any) -> None:
    shared_sandbox(**OPTIONS).close()
    (entry,) = shared._entries.values()
    sandbox: Any = entry.sandbox
    pid = sandbox._connection.host.warden_pid
    child = os.fork()
    if child == 0:
        code = 1
        try:
            end_idle_sandboxes()
            with shared_sandbox(**OPTIONS) as mine:
                code = 0 if warden(mine) != pid and mine.run(Job("1")).value == "1" else 2
            shared._close_all()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert look.alive(pid)
    with shared_sandbox(**OPTIONS) as handle:
        assert warden(handle) == pid
        assert handle.run(Job("1")).value == "1"


def test_pickled_it_shares_where_it_is_unpickled() -> None:
    with shared_sandbox(**OPTIONS) as handle, pickle.loads(pickle.dumps(handle)) as copy:
        assert warden(copy) == warden(handle)


def test_a_forked_process_gets_its_own() -> None:
    with shared_sandbox(**OPTIONS) as handle:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                value = handle.run(Job("6 * 7")).value
                os.write(write, f"{value} {warden(handle)}".encode())
                handle.close()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(write)
        with os.fdopen(read) as file:
            value, other = file.read().split()
        assert value == "42"
        assert int(other) != warden(handle)
        assert handle.run(Job("1")).value == "1"


def _work(handle: SharedSandbox, number: int) -> str | None:
    return handle.run(Job(f"{number} + 1")).value


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_use_it(method: str) -> None:
    with shared_sandbox(**OPTIONS) as handle, multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(_work, [(handle, number) for number in range(4)]) == ["1", "2", "3", "4"]


def test_a_mistake_is_told_and_leaves_nothing_shared() -> None:
    with pytest.raises(UnknownNameError, match="local"):
        shared_sandbox("locla")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="isolation"):
            shared_sandbox(isolation="strictly")


@pytest.mark.parametrize("run", [lambda sandbox: sandbox.run("print(1)"), lambda sandbox: sandbox.run_many(["1"])])
def test_something_else_than_a_job_is_told_and_leaves_nothing_under_way(run: Any) -> None:
    with shared_sandbox("local", **OPTIONS) as sandbox:
        with pytest.raises(ConfigurationError, match=r"of the type Job, not str: call run\(Job\(code\)\)"):
            run(sandbox)
        assert not any(entry.calls for entry in shared._entries.values())
        assert sandbox.run(Job("print(1)")).status is ToolStatus.OK
