"""A launch ends all of its processes, whatever happens, and says what went wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from chain import free_port
from launched import CORES, server, trainer
from places import SUPPORT
from waiting import wait_for

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.launch.commands import LaunchCommand
from rstar2_env.trainers.launch.running import LaunchError, StartedCommand
from rstar2_env.trainers.launch.servers import Servers, logged
from rstar2_env.trainers.launch.supervisor import Supervisor


def supervisor(folder: Path, servers: list[LaunchCommand], command: LaunchCommand, **options: float) -> Supervisor:
    lines: list[str] = []
    served = Servers(logged(servers, folder), say=lines.append, **options)  # type: ignore[arg-type]
    made = Supervisor(served, StartedCommand(command))
    made.lines = lines  # type: ignore[attr-defined]
    return made


def answers(port: int, path: str = "/health") -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_trainers_exit_code_is_the_launchs_and_its_servers_end_with_it(tmp_path: Path) -> None:
    port = free_port()
    # The trainer finds the server ready.
    code = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/health'); raise SystemExit(7)"
    assert supervisor(tmp_path, [server(port)], trainer(code)).run() == 7
    assert not answers(port)


def test_a_trainer_that_a_signal_ended_gives_the_code_that_a_shell_would(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert supervisor(tmp_path, [], trainer(code)).run() == 128 + signal.SIGKILL


def test_a_server_that_ends_before_it_is_ready_ends_the_launch_with_its_last_words(tmp_path: Path) -> None:
    broken = LaunchCommand(
        "server-0", [sys.executable, "-c", "raise SystemExit('no such model')"], CORES, url="http://127.0.0.1:9"
    )
    other = free_port()
    with pytest.raises(LaunchError, match=r"server-0 ended with exit code 1 before it was ready:\n  no such model"):
        supervisor(tmp_path, [broken, server(other)], trainer("raise AssertionError")).run()
    assert not answers(other)


def test_a_server_that_is_never_ready_is_not_waited_for_forever(tmp_path: Path) -> None:
    mute = LaunchCommand(
        "server-0", [sys.executable, "-c", "import time; time.sleep(600)"], CORES, url="http://127.0.0.1:9"
    )
    launch = supervisor(tmp_path, [mute], trainer("raise AssertionError"), start_timeout_s=0.5)
    with pytest.raises(LaunchError, match=r"not ready after 0\.5 s; .* --timeout"):
        launch.run()
    assert launch.servers.running[0].ended is not None


def test_a_port_at_which_somebody_listens_is_refused_before_anything_starts(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen([sys.executable, str(SUPPORT / "health_server.py"), str(port)]) as other:
        try:
            wait_for(lambda: answers(port))
            launch = supervisor(tmp_path, [server(port)], trainer("raise AssertionError"))
            with pytest.raises(ConfigurationError, match=r"cannot listen on .*--port"):
                launch.run()
            assert launch.servers.running[0].process is None
        finally:
            other.kill()


def test_a_server_that_ends_is_started_again_at_its_address_a_bounded_number_of_times(tmp_path: Path) -> None:
    port = free_port()
    code = f"""
import time, urllib.request
def ask(path):
    try:
        return urllib.request.urlopen('http://127.0.0.1:{port}' + path, timeout=5).status
    except OSError:
        return 0
ask("/end")
deadline = time.monotonic() + 60
while ask("/health") != 200 and time.monotonic() < deadline:
    time.sleep(0.05)
raise SystemExit(0 if ask("/health") == 200 else 1)
"""
    launch = supervisor(tmp_path, [server(port)], trainer(code))
    assert launch.run() == 0
    assert launch.servers.running[0].starts == 2
    assert any("ended with exit code 3; restarting it" in line for line in launch.lines)  # type: ignore[attr-defined]
    endless = trainer(code.replace("raise SystemExit", "time.sleep(600) #"))
    with pytest.raises(LaunchError, match=r"server-0 ended with exit code 3 .* already started 1 times"):
        supervisor(
            tmp_path,
            [server(free := free_port())],
            LaunchCommand("trainer", [word.replace(str(port), str(free)) for word in endless.words], CORES),
            restarts=0,
        ).run()


@contextmanager
def launched(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """A launch as a process: it, its server's port, and its trainer's process."""
    port = free_port()
    command = [sys.executable, str(SUPPORT / "launched.py"), str(port), str(folder)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SUPPORT)}, start_new_session=True)
    try:
        wait_for(lambda: (folder / "trainer.pid").exists() and bool((folder / "trainer.pid").read_text()))
        yield process, port, int((folder / "trainer.pid").read_text())
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_stops_the_trainer_alone_and_its_server_answers_until_it_ended(tmp_path: Path) -> None:
    with launched(tmp_path) as (process, port, pid):
        process.send_signal(signal.SIGINT)
        wait_for((tmp_path / "asked").exists)
        assert answers(port)
        (tmp_path / "go").touch()
        assert process.wait(60) == 130
        assert not answers(port)
        assert not alive(pid)


def test_nothing_outlives_a_launch_that_is_killed(tmp_path: Path) -> None:
    with launched(tmp_path) as (process, port, pid):
        process.kill()
        wait_for(lambda: not alive(pid) and not answers(port))
