"""``Servers``: starts several servers, waits until they are ready, and restarts a server that exits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rstar2_env.core.progress import progress

from .commands import LaunchCommand
from .running import POLL_S, LaunchError, StartedCommand, end


@dataclass
class Servers:
    """Servers of one model.

    Attributes:
        running: The servers, started or not.
        start_timeout_s: Seconds within which every server must become ready.
        restarts: Maximum number of restarts per server.
        say: Prints a line for the user.
        lost: Servers that ended after their last restart.
    """

    running: Sequence[StartedCommand]
    start_timeout_s: float = 900.0
    restarts: int = 3
    say: Callable[[str], None] = print
    lost: list[StartedCommand] = field(default_factory=list)

    def check(self) -> None:
        """Check whether all servers can be started, before the first start.

        Raises:
            ConfigurationError: A port is in use, or a device does not exist.
        """
        for server in self.running:
            server.command.environment(os.environ)
            if not server.command.node:
                server.check_free()

    def start(self, asked: Callable[[], bool] = lambda: False) -> None:
        """Start the servers, and wait until all answer or a stop is requested.

        Args:
            asked: Function that returns whether a stop was requested.

        Raises:
            LaunchError: A server ended before it was ready, or was not ready in time.
        """
        for server in self.running:
            server.start()
            self.say(f"{server.command.name} on {_where(server)}: {server.command.url} (log: {server.log})")
        began = time.monotonic()
        waiting = list(self.running)
        with progress("starting the servers", show=True) as report:
            while waiting and not asked():
                for server in list(waiting):
                    if server.ended is not None:
                        raise LaunchError(
                            f"{server.command.name} ended with exit code {server.ended} before it was ready:"
                            f"{server.tail()}"
                        )
                    if server.healthy():
                        waiting.remove(server)
                        report(len(self.running) - len(waiting), len(self.running))
                        self.say(f"{server.command.name} is ready after {time.monotonic() - began:.0f} s.")
                if waiting and time.monotonic() - began > self.start_timeout_s:
                    late = waiting[0]
                    raise LaunchError(
                        f"{late.command.name} is not ready after {self.start_timeout_s:g} s; set a longer time with "
                        f"--timeout (serve.start_timeout_s of a stage):{late.tail()}"
                    )
                time.sleep(POLL_S if waiting else 0)

    def revive(self) -> None:
        """Restart servers that ended; a server that was already restarted ``restarts`` times is added to ``lost``."""
        for server in self.running:
            if server.ended is None or server in self.lost:
                continue
            if server.starts > self.restarts:
                self.lost.append(server)
                continue
            self.say(f"{server.command.name} ended with exit code {server.ended}; restarting it.")
            server.start()

    @contextmanager
    def kept(self, all_lost: Callable[[], None]) -> Iterator[None]:
        """Context manager that starts the servers, restarts servers that end, and stops all servers at its end.

        A server that ends too often is not restarted, and the context continues while other servers run.

        Args:
            all_lost: Called from another thread when all servers are lost.

        Raises:
            ConfigurationError: See ``check``.
            LaunchError: See ``start``; also if all servers were lost.
        """
        self.check()
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended, all_lost), name="servers", daemon=True)
        try:
            self.start()
            watcher.start()
            try:
                yield
            except BaseException:
                if len(self.lost) < len(self.running):
                    raise
            if len(self.lost) == len(self.running):
                raise LaunchError("".join(f"\n{too_often(one)}" for one in self.lost).strip())
        finally:
            ended.set()
            try:
                if watcher.is_alive():
                    watcher.join()
            finally:
                end(self.running)

    def _watch(self, ended: threading.Event, all_lost: Callable[[], None]) -> None:
        while not ended.wait(POLL_S):
            before = len(self.lost)
            self.revive()
            for server in self.lost[before:]:
                self.say(too_often(server))
            if len(self.lost) == len(self.running):
                all_lost()
                return


def too_often(server: StartedCommand) -> str:
    """Return the message that a server ended too often and is not restarted."""
    return (
        f"{server.command.name} ended with exit code {server.ended} and is not restarted again, because "
        f"it was already started {server.starts} times:{server.tail()}"
    )


def logged(commands: Sequence[LaunchCommand], logs: Path, inherited: Sequence[int] = ()) -> list[StartedCommand]:
    """Create servers without starting them, each with a log file in a folder; create the folder if it is missing.

    Args:
        commands: The commands of the servers.
        logs: Folder of the log files.
        inherited: File descriptors that the servers must inherit.
    """
    if commands:
        logs.mkdir(parents=True, exist_ok=True)
    return [StartedCommand(one, logs / f"{one.name}.log", inherited) for one in commands]


def _where(running: StartedCommand) -> str:
    devices, node = running.command.devices, running.command.node
    beside = f" of {node}" if node else ""
    return f"{'core' if devices.cores else 'device'}{'s' if len(devices) > 1 else ''} {devices}{beside}"
