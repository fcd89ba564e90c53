"""Processes of a run: started by torchrun, as a user starts them, or each by itself with the variables of torchrun."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import prepared
from places import SUPPORT

_RUN_S, _LOOK_S = 500.0, 0.05


def launch(
    script: Path, *arguments: str, beside: Path | None = None, processes: int = 2, torchrun: bool = False
) -> str:
    """Run a script on several processes and wait for all.

    Args:
        script: The script.
        *arguments: Its arguments.
        beside: A folder whose modules it may import, in addition to those of the tests' support.
        processes: Number of processes.
        torchrun: Whether torchrun starts them although there is a prepared process, which takes a third of the time.

    Returns:
        What the processes printed.

    Raises:
        AssertionError: One of them failed; the message is the end of what they wrote to standard error.
    """
    folders = [SUPPORT] if beside is None else [SUPPORT, beside]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    if not torchrun and prepared.SOCKET in os.environ:
        return _together(ranks([str(script), *arguments], processes, variables))
    launcher = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)),
            *(str(script), *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
        start_new_session=True,
    )
    try:
        stdout, stderr = launcher.communicate(timeout=_RUN_S)
    finally:
        # The launcher's children are in its session: none may outlive the test.
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
    assert launcher.returncode == 0, stderr[-3000:]
    return stdout


def ranks(words: Sequence[str], processes: int, variables: Mapping[str, str], *, logs: Path | None = None) -> list[Any]:
    """Start each process of a run on this machine, by ``prepared.popen``.

    Args:
        words: What follows ``python`` on the command line.
        processes: Number of processes.
        variables: The variables of each, without those that torchrun sets.
        logs: A folder in which ``RANK.log`` gets what a process prints, which goes to pipes otherwise.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    size = str(processes)
    world = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = []
    try:
        for rank in map(str, range(processes)):
            own = {**variables, **world, "RANK": rank, "LOCAL_RANK": rank}
            with nullcontext(subprocess.PIPE) if logs is None else (logs / f"{rank}.log").open("w") as out:
                started.append(prepared.popen(words, env=own, stdout=out, stderr=out))
    except BaseException:
        end(started)
        raise
    return started


def end(started: Sequence[Any]) -> None:
    """Kill the processes that still run, and wait for them."""
    for process in started:
        process.kill()
    for process in started:
        process.wait()


def _together(started: Sequence[Any]) -> str:
    """Wait for processes that print to pipes, until one fails; returns what they printed."""
    until = time.monotonic() + _RUN_S
    try:
        codes: list[int | None] = [None]
        while None in codes and not any(codes) and time.monotonic() < until:
            time.sleep(_LOOK_S)
            codes = [process.poll() for process in started]
    finally:
        end(started)
    printed = [process.communicate() for process in started]
    assert not any(code != 0 for code in codes), f"{codes}\n" + "\n".join(err[-3000:] for _, err in printed)
    return "".join(out for out, _ in printed)
