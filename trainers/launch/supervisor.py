"""``run``: servers, then the trainer, from the first start to the last end.

Covered: waiting for health; a server that ends on its own, which is started again at its address, a bounded number of
times; Ctrl-C and SIGTERM, which the trainer alone gets, so that its step can end and its checkpoint be written while
the servers still answer; the end of all processes, whatever ended this one (see ``child``). Not covered: processes on
other machines.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from rstar2_env.core.errors import ConfigurationError, Rstar2Error

from .commands import Command

_CHILD = Path(__file__).with_name("child.py")
_POLL_S, _HEALTH_S, _END_S = 0.2, 5.0, 30.0
_TAIL = 20


class LaunchError(Rstar2Error):
    """A process of a launch ended, or never got ready."""


@dataclass
class Running:
    """A command that was started.

    Attributes:
        command: The command.
        log: Where its output goes; ``None`` for this process's own.
        process: The process.
        starts: How often it was started.
    """

    command: Command
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        """Start it, in a session of its own, bound to this process."""
        cores = str(self.command.devices) if self.command.devices.cores else "-"
        words = [sys.executable, str(_CHILD), cores, str(os.getpid()), *self.command.words]
        environment = {**os.environ, **self.command.environment(os.environ)}
        output = None if self.log is None else self.log.open("ab")
        try:
            self.process = subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            if output is not None:
                output.close()
        self.starts += 1

    @property
    def ended(self) -> int | None:
        """Its exit code; ``None`` while it runs."""
        return None if self.process is None else self.process.poll()

    def healthy(self) -> bool:
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.command.url}/health", timeout=_HEALTH_S) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def tail(self) -> str:
        """The end of its log, as lines of a message."""
        if self.log is None:
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
        return "".join(f"\n  {line}" for line in lines) + f"\n({self.log})"

    def signal(self, number: int) -> None:
        """Send a signal to its session."""
        if self.process is not None:
            _to_group(self.process.pid, number)


@dataclass
class Supervisor:
    """The processes of a launch.

    Attributes:
        servers: The servers.
        trainer: The trainer.
        wait_s: Seconds until every server must answer.
        restarts: How often one server is started again.
        say: Tells the user a line.
    """

    servers: list[Running]
    trainer: Running
    wait_s: float = 900.0
    restarts: int = 3
    say: Callable[[str], None] = print
    _asked: list[int] = field(default_factory=list)

    def run(self) -> int:
        """Play the whole launch.

        Returns:
            The trainer's exit code; that of its signal, as a shell gives it, where one ended it.

        Raises:
            ConfigurationError: A port is in use.
            LaunchError: A server ended before it was ready, or too often; or is not ready in time.
        """
        for server in self.servers:
            _check_free(server.command)
        with self._signals():
            try:
                self._serve()
                if self._asked:
                    return 128 + self._asked[0]
                self.trainer.start()
                return self._watch()
            finally:
                self._end()

    def _serve(self) -> None:
        for server in self.servers:
            server.start()
            self.say(f"{server.command.name} on {_where(server)}: {server.command.url} (log: {server.log})")
        began = time.monotonic()
        waiting = list(self.servers)
        while waiting and not self._asked:
            for server in list(waiting):
                if server.ended is not None:
                    raise LaunchError(
                        f"{server.command.name} ended with {server.ended} before it was ready:{server.tail()}"
                    )
                if server.healthy():
                    waiting.remove(server)
                    self.say(f"{server.command.name} is ready after {time.monotonic() - began:.0f} s.")
            if waiting and time.monotonic() - began > self.wait_s:
                late = waiting[0]
                raise LaunchError(
                    f"{late.command.name} is not ready after {self.wait_s:g} s; --wait-s gives it longer:{late.tail()}"
                )
            time.sleep(_POLL_S if waiting else 0)

    def _watch(self) -> int:
        """Until the trainer ends; servers that end before are started again."""
        while (code := self.trainer.ended) is None:
            for server in self.servers:
                if server.ended is None or self._asked:
                    continue
                if server.starts > self.restarts:
                    raise LaunchError(
                        f"{server.command.name} ended with {server.ended} for the {server.starts}. time:{server.tail()}"
                    )
                self.say(f"{server.command.name} ended with {server.ended}; it is started again.")
                server.start()
            time.sleep(_POLL_S)
        return 128 - code if code < 0 else code

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass Ctrl-C and SIGTERM on to the trainer; a terminal that closes counts as the latter."""

        def handle(number: int, frame: FrameType | None) -> None:
            self._asked.append(number)
            passed = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM
            if self.trainer.process is not None and self.trainer.ended is None:
                for process in _workers(self.trainer.process.pid):
                    _to(process, passed)

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self) -> None:
        """End what still runs: asked first, killed where that does not help."""
        processes = [one for one in (self.trainer, *self.servers) if one.process is not None]
        for one in processes:
            if one.ended is None:
                one.signal(signal.SIGTERM)
        until = time.monotonic() + _END_S
        while time.monotonic() < until and any(one.ended is None for one in processes):
            time.sleep(_POLL_S / 4)
        for one in processes:
            # What it started may still be there although it has ended itself.
            one.signal(signal.SIGKILL)
            assert one.process is not None  # chosen so above
            one.process.wait()


def supervised(commands: Sequence[Command], trainer: Command, logs: Path) -> tuple[list[Running], Running]:
    """The commands, ready to start; servers write logs to a folder.

    Args:
        commands: The servers.
        trainer: The trainer, which has this process's output.
        logs: The folder.
    """
    if commands:
        logs.mkdir(parents=True, exist_ok=True)
    return [Running(one, logs / f"{one.name}.log") for one in commands], Running(trainer)


def _where(running: Running) -> str:
    devices = running.command.devices
    return f"{'core' if devices.cores else 'device'}{'s' if len(devices) > 1 else ''} {devices}"


def _check_free(command: Command) -> None:
    """Refuse a port at which somebody listens, whose answers would be taken for the server's."""
    address = urlsplit(command.url)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.hostname or "127.0.0.1", address.port or 0))
        except OSError as error:
            raise ConfigurationError(
                f"{command.name} cannot listen on {command.url}: {error.strerror}. Choose another port with --port."
            ) from error


def _workers(pid: int) -> list[int]:
    """Who hears of an interrupt: the processes that ``torchrun`` started, or the trainer itself.

    ``torchrun`` answers a signal by ending its processes; any one of these stops them all after the same step.
    """
    children = Path(f"/proc/{pid}/task/{pid}/children")
    command = Path(f"/proc/{pid}/cmdline")
    try:
        launched = b"torch.distributed.run" in command.read_bytes().split(b"\0")
        found = [int(child) for child in children.read_text().split()] if launched else []
    except OSError:
        return [pid]
    return found[:1] or [pid]


def _to(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _to_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
