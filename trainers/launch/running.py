"""``StartedCommand``: a command of a launch as a child process, which is terminated when this process ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rstar2_env.core.errors import ConfigurationError, Rstar2Error

from .commands import LaunchCommand

POLL_S = 0.2
_CHILD = Path(__file__).with_name("child.py")
_HEALTH_S, _END_S = 5.0, 30.0
_TAIL = 20


class LaunchError(Rstar2Error):
    """A process of a launch ended unexpectedly or did not become ready."""


@dataclass
class StartedCommand:
    """A command that runs, or ran, as a child process.

    Attributes:
        command: The command, with its name, devices and environment variables.
        log: File for its output; ``None`` for this process's output.
        inherited: File descriptors that the process must inherit.
        process: The child process, running or ended; ``None`` before the first start.
        starts: Number of starts.
    """

    command: LaunchCommand
    log: Path | None = None
    inherited: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def start(self) -> None:
        """Start the child process in a new session; the child is terminated when this process ends."""
        cores = str(self.command.devices) if self.command.devices.cores else "-"
        words = [sys.executable, str(_CHILD), cores, str(os.getpid()), *self.command.words]
        environment = {**os.environ, **self.command.environment(os.environ)}
        with nullcontext() if self.log is None else self.log.open("ab") as output:
            self.process = subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.inherited,
            )
        self.starts += 1

    @property
    def ended(self) -> int | None:
        """Exit code of the process; ``None`` while it runs."""
        return None if self.process is None else self.process.poll()

    def healthy(self) -> bool:
        """Return whether the server answers a request."""
        try:
            with urllib.request.urlopen(f"{self.command.url}/health", timeout=_HEALTH_S) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def check_free(self) -> None:
        """Check that no other program uses the server's port.

        Raises:
            ConfigurationError: The port is in use.
        """
        address = urlsplit(self.command.url)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address.hostname or "127.0.0.1", address.port or 0))
            except OSError as error:
                raise ConfigurationError(
                    f"{self.command.name} cannot listen on {self.command.url}: {error.strerror}. Choose another port: "
                    "--port on the command line, or serve.port of a pipeline's stage."
                ) from error

    def tail(self) -> str:
        """Return the last lines of the log, to quote in a message."""
        if self.log is None:
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
        return "".join(f"\n  {line}" for line in lines) + f"\n({self.log})"

    def signal(self, number: int) -> None:
        """Send a signal to the process's session."""
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def end(processes: Sequence[StartedCommand]) -> None:
    """Stop running processes: terminate them first, then kill them if they do not end or this call is interrupted."""
    started = [one for one in processes if one.process is not None]
    try:
        for one in started:
            if one.ended is None:
                one.signal(signal.SIGTERM)
        until = time.monotonic() + _END_S
        while time.monotonic() < until and any(one.ended is None for one in started):
            time.sleep(POLL_S / 4)
    finally:
        for one in started:
            # Its child processes may still run although it has ended.
            one.signal(signal.SIGKILL)
            assert one.process is not None  # chosen so above
            one.process.wait()
