"""The docker provider on a real engine: containers are warm, isolated, replaced when lost, and always removed."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from docker_engines import NoEngineError, build_image, own_engine
from places import SHARED

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Sandbox, make_sandbox
from rstar2_env.sandbox.docker import container as docker_container

pytestmark = pytest.mark.slow

ATTACKS = SHARED / "attacks"
NOTHING_INSIDE = ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "cgroups", "seccomp", "landlock")
SLEEP = Job("import time\ntime.sleep(3)\n'slept'", limits=Limits(wall_s=30))


@pytest.fixture(scope="module")
def engine(docker_options: dict[str, Any]) -> Iterator[Any]:
    """Client of the engine."""
    from rstar2_env.sandbox.docker import engine as docker_engine

    client = docker_engine.connect(docker_options["base_url"])
    yield client
    client.close()


@pytest.fixture
def containers(engine: Any) -> Callable[[], list[str]]:
    """Current containers of sandboxes."""
    from rstar2_env.sandbox.docker.engine import OWNER_LABEL

    return lambda: sorted(found["Id"] for found in engine.containers(all=True, filters={"label": OWNER_LABEL}))


@pytest.fixture
def make(docker_options: dict[str, Any]) -> Iterator[Callable[..., Any]]:
    """Create a small docker sandbox, which is closed with the test."""
    made: list[Sandbox] = []

    def make_one(**options: Any) -> Any:
        made.append(make_sandbox("docker", **{**docker_options, "workers": 1, "preload": (), **options}))
        return made[-1]

    yield make_one
    for sandbox in made:
        sandbox.close()


def in_flight(sandbox: Sandbox, then: Callable[[], None]) -> Any:
    """Start a call, do something while it runs, and return its outcome."""
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(sandbox.run, SLEEP)
        time.sleep(1.0)
        then()
        return call.result(60)


def test_a_container_has_no_network_no_capabilities_and_bounds_and_can_write_nothing(
    make: Callable[..., Any], engine: Any, containers: Callable[[], list[str]]
) -> None:
    before = containers()
    make(memory_mb=700, pids=90, cpus=1.5)
    (made,) = set(containers()) - set(before)
    found = engine.inspect_container(made)
    host = found["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (700 << 20, 700 << 20, 90)
    assert host["NanoCpus"] == 1_500_000_000
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert not host["Privileged"]
    assert not host["Binds"]
    assert found["Config"]["User"] == "10001:10001"


def test_calls_that_share_a_container_have_layers_of_their_own(docker: Any) -> None:
    assert docker.wall == "call"
    promises = [layer for layer in docker.capabilities() if layer.required]
    assert all(layer.active for layer in promises)
    assert promises[0].name == "calls isolated from one another"
    outcomes = docker.run_many([Job(f"open('/tmp/{n}', 'w')\nimport os\nos.listdir('/tmp')") for n in range(12)])
    assert [outcome.value for outcome in outcomes] == [f"['{n}']" for n in range(12)]


def test_no_escape_from_it_succeeds(docker: Any) -> None:
    from rstar2_env.sandbox.check import try_to_escape

    assert {trial.layer for trial in try_to_escape(docker) if not trial.held} == set()


def test_sessions_keep_their_state_each_in_its_container(make: Callable[..., Any]) -> None:
    sandbox = make(containers=2)
    for name in "abcdef":
        assert sandbox.run(Job(f"x = {name!r}", session=name)).session == "new"
    values = [sandbox.run(Job("x", session=name)).value for name in "abcdef"]
    assert values == [repr(name) for name in "abcdef"]
    sandbox.end_session("a")
    assert sandbox.run(Job("'x' in globals()", session="a")).value == "False"


def test_closing_removes_every_container(make: Callable[..., Any], containers: Callable[[], list[str]]) -> None:
    before = containers()
    sandbox = make(containers=2)
    mine = set(containers()) - set(before)
    assert len(mine) == 2
    sandbox.close()
    sandbox.close()
    assert not mine & set(containers())
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(Job("1"))


def test_when_the_caller_is_killed_its_container_ends(
    docker_options: dict[str, Any], containers: Callable[[], list[str]], look: Any
) -> None:
    before = containers()
    code = (
        "import sys\nfrom rstar2_env.sandbox import make_sandbox\n"
        f"s = make_sandbox('docker', workers=1, preload=(), **{docker_options!r})\n"
        "print('ready', flush=True)\nsys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == "ready\n"
        mine = set(containers()) - set(before)
        assert len(mine) == 1
        caller.kill()
    look.wait_for(lambda: not mine & set(containers()))


def test_a_call_whose_container_is_killed_runs_again_in_another(
    make: Callable[..., Any], engine: Any, containers: Callable[[], list[str]]
) -> None:
    before = containers()
    sandbox = make()
    (mine,) = set(containers()) - set(before)
    outcome = in_flight(sandbox, lambda: engine.kill(mine))
    assert (outcome.value, outcome.attempts) == ("'slept'", 2)
    (other,) = set(containers()) - set(before)
    assert other != mine


def test_without_retries_it_is_unavailable_and_the_next_call_works(
    make: Callable[..., Any], engine: Any, containers: Callable[[], list[str]]
) -> None:
    before = containers()
    sandbox = make(retries=0)
    (mine,) = set(containers()) - set(before)
    outcome = in_flight(sandbox, lambda: engine.remove_container(mine, force=True))
    assert (outcome.status, outcome.attempts) == (ToolStatus.UNAVAILABLE, 1)
    assert sandbox.run(Job("1")).value == "1"


@pytest.mark.proof
def test_an_engine_that_is_restarted_costs_a_call_a_start_and_no_more() -> None:
    try:
        with own_engine() as engine:
            build_image(engine.url)
            options = {"base_url": engine.url, "image": "rstar2-sandbox-test:latest"}
            with make_sandbox("docker", workers=1, preload=(), **options) as sandbox:

                def restart() -> None:
                    engine.stop()
                    engine.start()

                outcome = in_flight(sandbox, restart)
                assert (outcome.value, outcome.attempts) == ("'slept'", 2)
                engine.stop()
                outcome = sandbox.run(Job("1"))
                assert outcome.status is ToolStatus.UNAVAILABLE
                assert "No Docker daemon answers" in str(outcome.error_message)
                engine.start()
                assert sandbox.run(Job("1")).value == "1"
    except NoEngineError as error:
        pytest.skip(f"no Docker engine of our own: {error}")


def test_containers_of_processes_that_are_gone_are_swept_and_others_left(
    make: Callable[..., Any], engine: Any, docker_options: dict[str, Any], containers: Callable[[], list[str]]
) -> None:
    from rstar2_env.sandbox.docker import engine as docker_engine

    with subprocess.Popen(["true"]) as process:
        process.wait()
    owners = [docker_engine.owner().replace(f"|{os.getpid()}|", f"|{process.pid}|"), docker_engine.owner(), "far|1|1"]
    made = [
        engine.create_container(docker_options["image"], labels={docker_engine.OWNER_LABEL: owner})["Id"]
        for owner in owners
    ]
    try:
        make()
        assert [each in containers() for each in made] == [False, True, True]
    finally:
        for each in made:
            docker_engine.remove(engine, each)


def test_jobs_larger_than_a_container_are_refused(make: Callable[..., Any]) -> None:
    sandbox = make(memory_mb=600)
    with pytest.raises(ConfigurationError, match="memory_mb"):
        sandbox.run(Job("1", limits=Limits(memory_mb=2000)))


def test_a_fork_of_the_caller_is_told_to_make_its_own_and_holds_no_container(
    make: Callable[..., Any], containers: Callable[[], list[str]]
) -> None:
    before = containers()
    sandbox = make()
    mine = set(containers()) - set(before)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            sandbox.run(Job("1"))
        except SandboxUnavailableError as error:
            os.write(write, str(error).encode())
        finally:
            os.close(write)
            time.sleep(60)
            os._exit(0)
    try:
        os.close(write)
        with os.fdopen(read) as file:
            assert "fork" in file.read()
        sandbox.close()
        assert not mine & set(containers())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_pickled_it_is_its_options(docker: Any) -> None:
    make, _ = docker.__reduce__()
    assert make.keywords == docker.options.as_given()
    with pickle.loads(pickle.dumps(docker)) as copy:
        assert copy.run(Job("1")).value == "1"


# The container as the wall


@pytest.fixture(scope="module")
def walled(docker_options: dict[str, Any]) -> Iterator[Any]:
    """An engine that does not allow layers around each call."""
    options = {**docker_options, "without": NOTHING_INSIDE, "preload": (), "containers": 3}
    with make_sandbox("docker", **options) as sandbox:
        yield sandbox


def test_without_layers_of_its_own_each_call_has_a_container_and_leaves_nothing(walled: Any) -> None:
    assert walled.wall == "container"
    assert all(layer.active for layer in walled.capabilities() if layer.required)
    look = "import os, socket\nopen('/tmp/left', 'w')\n(socket.gethostname(), os.listdir('/tmp'))"
    values = [outcome.value for outcome in walled.run_many([Job(look)] * 6)]
    assert len(set(values)) == 6


def test_behind_that_wall_no_escape_succeeds(walled: Any) -> None:
    from rstar2_env.sandbox.check import try_to_escape

    assert {trial.layer for trial in try_to_escape(walled) if not trial.held} == set()


HARSH = (
    "block_signals daemon_holds_stdout disk_fill double_fork_escape forge_via_fds fork_bomb memory_bomb signal_everyone"
)


def test_behind_that_wall_attacks_end_as_expected_and_touch_no_other_call(walled: Any) -> None:
    if not ATTACKS.is_dir():
        pytest.skip("no ../shared/attacks beside the repository")
    codes = {name: (ATTACKS / f"{name}.py").read_text() for name in HARSH.split()}
    expected = {name: json.loads(code.partition("\n")[0][1:])["expect"] for name, code in codes.items()}
    # What ends by itself may take long on a busy machine.
    walls = {name: 2.0 if "timeout" in expected[name] else 60.0 for name in codes}
    jobs = [
        job
        for name, code in codes.items()
        for job in (Job(code, limits=Limits(wall_s=walls[name], output_bytes=64 << 10)), Job("6 * 7"))
    ]
    outcomes = walled.run_many(jobs)
    ended = dict(zip(codes, [outcome.status.value for outcome in outcomes[::2]], strict=True))
    assert {name: status for name, status in ended.items() if status not in expected[name]} == {}
    assert [outcome.value for outcome in outcomes[1::2]] == ["42"] * len(codes)


def test_behind_that_wall_an_outcome_cannot_be_forged(walled: Any) -> None:
    forge = """
