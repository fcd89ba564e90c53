"""Fixtures of the sandbox's tests: running sandboxes, and inspection of their processes and files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docker_engines import IMAGE, NoEngineError, any_engine
from waiting import wait_for

from rstar2_env.sandbox import Job, LocalSandbox, Outcome, Sandbox, make_sandbox
from rstar2_env.testing.sandbox_checks import SandboxHarness

os.environ["SECRET_TOKEN"] = "s3cr3t"  # what no program may see

NO_NAMESPACES = ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "cgroups")
Factory = Callable[[pytest.FixtureRequest], Callable[[], Sandbox]]
"""Asks fixtures for what a provider needs beside itself (an engine, a server), and returns what makes a sandbox."""


def local_without(*layers: str) -> Factory:
    return lambda _: lambda: make_sandbox("local", without=layers)


def in_docker(request: pytest.FixtureRequest) -> Callable[[], Sandbox]:
    options = request.getfixturevalue("docker_options")
    return lambda: make_sandbox("docker", **options)


def on_ray(request: pytest.FixtureRequest) -> Callable[[], Sandbox]:
    cluster = request.getfixturevalue("ray_nodes")
    cluster.add(resources={"conformance": 1})
    return lambda: make_sandbox("ray", address=cluster.address, resource="conformance")


def on_a_server(request: pytest.FixtureRequest) -> Callable[[], Sandbox]:
    server = request.getfixturevalue("server")
    return lambda: make_sandbox("remote", url=server.url)


PROVIDERS: dict[str, Factory] = {
    "local": local_without(),
    # A machine that gives ordinary users a user namespace and no mounts in it, as Ubuntu's AppArmor does.
    "local-without-mount": local_without("mount", "cgroups"),
    # A container's default profile, or a machine that keeps user namespaces from ordinary users.
    "local-without-namespaces": local_without(*NO_NAMESPACES),
    "local-older-kernel": local_without(*NO_NAMESPACES, "scope"),
    "docker": in_docker,
    "ray": on_ray,
    "remote": on_a_server,
}
"""What the conformance suite runs through: a new provider adds its line here. All but the first are slow tests."""

_WHOLE = ("local", "local-without-namespaces")
"""Providers that run every hostile program in CI. Calls of the others end in the same warden."""
_EVERYWHERE = {
    "fork_bomb",
    "forge_via_fds",
    "memory_bomb",
    "a thread that never ends",
    "a report of success, then a failed exit",
    "SIGKILL to every process",
}
"""Programs that every provider runs in CI, one of a kind."""


def is_left_out(item: pytest.Item) -> bool:
    """Whether a test is a program of a provider that runs only six of them."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    if getattr(item, "originalname", "") != "test_survives" or params["provider"] in _WHOLE:
        return False
    return params["case"].name not in _EVERYWHERE


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the other programs of the other providers to one proof each, ``test_survives_every_program``."""
    config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
    items[:] = [item for item in items if not is_left_out(item)]


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=() if name == "local" else [pytest.mark.slow, pytest.mark.deadlines])
        for name in PROVIDERS
    ],
)
def provider(request: pytest.FixtureRequest) -> Iterator[SandboxHarness]:
    """Every provider, in its strictest isolation."""
    harness = SandboxHarness(PROVIDERS[request.param](request))
    yield harness
    harness.close()


@pytest.fixture(scope="session")
def any_sandbox(provider: SandboxHarness) -> Sandbox:
    """A running sandbox of every provider."""
    # Some cases kill whatever they can: first prove with signal 0, which harms nobody, that they can reach nobody.
    reach = f"""
import os
reached = []
for pid in ({os.getpid()}, {os.getppid()}):
    try:
        os.kill(pid, 0)
        reached.append(pid)
    except OSError:
        pass
print("reached", reached)
"""
    assert provider.sandbox.run(Job(reach)).stdout == "reached []\n", "programs here could kill processes outside"
    return provider.sandbox


@pytest.fixture(scope="session")
def docker_options() -> Iterator[dict[str, Any]]:
    """Options of the docker sandbox, for a Docker engine with the image of the tests."""
    pytest.importorskip("docker", reason="the extra 'docker' is not installed")
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(any_engine())
        except NoEngineError as error:
            pytest.skip(f"no Docker engine: {error}")
        yield {"base_url": url, "image": IMAGE}


@pytest.fixture(scope="session")
def docker(docker_options: dict[str, Any]) -> Iterator[Sandbox]:
    """One docker sandbox for all tests that only run programs in it."""
    with make_sandbox("docker", **docker_options) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def local() -> Iterator[LocalSandbox]:
    """One local sandbox for all tests that only run programs."""
    with LocalSandbox() as sandbox:
        yield sandbox


@pytest.fixture
def run(local: LocalSandbox) -> Callable[..., Outcome]:
    """Run a program in the local sandbox: ``run(code, **fields of Job)``."""
    return lambda code, **fields: local.run(Job(code, **fields))


@pytest.fixture(scope="session")
def serve() -> Callable[..., contextlib.AbstractContextManager[Served]]:
    """Start a sandbox server: ``with serve(queue=4, provider_options={"workers": 1}) as server``."""
    pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
    pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    pytest.importorskip("httpx", reason="the extra 'remote' is not installed")
    return served


@pytest.fixture(scope="session")
def server(serve: Callable[..., contextlib.AbstractContextManager[Served]]) -> Iterator[Served]:
    """One server for all tests that only run programs on it."""
    with serve(max_request_mb=256.0) as running:
        yield running


SERVE = """
import json, sys
from rstar2_env.sandbox.serve.main import serve
from rstar2_env.sandbox.serve.options import ServeOptions
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import PROVIDERS, Limits
from rstar2_env.testing import StubSandbox
PROVIDERS.register("failing", lambda: StubSandbox(ToolStatus.UNAVAILABLE))
given = json.loads(sys.argv[1])
how = {"provider": given.pop("provider", "local"), "provider_options": given.pop("provider_options", {})}
given = {name: Limits(**value) if name.endswith("limits") else value for name, value in given.items()}
serve(ServeOptions(**given), announce=lambda address: print(address, flush=True), **how)
"""


@dataclass
class Served:
    """A server in a separate process."""

    process: subprocess.Popen[str]
    url: str

    def metric(self, name: str) -> float:
        """A metric of the server, by its name without the prefix."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"rstar2_sandbox_{name}"))


