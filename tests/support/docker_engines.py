"""A real Docker engine for tests: the one that is reachable, or one started here on a socket of its own.

The engine that is started leaves the machine's network alone, is stopped by its own process number, and its folders are
unmounted and removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

IMAGE = "rstar2-sandbox-test:latest"
_START_S = 60.0
_NETWORK = ("--iptables=false", "--ip-masq=false", "--bridge=none", "--ip-forward=false")


class NoEngineError(RuntimeError):
    """No engine can be had; the text says why."""


class Engine:
    """An engine of our own.

    Args:
        folder: Where it keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"unix://{folder}/engine.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            NoEngineError: It does not.
        """
        places = ["--data-root", "data", "--exec-root", "exec", "--pidfile", "pid"]
        places = [str(self._folder / word) if word[0] != "-" else word for word in places]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                ["dockerd", *places, "-H", self.url, *_NETWORK], stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + _START_S
        while not answers(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                words = (self._folder / "log").read_text(errors="replace").strip().splitlines()[-3:]
                self.stop()
                raise NoEngineError(f"dockerd did not start here: {' / '.join(words)}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it, and every container with it."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def remove(self) -> None:
        """Take away what it mounted, and its folders."""
        with open("/proc/self/mounts") as file:
            mounted = [line.split()[1] for line in file if line.split()[1].startswith(str(self._folder))]
        for place in sorted(mounted, reverse=True):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def answers(url: str | None) -> bool:
    """Whether an engine answers there."""
    from rstar2_env.core.errors import Rstar2Error
    from rstar2_env.sandbox.docker import engine as docker_engine

    try:
        docker_engine.connect(url, timeout_s=5).close()
    except Rstar2Error:
        return False
    return True


@contextlib.contextmanager
def own_engine() -> Iterator[Engine]:
    """An engine for one test alone, which may stop it.

    Raises:
        NoEngineError: None can be started here.
    """
    if os.geteuid() != 0:
        raise NoEngineError("only root can start a Docker engine here")
    if shutil.which("dockerd") is None:
        raise NoEngineError("no dockerd is installed (apt-get install docker.io)")
    engine = Engine(Path(tempfile.mkdtemp(prefix="rstar2-engine-")))
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        engine.remove()


@contextlib.contextmanager
def plain_engine() -> Iterator[str]:
    """The address of an engine, whatever images it holds.

    Raises:
        NoEngineError: None is reachable, and none can be started here.
    """
    with contextlib.ExitStack() as stack:
        usual = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        yield usual if answers(usual) else stack.enter_context(own_engine()).url


@contextlib.contextmanager
def any_engine() -> Iterator[str]:
    """The address of an engine that holds the image of these tests.

    Raises:
        NoEngineError: None is reachable, and none can be started here.
    """
    with plain_engine() as url:
        build_image(url, "numpy", "sympy")
        yield url


def build_image(url: str, *packages: str) -> None:
    """Make the image of this machine's Python: no registry is needed."""
    from rstar2_env.sandbox.docker import engine as docker_engine
    from rstar2_env.sandbox.docker import image as docker_image

    engine = docker_engine.connect(url, timeout_s=300)
    docker_image.build_from_host(engine, IMAGE, packages, say=lambda _: None)
    engine.close()
