"""The remote sandbox behaves like the local one: outcomes, threads, loops, cancelling, forks, closing."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rstar2_env.cli.sandbox import app
from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Sandbox, make_sandbox, shared_sandbox

SLEEP = Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60))
PROGRAMS = {
    "output and a value": Job("print('out')\n6 * 7"),
    "nothing": Job("x = 1"),
    "an exception": Job("def f():\n    1 / 0\nf()"),
    "a syntax error": Job("def"),
    "an exit code": Job("import sys\nprint('e', file=sys.stderr)\nsys.exit(3)"),
    "a signal": Job("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"),
    "stdin": Job("print(input() * 2)", stdin="ab\n"),
    "a lone surrogate in stdin": Job("import sys\nprint(sys.stdin.buffer.read())", stdin="a\ud800b"),
    "a lone surrogate in the source": Job("print('\ud800')"),
    "a file": Job("print(open('d/a.bin', 'rb').read())", files={"d/a.bin": bytes(range(256))}),
    "bytes that are not text": Job("import os\nos.write(1, bytes(range(128, 256)))"),
    "a seed": Job("import random\nrandom.random()", seed=5),
    "too much output": Job("while True: print('x' * 1000)", limits=Limits(output_bytes=10_000)),
    "too much time": Job("while True: pass", limits=Limits(wall_s=0.3)),
    "too much memory": Job("x = bytearray(1 << 30)", limits=Limits(memory_mb=64)),
    "a refused call": Job("import ctypes\nctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None)"),
}
MEASURED = ("wall_s", "cpu_s", "peak_memory_mb", "stdout", "stdout_left_out")


@pytest.fixture(scope="module")
def remote(server: Any) -> Iterator[Sandbox]:
    with make_sandbox("remote", url=server.url) as sandbox:
        yield sandbox


def test_it_keeps_the_protocol(remote: Sandbox) -> None:
    assert isinstance(remote, Sandbox)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_outcome_is_that_of_the_local_sandbox(remote: Sandbox, local: LocalSandbox, name: str) -> None:
    here, there = asdict(local.run(PROGRAMS[name])), asdict(remote.run(PROGRAMS[name]))
    measured = MEASURED if name == "too much output" else MEASURED[:3]
    assert {**there, **dict.fromkeys(measured)} == {**here, **dict.fromkeys(measured)}
    assert there["wall_s"] > 0 or name == "a syntax error" or "surrogate in the source" in name


def test_the_layers_are_those_of_the_server(remote: Sandbox, local: LocalSandbox) -> None:
    names = {layer.name for layer in local.capabilities() if layer.active}
    assert {layer.name for layer in remote.capabilities() if layer.active} == names


def test_many_jobs_come_back_in_their_order(remote: Sandbox) -> None:
    outcomes = remote.run_many([Job(str(number)) for number in range(200)])
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(200)]


def test_no_jobs_have_no_outcomes(remote: Sandbox) -> None:
    assert remote.run_many([]) == []


def test_threads_and_event_loops_share_it(remote: Sandbox) -> None:
    async def go(start: int) -> list[str | None]:
        outcomes = await asyncio.gather(*(remote.arun(Job(str(start + number))) for number in range(10)))
        return [outcome.value for outcome in outcomes]

    with ThreadPoolExecutor(19) as pool:
        loops = [pool.submit(asyncio.run, go(start)) for start in (100, 200, 300)]
        values = list(pool.map(lambda number: remote.run(Job(str(number))).value, range(64)))
        assert values == [str(number) for number in range(64)]
        for start, found in zip((100, 200, 300), loops, strict=True):
            assert found.result() == [str(start + number) for number in range(10)]


def test_a_slow_call_of_a_batch_holds_no_other(remote: Sandbox) -> None:
    async def go() -> float:
        slow = asyncio.create_task(remote.arun(SLEEP))
        started = time.monotonic()
        fast = [asyncio.create_task(remote.arun(Job(str(number)))) for number in range(20)]
        await asyncio.gather(*fast)
        took = time.monotonic() - started
        assert not slow.done()
        slow.cancel()
        return took

    assert asyncio.run(go()) < 30


def test_cancelling_ends_the_program_on_the_server(remote: Sandbox, server: Any, look: Any) -> None:
    look.wait_for(lambda: server.metric("in_flight") == 0)
    before = server.metric("cancelled_total")

    async def go() -> None:
        call = asyncio.create_task(remote.arun(SLEEP))
        await asyncio.to_thread(look.wait_for, lambda: server.metric("in_flight") == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(go())
    look.wait_for(lambda: server.metric("in_flight") == 0)
    assert server.metric("cancelled_total") == before + 1


def test_cancelling_what_waits_on_the_server_holds_up_nothing(serve: Any, look: Any) -> None:
    async def go(server: Any, sandbox: Sandbox) -> str | None:
        running = asyncio.create_task(sandbox.arun(SLEEP))
        await asyncio.to_thread(look.wait_for, lambda: server.metric("in_flight") == 1)
        waiting = asyncio.create_task(sandbox.arun(SLEEP))
        await asyncio.to_thread(look.wait_for, lambda: server.metric("queue_depth") == 1)
        waiting.cancel()
        await asyncio.to_thread(look.wait_for, lambda: server.metric("queue_depth") == 0)
        running.cancel()
        return (await sandbox.arun(Job("1 + 1"))).value

    with (
        serve(in_flight=1, provider_options={"preload": [], "workers": 1}) as server,
        make_sandbox("remote", url=server.url) as sandbox,
    ):
        assert asyncio.run(go(server, sandbox)) == "2"
        assert server.metric("started_total") == 2


def test_cancelled_calls_are_no_failures_of_the_server(serve: Any, look: Any) -> None:
    async def go(server: Any, sandbox: Sandbox) -> None:
        for count in (1, 2):  # after a failure, the server would get one call at a time
            calls = [asyncio.create_task(sandbox.arun(SLEEP)) for _ in range(count)]
            await asyncio.to_thread(look.wait_for, lambda count=count: server.metric("in_flight") == count)
            for call in calls:
                call.cancel()
            await asyncio.to_thread(look.wait_for, lambda: server.metric("in_flight") == 0)

    with (
        serve(provider_options={"preload": [], "workers": 2}) as server,
        make_sandbox("remote", url=server.url) as sandbox,
    ):
        asyncio.run(go(server, sandbox))


def test_the_callers_own_mistake_is_an_error(remote: Sandbox) -> None:
    with pytest.raises(ConfigurationError, match="must be relative"):
        remote.run(Job("1", files={"../x": b""}))


def test_a_job_too_large_for_the_server_is_an_error(serve: Any) -> None:
    with (
        serve(max_request_mb=0.1, provider_options={"preload": [], "workers": 1}) as server,
        make_sandbox("remote", url=server.url) as sandbox,
    ):
        with pytest.raises(ConfigurationError, match="accepts requests of at most"):
            sandbox.run(Job("#" + "x" * 200_000))
        jobs = [Job("#" + "x" * 30_000 + f"\n{number}") for number in range(20)]  # more than one request holds
        assert [outcome.value for outcome in sandbox.run_many(jobs)] == [str(number) for number in range(20)]


def test_a_limit_above_the_servers_is_cut_and_told_of(serve: Any) -> None:
    most = {"wall_s": 0.5, "cpu_s": 5.0, "memory_mb": 256}
    with (
        serve(max_limits=most, provider_options={"preload": [], "workers": 1}) as server,
        pytest.warns(RuntimeWarning, match="wall_s 0.5"),
        make_sandbox("remote", url=server.url) as sandbox,
        pytest.warns(RuntimeWarning, match="wall_s 0.5"),
    ):
        outcome = sandbox.run(SLEEP)
    assert outcome.status is ToolStatus.TIMEOUT
    assert outcome.wall_s < 30


def test_a_closed_sandbox_says_so(server: Any) -> None:
    sandbox = make_sandbox("remote", url=server.url)
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(Job("1"))


def test_closing_ends_what_is_in_flight(server: Any, look: Any) -> None:
    look.wait_for(lambda: server.metric("in_flight") == 0)
    sandbox = make_sandbox("remote", url=server.url)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(sandbox.run, SLEEP)
        look.wait_for(lambda: server.metric("in_flight") == 1)
        sandbox.close()
        assert call.result(30).status is ToolStatus.UNAVAILABLE
    look.wait_for(lambda: server.metric("in_flight") == 0)


def test_closing_leaves_no_thread_and_no_descriptor(server: Any) -> None:
    def size() -> tuple[int, int]:
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    make_sandbox("remote", url=server.url).close()
    before = size()
    for _ in range(3):
        with make_sandbox("remote", url=server.url) as sandbox:
            sandbox.run_many([Job("1")] * 10)
    assert size() == before


def test_a_process_that_ends_without_closing_ends_its_calls(server: Any, look: Any) -> None:
    program = f"""
