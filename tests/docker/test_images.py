"""The images of the CPU and of the sandbox are built on a base of Debian's packages, and run.

In CI, ``test_files.py`` lints the Dockerfiles; ``sandbox/docker/test_image.py`` builds and runs the sandbox's image.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml
from chain import free_port
from debian_base import NoBaseError, make_debian_base
from docker_engines import NoEngineError, plain_engine
from places import ROOT

from rstar2_env.sandbox import Job, make_sandbox
from rstar2_env.sandbox.docker import engine as docker_engine

# Making the base and building on it takes minutes.
pytestmark = [pytest.mark.proof, pytest.mark.timeout(1200)]

pytest.importorskip("docker", reason="images need the extra 'docker'")

CPU = "rstar2-cpu-test:latest"
_TOKEN = "a-secret-of-these-tests"
SANDBOX = "rstar2-sandbox-debian-test:latest"
LOOSE: dict[str, Any] = {"security_opt": ["seccomp=unconfined", "apparmor=unconfined"], "systempaths": "unconfined"}
"""What compose.yaml gives the service of the sandbox."""


@dataclass
class Engine:
    """An engine that holds the base."""

    url: str
    base: str
    client: Any

    def build(self, dockerfile: str, tag: str, **arguments: str) -> str:
        """Build an image from the checkout, and return the engine's words."""
        said = []
        for line in self.client.build(
            path=str(ROOT),
            dockerfile=dockerfile,
            tag=tag,
            buildargs=arguments,
            network_mode="host",
            decode=True,
            rm=True,
        ):
            said.append(line.get("stream") or line.get("error") or "")
            assert "error" not in line, "".join(said)[-3000:]
        return "".join(said)

    @contextlib.contextmanager
    def container(self, image: str, *command: str, **host: Any) -> Iterator[str]:
        """Run a command in an image; yields the container's id."""
        given = {"network_mode": "none", **host}
        environment = given.pop("environment", {})
        loose = given.pop("systempaths", "") == "unconfined"
        config = self.client.create_host_config(**given)
        if loose:
            # What Docker's command line and compose make of systempaths=unconfined.
            config |= {"MaskedPaths": [], "ReadonlyPaths": []}
        made = self.client.create_container(image, list(command), environment=environment, host_config=config)["Id"]
        self.client.start(made)
        try:
            yield made
        finally:
            self.client.remove_container(made, force=True)

    def run(self, image: str, *command: str, **host: Any) -> tuple[int, str]:
        """Run a command to its end: exit code and output."""
        with self.container(image, *command, **host) as made:
            code = self.client.wait(made, timeout=800)["StatusCode"]
            return code, self.client.logs(made).decode()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(plain_engine())
            client = docker_engine.connect(url, timeout_s=600)
            stack.callback(client.close)
            base = make_debian_base(client, tmp_path_factory.mktemp("base"))
        except (NoEngineError, NoBaseError) as error:
            pytest.skip(str(error))
        yield Engine(url, base, client)


@pytest.fixture(scope="module")
def cpu(engine: Engine) -> str:
    engine.build("docker/cpu/Dockerfile", CPU, BASE=engine.base, TORCH="", EXTRAS="serve,remote")
    return CPU


def test_the_doctor_examines_the_container_that_it_runs_in(engine: Engine, cpu: str) -> None:
    given = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["sandbox"]["security_opt"]
    assert {one.replace("${SANDBOX_APPARMOR:-unconfined}", "unconfined") for one in given} == {
        *LOOSE["security_opt"],
        "systempaths=unconfined",
    }
    code, said = engine.run(cpu, "doctor", "--json", **LOOSE)
    found = json.loads(said)
    assert found["machine"]["system"]["container"]
    assert found["machine"]["torch"]["version"] == ""
    by_name = {one["name"]: one for one in found["checks"]}
    assert by_name["sandbox_layers"]["level"] == "ok", by_name["sandbox_layers"]
    assert code == 0


def test_the_sandbox_keeps_its_promises_in_the_container_of_the_compose_file(engine: Engine, cpu: str) -> None:
    code, said = engine.run(cpu, "sandbox", "check", "--isolation", "strict", **LOOSE)
    assert "BROKEN" not in said, said
    assert said.count("blocked") >= 6
    assert code == 0, said


def test_a_trainer_outside_uses_the_sandbox_of_the_container(engine: Engine, cpu: str) -> None:
    port = free_port()
    words = ["sandbox", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with engine.container(
        cpu, *words, network_mode="host", **LOOSE, environment={"RSTAR2_SANDBOX_TOKEN": _TOKEN}
    ) as made:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/healthz", timeout=5).status_code == 200:
                    break
            assert time.monotonic() < until, engine.client.logs(made).decode()
            time.sleep(0.2)
        with make_sandbox("remote", url=url, token=_TOKEN) as sandbox:
            assert sandbox.run(Job("6 * 7")).value == "42"


def test_the_sandboxs_own_image_is_built_on_the_base_and_runs(engine: Engine) -> None:
    from rstar2_env.sandbox.docker import image as docker_image

    # Its Dockerfile installs NumPy and SymPy with pip, which needs a network that this engine may not give it.
    docker_image.build(engine.client, SANDBOX, engine.base, (), say=lambda _: None)
    with make_sandbox("docker", image=SANDBOX, base_url=engine.url, preload=()) as sandbox:
        assert sandbox.run(Job("6 * 7")).value == "42"
