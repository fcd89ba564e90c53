"""One sandbox per process and set of options: counted by reference, safe across forks, pickled as its options."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError, UnknownNameError
from rstar2_env.sandbox import Job, Limits, SharedSandbox, shared_sandbox

OPTIONS: dict[str, Any] = {"workers": 1, "waiting": 1, "preload": []}


def warden(handle: SharedSandbox) -> int:
    sandbox: Any = handle._sandbox()
    return int(sandbox._connection.warden_pid)


def test_equal_options_share_and_others_do_not() -> None:
    other = OPTIONS | {"limits": Limits(file_mb=9)}
    with shared_sandbox(**OPTIONS) as a, shared_sandbox(**OPTIONS) as b, shared_sandbox(**other) as c:
        assert warden(a) == warden(b) != warden(c)


def test_the_last_handle_ends_it(look: Any) -> None:
    a, b = shared_sandbox(**OPTIONS), shared_sandbox(**OPTIONS)
    pid = warden(a)
    a.close()
    a.close()
    assert b.run(Job("1")).value == "1"
    with pytest.raises(SandboxUnavailableError, match="handle"):
        a.run(Job("1"))
    b.close()
    look.wait_for(lambda: not look.alive(pid))


def test_a_handle_that_is_forgotten_counts_no_longer(look: Any) -> None:
    handle = shared_sandbox(**OPTIONS)
    pid = warden(handle)
    del handle
    look.wait_for(lambda: not look.alive(pid))


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