import os
reached = []
for place in ("/proc/1/fd/1", "/proc/1/fd/0", "/proc/1/mem", "/proc/1/environ"):
    try:
        os.close(os.open(place, os.O_RDWR if "mem" in place else os.O_WRONLY if "fd" in place else os.O_RDONLY))
        reached.append(place)
    except OSError:
        pass
for descriptor in os.listdir("/proc/1/fd") if os.access("/proc/1/fd", os.R_OK) else ():
    reached.append(descriptor)
reached
"""
    assert walled.run(Job(forge)).value == "[]"


def test_behind_that_wall_a_call_can_be_cancelled(walled: Any) -> None:
    async def cancel() -> None:
        call = asyncio.create_task(walled.arun(Job("while True: pass", limits=Limits(wall_s=60))))
        await asyncio.sleep(1.0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert walled.run(Job("1")).value == "1"


def test_behind_that_wall_there_are_no_sessions(walled: Any) -> None:
    with pytest.raises(ConfigurationError, match="sessions are not supported"):
        walled.run(Job("1", session="a"))


def test_behind_that_wall_closing_answers_the_calls_in_flight(
    docker_options: dict[str, Any], make: Callable[..., Any], engine: Any
) -> None:
    image = "rstar2-sandbox-test:closing"
    engine.tag(docker_options["image"], *image.split(":"))
    sandbox = make(without=NOTHING_INSIDE, containers=1, image=image)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(sandbox.run, SLEEP) for _ in range(2)]
        threading.Timer(1.0, sandbox.close).start()
        assert [call.result(30).status for call in calls] == [ToolStatus.UNAVAILABLE] * 2
    assert [found for found in engine.containers(all=True) if found["Image"] == image] == []
    engine.remove_image(image)


@pytest.mark.proof
def test_a_kernel_without_pidfds_serves_one_call_in_each_container(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As gVisor was in 2022, here by the container's filter.
    profile = docker_container.seccomp_profile().replace('"pidfd_open",', "")
    monkeypatch.setattr(docker_container, "seccomp_profile", lambda: profile)
    sandbox = make(containers=1, without=("landlock",))
    assert sandbox.wall == "container"
    assert sandbox.run(Job("import os\nos.system('exit 3')")).value == "768"
    assert sandbox.run(Job("while True: pass", limits=Limits(wall_s=0.5))).status is ToolStatus.TIMEOUT


# Mistakes


def test_an_engine_that_does_not_answer_is_named() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"unix:///no/such\.sock.*dockerd"):
        make_sandbox("docker", base_url="unix:///no/such.sock")


def test_an_image_that_is_missing_or_of_another_version_is_named(
    docker_options: dict[str, Any], engine: Any, make: Callable[..., Any]
) -> None:
    with pytest.raises(SandboxUnavailableError, match="rstar2 sandbox image --tag no-such-image"):
        make(image="no-such-image")
    made = engine.create_container(docker_options["image"])["Id"]
    engine.commit(made, "rstar2-sandbox-test-other", "latest", changes="LABEL rstar2-env.inside=0123")
    engine.remove_container(made)
    try:
        with pytest.raises(SandboxUnavailableError, match="another version"):
            make(image="rstar2-sandbox-test-other")
    finally:
        engine.remove_image("rstar2-sandbox-test-other", force=True)


def test_a_runtime_that_the_engine_lacks_is_named(make: Callable[..., Any]) -> None:
    with pytest.raises(SandboxUnavailableError, match="'runsc'"):
        make(runtime="runsc")
