"""The whole chain as processes on this machine: a trainer, a model server and a sandbox server, each of which may be
killed at any step and started again at the same address. Several runs may follow one another at the same servers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from places import SUPPORT
from vllm_serve import serve_command

from rstar2_env.core.run_folder import read_run

_RSTAR2 = (sys.executable, "-c", "from rstar2_env.cli import main; main()")
_LONG_S = 600.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@dataclass
class Service:
    """A process in a session of its own, which can be killed with all its children and started again.

    Attributes:
        name: For messages.
        command: How it is started.
        log: Where its output goes.
        health: Address that answers when it is ready; empty for a process that is waited for.
        environment: Further variables.
        starts: How often it was started.
    """

    name: str
    command: Sequence[str]
    log: Path
    health: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                list(self.command),
                env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def ready(self) -> None:
        until = time.monotonic() + _LONG_S
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(self.health, timeout=10).status_code == 200:
                    return
            self.running()
            assert time.monotonic() < until, f"{self.name} is not ready: {self.tail()}"
            time.sleep(0.1)

    def running(self) -> None:
        """Fail if it has ended."""
        assert self.process is not None
        assert self.process.poll() is None, f"{self.name} ended with {self.process.poll()}: {self.tail()}"

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


@dataclass
class Chain:
    """The three processes.

    Attributes:
        run: The run's folder.
        steps: Steps to train.
        model: The server of the model.
        others: Further servers of it.
        sandbox: The server of the sandbox.
        trainer: The trainer.
        trainer_of: Makes a trainer, of the run's folder, further words for ``rstar2 train`` and the processes.
    """

    run: Path
    steps: int
    model: Service
    sandbox: Service
    trainer: Service
    trainer_of: Callable[[Path, Sequence[str], int], Service]
    others: Sequence[Service] = ()

    def prepare(self, name: str, options: Sequence[str] = (), *, processes: int = 1) -> None:
        """Let the next ``play`` be another run, with what serves as it is: a run begins by handing its weights over.

        Args:
            name: Of its folder.
            options: Further words for ``rstar2 train``.
            processes: How many train.
        """
        self.run = self.run.parent / name
        self.trainer = self.trainer_of(self.run, options, processes)

    def begin(self) -> None:
        """Start what serves, where that was not done, and wait for it."""
        for service in (self.model, *self.others, self.sandbox):
            if service.process is None:
                service.start()
        for service in (self.sandbox, self.model, *self.others):
            service.ready()

    def play(self, kills: Mapping[int, str], *, down_s: float = 1.0) -> None:
        """Train to the end.

        Args:
            kills: Which process is killed once so many steps are done: ``model``, ``sandbox`` or ``trainer``.
            down_s: Seconds until it is started again.
        """
        self.begin()
        self.trainer.start()
        for step, name in sorted(kills.items()):
            self._until(lambda step=step: self.done() >= step)  # type: ignore[misc]
            victim: Service = getattr(self, name)
            victim.kill()
            time.sleep(down_s)
            if name == "trainer":
                victim.command = [*victim.command, "--resume"]
            victim.start()
        assert self.trainer.process is not None
        self._until(lambda: self.trainer.process is not None and self.trainer.process.poll() is not None)
        assert self.trainer.process.returncode == 0, self.trainer.tail()

    def done(self) -> int:
        """Steps that are done."""
        if not (self.run / "metrics.jsonl").exists():
            return 0
        return max((int(line["step"]) for line in read_run(self.run).metrics() if "loss" in line), default=0)

    def _until(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + _LONG_S
        while not what():
            if self.done() < self.steps:
                self.trainer.running()
            assert time.monotonic() < until, f"no progress: {self.trainer.tail()}"
            time.sleep(0.05)


def vllm_servers(model: Path, folder: Path, *more: str) -> Callable[[int], Service]:
    """What makes a real ``vllm serve`` of a model, of its port.

    Args:
        model: The model.
        folder: For its log.
        *more: Further words for it, which go before its own.
    """

    def serve(port: int) -> Service:
        command, environment = serve_command(model, port)
        log = folder / f"model-{port}.log"
        return Service("model", [*command, *more], log, f"http://127.0.0.1:{port}/health", environment)

    return serve


@contextlib.contextmanager
def chain(
    folder: Path,
    model: Path,
    serve: Callable[[int], Service],
    *,
    steps: int,
    options: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    servers: int = 1,
    processes: int = 1,
) -> Iterator[Chain]:
    """Prepare the processes; all are killed at the end.

    Args:
        folder: For everything that they write.
        model: The model to train.
        serve: Makes the model's server, of its port.
        steps: Steps to train.
        options: Further words for ``rstar2 train``; an option among them replaces the default one.
        settings: Words of ``--set`` in place of its own.
        servers: How many serve the model.
        processes: How many train, started by torchrun.
    """
    port = free_port()
    ports = [free_port() for _ in range(servers)]
    sandbox = Service(
        "sandbox",
        [*_RSTAR2, "sandbox", "serve", "--port", str(port), "--isolation", "best", "--workers", "2"],
        folder / "sandbox.log",
        f"http://127.0.0.1:{port}/healthz",
    )
    every = {
        "engine": "vllm-server",
        "engine.base_urls": json.dumps([f"http://127.0.0.1:{one}" for one in ports]),
        "engine.weights_dir": str(folder / "weights"),
        "engine.start_timeout_s": "300",
        "env.sandbox_url": f"http://127.0.0.1:{port}",
        "max_turn_tokens": "4",
        "max_episode_tokens": "96",
        "threads": "1",
        "dtype": "float32",
        "progress": "false",
        **(settings or {}),
    }

    def trainer_of(run: Path, options: Sequence[str], processes: int) -> Service:
        words = ["train", "grpo_roc", "--model", str(model)]
        own = {"--env": f"{SUPPORT / 'chain_env.py'}:ChainEnv", "--out": str(run), "--steps": str(steps)}
        own |= {"--save-every": "1", "--lr": "1e-3", "--group-size": "2", "--problems-per-step": "2"}
        words += [word for name, value in own.items() if name not in options for word in (name, value)]
        words += [word for name, value in every.items() for word in ("--set", f"{name}={value}")]
        words += options
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        began = [*launcher, "--no-python", *_RSTAR2] if processes > 1 else _RSTAR2
        return Service("trainer", [*began, *words], folder / f"{run.name}.log")

    first, *others = [serve(one) for one in ports]
    run = folder / "run"
    made = Chain(run, steps, first, sandbox, trainer_of(run, options, processes), trainer_of, others)
    try:
        yield made
    finally:
        for service in (made.trainer, first, *others, sandbox):
            service.kill()
