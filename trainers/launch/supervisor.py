"""``Supervisor``: starts the servers and the trainer, supervises them, and stops the servers when the trainer ends.

Covered: waiting until servers are healthy; restarting a server at the same address, a limited number of times; passing
Ctrl-C and SIGTERM only to the trainer, so that it can finish its step and write its checkpoint while the servers still
answer; ending all processes when the supervisor's process ends for any reason (see ``child``). Not covered: processes
on other machines.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from .running import POLL_S, LaunchError, StartedCommand, end
from .servers import Servers, too_often


@dataclass
class Supervisor:
    """The processes of a launch.

    Attributes:
        servers: The servers.
        trainer: The trainer, which shares this process's output.
    """

    servers: Servers
    trainer: StartedCommand
    _asked: list[int] = field(default_factory=list)

    def run(self) -> int:
        """Start the servers and the trainer, and wait until the trainer ends.

        Returns:
            The trainer's exit code; if a signal ended it, 128 plus the signal's number, as in a shell.

        Raises:
            ConfigurationError: A port is in use.
            LaunchError: A server ended before it was ready, ended too often, or was not ready in time.
        """
        self.servers.check()
        with self._signals():
            try:
                self.servers.start(lambda: bool(self._asked))
                if self._asked:
                    return 128 + self._asked[0]
                self.trainer.start()
                return self._watch()
            finally:
                end([self.trainer, *self.servers.running])

    def _watch(self) -> int:
        """Wait until the trainer ends; until then, restart servers that end."""
        while (code := self.trainer.ended) is None:
            if not self._asked:
                self.servers.revive()
            if self.servers.lost:
                raise LaunchError(too_often(self.servers.lost[0]))
            time.sleep(POLL_S)
        return 128 - code if code < 0 else code

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass Ctrl-C and SIGTERM to the trainer; treat the closing of the terminal as SIGTERM."""

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


def _workers(pid: int) -> list[int]:
    """Return a list with the id of the process to interrupt: the first that ``torchrun`` started, or the trainer.

    ``torchrun`` reacts to a signal by ending its processes; if one of these processes is interrupted, all of them stop
    after the same step.

    Args:
        pid: Id of the trainer's process, which may be ``torchrun``.
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
