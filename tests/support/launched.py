"""A program that launches a server and a trainer which waits: ``launched.py PORT FOLDER``; for what ends a launch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rstar2_env.trainers.launch.commands import LaunchCommand
from rstar2_env.trainers.launch.devices import Devices
from rstar2_env.trainers.launch.running import StartedCommand
from rstar2_env.trainers.launch.servers import Servers, logged
from rstar2_env.trainers.launch.supervisor import Supervisor

CORES = Devices(tuple(sorted(os.sched_getaffinity(0))), cores=True)
TRAINER = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def stop(number, frame):
    (folder / "asked").write_text(str(number))
    deadline = time.monotonic() + 60
    while not (folder / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
(folder / "trainer.pid").write_text(str(os.getpid()))
time.sleep(120)
"""


def server(port: int) -> LaunchCommand:
    """A server of a health check and nothing else."""
    program = str(Path(__file__).with_name("health_server.py"))
    return LaunchCommand("server-0", [sys.executable, program, str(port)], CORES, url=f"http://127.0.0.1:{port}")


def trainer(code: str, *arguments: str) -> LaunchCommand:
    """A trainer that is a few lines of Python."""
    return LaunchCommand("trainer", [sys.executable, "-c", code, *arguments], CORES)


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    servers = Servers(logged([server(int(sys.argv[1]))], folder))
    (folder / "launcher.pid").write_text(str(os.getpid()))
    raise SystemExit(Supervisor(servers, StartedCommand(trainer(TRAINER, str(folder)))).run())