import threading, time
from rstar2_env.sandbox import Job, Limits, make_sandbox
sandbox = make_sandbox("remote", url={server.url!r})
job = Job("import time; time.sleep(60)", limits=Limits(wall_s=60))
threading.Thread(target=sandbox.run, args=(job,), daemon=True).start()
time.sleep(1)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60)
    assert done.returncode == 0
    look.wait_for(lambda: server.metric("in_flight") == 0)


def test_it_is_pickled_as_its_options(remote: Sandbox) -> None:
    with pickle.loads(pickle.dumps(remote)) as other:
        assert other is not remote
        assert other.run(Job("1 + 1")).value == "2"


def test_a_fork_says_what_to_do_and_leaves_the_parent_whole(remote: Sandbox) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            remote.run(Job("1"))
        except SandboxUnavailableError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert remote.run(Job("1 + 1")).value == "2"


def test_handles_share_one_client(server: Any) -> None:
    with shared_sandbox("remote", url=server.url) as one, shared_sandbox("remote", url=server.url) as other:
        assert one._sandbox() is other._sandbox()
        assert one.run(Job("1 + 1")).value == "2"


def test_no_server_at_all_is_told_at_once() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"127\.0\.0\.1:1:"):
        make_sandbox("remote", url="http://127.0.0.1:1")


