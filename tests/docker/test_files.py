"""The Dockerfiles and the compose file, without an engine: linted, validated, at one with the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT

DOCKERFILES = sorted((ROOT / "docker").rglob("Dockerfile"))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = {name: one for name, one in COMPOSE["services"].items() if "profiles" not in one}
"""The services that start without a profile."""


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_hadolint_has_no_objection(path: Path) -> None:
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if linter is None:
        pytest.skip("hadolint is not installed (the extra 'dev')")
    command = [linter, "--no-color", "--config", str(ROOT / ".hadolint.yaml"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_every_image_takes_another_base(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"^ARG BASE=\S+\nFROM \$\{BASE\}$", text, re.MULTILINE)
    assert text.count("FROM ") == 1


def test_the_rocm_image_keeps_its_bases_torch_and_ends_by_asserting_it() -> None:
    text = (ROOT / "docker" / "rocm" / "Dockerfile").read_text()
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert installs
    assert all("--constraint /etc/rstar2-kept.txt" in line for line in installs)
    assert "assert version.hip" in text[text.rindex("pip install") :]


def test_the_rocm_image_keeps_to_the_requirements_of_its_bases_vllm() -> None:
    text = (ROOT / "docker" / "rocm" / "Dockerfile").read_text()
    install = text[text.rindex("pip install") :].split("\n#")[0]
    assert "--requirement /etc/rstar2-vllm.txt" in install, "pip heeds the requirements of what it installs"
    assert "grep -i '^vllm==' /etc/rstar2-kept.txt > /etc/rstar2-vllm.txt" in text


def test_what_an_image_needs_is_not_left_out_of_its_context() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    linked = {path.resolve().name for path in (ROOT / "rstar2_env").iterdir() if path.is_symlink()}
    assert {"agents", "trainers"} <= linked
    assert {"rstar2_env", *linked, "pyproject.toml", "setup.py", "tools/docs_site", "README.md", "LICENSE"} <= kept
    assert all((ROOT / name).exists() for name in kept)
    command = COMPOSE["services"]["trainer"]["command"]
    (config,) = [word.partition("=")[2] for word in command if word.startswith("--config=")]
    assert (ROOT / config).exists()
    assert config.split("/")[0] in kept


@pytest.fixture(scope="module")
def resolved() -> Any:
    """The file as compose resolves it."""
    given = {"MODELS": "/m", "DATA": "/d", "RUNS": "/r", "RSTAR2_SANDBOX_TOKEN": "t"}
    words = None
    if shutil.which("docker"):
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        words = ["docker", "compose"] if plugin.returncode == 0 else None
    if words is None and shutil.which("docker-compose"):
        words = ["docker-compose"]
    if words is None:
        pytest.skip("no compose is installed (apt-get install docker-compose)")
    done = subprocess.run(
        [*words, "-f", str(ROOT / "compose.yaml"), "config"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **given},
    )
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(done.stdout)


class TestCompose:
    def test_compose_takes_it(self, resolved: Any) -> None:
        # The newest compose leaves services of a profile out, and earlier ones show their profile.
        started = {name for name, one in resolved["services"].items() if "profiles" not in one}
        assert started == {"sandbox", "trainer", "vllm-4", "vllm-5", "vllm-6", "vllm-7"}
        for name in ("vllm-4", "trainer"):
            service = resolved["services"][name]
            assert {"/dev/kfd", "/dev/dri"} <= {str(one).split(":")[0] for one in service["devices"]}
            assert service["ipc"] == "host"
            assert service["ulimits"]["memlock"] == -1

    def test_what_is_missing_is_named(self) -> None:
        text = (ROOT / "compose.yaml").read_text()
        assert set(re.findall(r"\$\{(\w+):\?", text)) == {
            "MODELS",
            "DATA",
            "RUNS",
            "RSTAR2_SANDBOX_TOKEN",
        }

    def test_no_accelerator_is_used_twice_and_the_trainer_knows_every_server(self) -> None:
        services = SERVICES
        used = [number for one in services.values() for number in _devices(one)]
        assert sorted(used) == list("01234567")
        assert len(_devices(services["trainer"])) == int(services["trainer"]["entrypoint"][3])
        words = services["trainer"]["command"]
        (urls,) = [word.partition("base_urls=")[2] for word in words if "base_urls" in word]
        assert json.loads(urls) == [f"http://{name}:8000" for name in services if name.startswith("vllm-")]

    def test_the_processes_of_the_trainer_divide_the_weights(self) -> None:
        assert int(SERVICES["trainer"]["entrypoint"][3]) > 1
        assert "--set=sharding=fsdp2" in SERVICES["trainer"]["command"]

    def test_every_server_has_a_health_check_and_the_trainer_waits_for_it(self) -> None:
        services = SERVICES
        servers = {name for name in services if name != "trainer"}
        assert all("healthcheck" in services[name] for name in servers)
        waits = services["trainer"]["depends_on"]
        assert waits == {name: {"condition": "service_healthy"} for name in servers}

    def test_weights_are_under_the_same_path_and_nothing_is_reachable_from_outside(self) -> None:
        services = SERVICES
        places = {
            volume.split(":")[1]
            for name, one in services.items()
            for volume in one.get("volumes", ())
            if volume.startswith("weights:")
        }
        assert places == {"/weights"}
        assert "--set=engine.weights_dir=/weights" in services["trainer"]["command"]
        assert not any("ports" in one for one in services.values())
        assert COMPOSE["networks"]["inside"]["internal"] is True


def _devices(service: dict[str, Any]) -> list[str]:
    chosen = service.get("environment", {}).get("HIP_VISIBLE_DEVICES", "")
    return [one for one in chosen.split(",") if one]