@contextlib.contextmanager
def served(**options: Any) -> Iterator[Served]:
    """Context with a server on a free port of this machine."""
    given = json.dumps({"port": 0, **options})
    process = subprocess.Popen([sys.executable, "-c", SERVE, given], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, f"the server did not start: exit code {process.wait()}"
        yield Served(process, url)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.fixture
def look() -> Look:
    """Inspector of the processes and files of a local sandbox."""
    return Look()


@dataclass(frozen=True)
class Footprint:
    """Current processes and files of a local sandbox."""

    processes: int
    pid_namespaces: int
    inside_groups: int
    files: tuple[str, ...]
    descriptors: int


class Look:
    """Inspects processes, namespaces, control groups and files of a local sandbox."""

    def footprint(self, sandbox: LocalSandbox) -> Footprint:
        """Record the current footprint."""
        warden, zygote = self.pids(sandbox)
        below = self.descendants(zygote)
        spaces = set()
        for pid in below:
            with contextlib.suppress(OSError):
                spaces.add(os.readlink(f"/proc/{pid}/ns/pid"))
        files = tuple(sorted(str(path) for path in Path(self.scratch(sandbox)).rglob("*")))
        descriptors = sum(self.descriptors(pid) for pid in (warden, zygote))
        inside = sum(len((group / "cgroup.procs").read_text().split()) for group in self.groups(warden))
        return Footprint(len(below), len(spaces), inside, files, descriptors)

    @staticmethod
    def descriptors(pid: int) -> int:
        """Open files of a process, except network namespaces, which slots keep after their first use."""
        found = 0
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found += not os.readlink(f"/proc/{pid}/fd/{name}").startswith("net:")
        return found

    def settled(self, sandbox: LocalSandbox) -> Footprint:
        """Footprint once the sandbox is idle."""
        waiting = sandbox.options.waiting if sandbox.options.waiting is not None else sandbox.options.slots
        # Each child that waits is two processes: the pausing one that is pid 1, and the child.
        seen: list[Footprint] = []

        def is_still() -> bool:
            seen.append(self.footprint(sandbox))
            time.sleep(0.1)
            return seen[-1].processes == 2 * waiting and seen[-3:] == [seen[-1]] * 3

        self.wait_for(is_still)
        return seen[-1]

    @staticmethod
    def pids(sandbox: LocalSandbox) -> tuple[int, int]:
        """Process ids of the warden and of the zygote."""
        connection = sandbox._connection
        assert connection is not None
        return connection.host.warden_pid, connection.zygote_pid

    @staticmethod
    def scratch(sandbox: LocalSandbox) -> str:
        """Folder of a sandbox on this machine."""
        connection = sandbox._connection
        assert connection is not None
        return connection.host.scratch

    @staticmethod
    def groups(warden: int) -> list[Path]:
        """Control groups of a warden, in one hierarchy."""
        for kind in ("pids", "."):
            with contextlib.suppress(FileNotFoundError):  # another sandbox removed its groups in the middle of this
                found = sorted(Path("/sys/fs/cgroup", kind).glob(f"**/rstar2-sandbox-{warden}/call-*"))
                if found:
                    return found
        return []

    @staticmethod
    def descendants(pid: int) -> list[int]:
        """Every process below ``pid``."""
        parents: dict[int, list[int]] = {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                parents.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(entry))
        found, rest = [], [pid]
        while rest:
            children = parents.get(rest.pop(), [])
            found += children
            rest += children
        return found

    @staticmethod
    def alive(pid: int) -> bool:
        """Whether a process exists and is not a zombie."""
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    wait_for = staticmethod(wait_for)


@pytest.fixture
def small() -> Iterator[LocalSandbox]:
    """A separate sandbox that starts fast."""
    with LocalSandbox(workers=2, waiting=2, preload=(), max_sessions=2) as made:
        yield made