def test_the_environment_names_the_servers(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSTAR2_SANDBOX_URL", f" {server.url}/ ,{server.url}")
    with make_sandbox("remote") as sandbox:
        assert sandbox.run(Job("1 + 1")).value == "2"
        assert sandbox.options.urls == (server.url,)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "RSTAR2_SANDBOX_URL"),
        ({"url": "127.0.0.1:8700"}, "must have the form"),
        ({"url": "http://u:secret@host:1"}, "must not contain the token"),
        ({"url": "http://host:1", "urls": ["http://host:2"]}, "cannot be combined"),
        ({"urls": "http://host:1"}, "urls must be a list of strings"),
        ({"url": "http://host:1", "batch": 0}, "batch"),
        ({"url": "http://host:1", "reconnect_timeout_s": 1e4}, "reconnect_timeout_s"),
        ({"url": "http://host:1", "isolation": "some"}, "isolation"),
        ({"url": "http://host:1", "tokens": "x"}, "Did you mean 'token'"),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, Any], complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RSTAR2_SANDBOX_URL", raising=False)
    with pytest.raises(ConfigurationError, match=complaint):
        make_sandbox("remote", **options)


def test_the_command_runs_files_on_a_server(server: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("6 * 7")
    words = ["--provider", "remote", "--set", f"url={server.url}"]
    ran = CliRunner().invoke(app, ["run", str(file), "--json", *words])
    assert json.loads(ran.stdout)["value"] == "42"
    checked = CliRunner().invoke(app, ["check", "--isolation", "strict", "--json", *words])
    assert checked.exit_code == 0
    layers = json.loads(checked.stdout)["layers"]
    assert any(layer["required"] and layer["active"] for layer in layers)
    assert {layer["tested"] for layer in layers} == {None}  # an escape has to be tried where the server is
