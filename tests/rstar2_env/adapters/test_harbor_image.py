"""The image of an exported task, built and run by a Docker engine without a network.

No registry is needed: the base image is made from this machine's Python, and pip finds a wheel of this checkout in it.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker_engines import NoEngineError, own_engine
from places import ROOT

from rstar2_env.adapters.export import export_env
from rstar2_env.core.version import __version__

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="an image of this machine's files needs Linux"),
]

PIP = '#!/bin/sh\nexec python3 -m pip "$@"\n'
BASE = """\
FROM python-of-this-machine
USER root
ENTRYPOINT []
COPY files /
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
"""


def write_wheel(folder: Path) -> None:
    """Write a wheel of this checkout, with the metadata of its installation."""
    folder.mkdir(parents=True)
    info = f"rstar2_env-{__version__}.dist-info"
    with zipfile.ZipFile(folder / f"rstar2_env-{__version__}-py3-none-any.whl", "w") as wheel:
        for top, below, names in os.walk(ROOT / "rstar2_env", followlinks=True):
            below[:] = [name for name in below if name not in ("__pycache__", "node_modules")]
            for name in names:
                wheel.write(os.path.join(top, name), os.path.relpath(os.path.join(top, name), ROOT))
        own = importlib.metadata.distribution("rstar2-env")
        metadata = own.read_text("METADATA") or own.read_text("PKG-INFO")  # the second is in a checkout after a build
        assert metadata is not None
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def write_base(folder: Path) -> None:
    """Write the context of the base image: what it has beside Python."""
    (folder / "files" / "usr" / "local" / "bin").mkdir(parents=True)
    pip = folder / "files" / "usr" / "local" / "bin" / "pip"
    pip.write_text(PIP)
    pip.chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    listed = subprocess.run(["ldd", bash], capture_output=True, text=True, check=True).stdout
    for path in (bash, *(word for word in listed.split() if word.startswith("/") and "libtinfo" in word)):
        place = folder / "files" / os.path.realpath(os.path.dirname(path)).lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), place / os.path.basename(path))
    write_wheel(folder / "files" / "wheels")
    (folder / "Dockerfile").write_text(BASE)


def build(engine: Any, folder: Path, tag: str) -> None:
    said = list(engine.build(path=str(folder), tag=tag, network_mode="none", rm=True, decode=True))
    assert not [step for step in said if "error" in step], said[-3:]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "count"
    export_env("rstar2/Countdown-v0", "harbor", folder, episodes=1)
    (task,) = (file.parent for file in folder.glob("*/task.toml"))
    return task


@pytest.fixture(scope="module")
def engine(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An engine of our own with the image of the exported task."""
    pytest.importorskip("docker", reason="the extra 'docker' is not installed")
    from rstar2_env.sandbox.docker.engine import connect
    from rstar2_env.sandbox.docker.image import build_from_host

    try:
        with own_engine() as started:
            found = connect(started.url, timeout_s=300)
            modules = ("gymnasium", "httpx", "numpy", "flint", "sympy", "typer", "rich", "pip")
            build_from_host(found, "python-of-this-machine:latest", modules, say=lambda _: None)
            base = tmp_path_factory.mktemp("base")
            write_base(base)
            build(found, base, "python:3.12-slim")
            build(found, exported / "environment", "task")
            yield found
            found.close()
    except NoEngineError as error:
        pytest.skip(f"no Docker engine of our own: {error}")


def played(engine: Any, task: Path, *scripts: str) -> dict[str, float]:
    """Run scripts in a container of the task's image; return the rewards."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("tests", "solution"):
            tar.add(task / name, name)
        for name in ("logs", "logs/verifier"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
    run = " && ".join(f"bash {script}" for script in scripts)
    host = engine.create_host_config(network_mode="none")
    made = engine.create_container("task", command=["bash", "-c", run], host_config=host)["Id"]
    try:
        engine.put_archive(made, "/", packed.getvalue())
        engine.start(made)
        code = engine.wait(made)["StatusCode"]
        assert code == 0, engine.logs(made).decode()
        chunks, _ = engine.get_archive(made, "/logs/verifier/reward.json")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            file = tar.extractfile("reward.json")
            assert file is not None
            found: dict[str, float] = json.load(file)
            return found
    finally:
        engine.remove_container(made, force=True, v=True)


def test_the_image_of_an_exported_task_grades_as_the_environment_does(engine: Any, exported: Path) -> None:
    solved = played(engine, exported, "/solution/solve.sh", "/tests/test.sh")
    assert solved == {"reward": 1.0, "correct": 1.0, "no_answer": 0.0}
    assert played(engine, exported, "/tests/test.sh") == {"reward": 0.0, "correct": 0.0, "no_answer": 1.0}
