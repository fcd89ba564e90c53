"""``StdioLimits``: limits for a long-lived program of the user that communicates over standard input and output.

Covered: the limits, the search for layers of isolation that work on this machine, and the command that starts a program
under limits. Not covered: the layers themselves (``inside.stdio``), and the pipes to the program.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.options.declare import check_options, option
from rstar2_env.sandbox.base import warn_once
from rstar2_env.sandbox.inside import launch
from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.inside.tidy import remove_tree
from rstar2_env.sandbox.job import Capability
from rstar2_env.sandbox.local.process import make_scratch
from rstar2_env.sandbox.options import IsolationMode

_PROBE_S = 60.0
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class StdioLimits:
    """Limits of a long-lived program of the user, such as an MCP server.

    Attributes:
        memory_mb: Maximum private memory of each process, in MiB. Memory that processes share (shared mappings, files
            in memory) is not counted.
        file_mb: Maximum size of each file that the program writes, in MiB.
        processes: Maximum number of concurrent processes and threads. All of them end with the program.
        network: Whether the program may use the network and other sockets.
        write: Folders and files that the program may write, in addition to its own temporary folder (``TMPDIR``).
        isolation: ``"strict"``, the default, refuses to start without a required layer, ``"best"`` runs with the
            available layers and warns once, ``"none"`` keeps only the limits on memory and on files.
    """

    memory_mb: int = option(1024, least=1, most=1 << 24)
    file_mb: int = option(64, least=1, most=1 << 24)
    processes: int = option(256, least=1, most=1 << 20)
    network: bool = False
    write: tuple[str, ...] = ()
    isolation: IsolationMode = "strict"

    _place: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of range, or a folder to write does not exist.
        """
        check_options(self, self._place)
        for path in self.write:
            if not os.path.exists(os.path.expanduser(path)):
                raise ConfigurationError(
                    f"The option `{self._place}write` contains the folder {path!r}, which does not exist: create the "
                    "folder."
                )


@contextlib.contextmanager
def limited(
    limits: StdioLimits, command: Sequence[str], without: Sequence[str] = ()
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Within the ``with`` block, provide the command and the environment variables that start a program under limits.

    Args:
        limits: The limits of the program.
        command: The program and its arguments.
        without: Isolation layers to omit, by their short names; for tests of machines that lack them.

    Yields:
        The command, which may be started once as a child of this process, and the environment variables to add for it
        (``TMPDIR``).

    Raises:
        SandboxUnavailableError: The machine lacks a layer that ``isolation="strict"`` requires.
    """
    plan = check_layers(limits, without)
    with _scratch() as folder:
        order = {
            "plan": plan,
            "parent": os.getpid(),
            "folder": folder,
            "writable": [os.path.realpath(os.path.expanduser(path)) for path in limits.write],
            "network": limits.network,
            "memory": limits.memory_mb << 20,
            "file": limits.file_mb << 20,
            "processes": limits.processes,
        }
        yield _words(order, *command), {"TMPDIR": folder}


def check_layers(limits: StdioLimits, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the plan of the isolation layers for programs under ``limits``; layers named in ``without`` are omitted.

    The plan is computed once in each process.

    Raises:
        SandboxUnavailableError: The machine lacks a layer that ``isolation="strict"`` requires.
    """
    if limits.isolation == "none" or not linux.IS_LINUX:
        gaps = ["this system does not have the isolation features of Linux"] if limits.isolation != "none" else []
        plan: dict[str, Any] = {"isolated": False, "namespaces": []}
    else:
        with _lock:
            plan, layers = _find(tuple(without))
        wanted = [one for one in layers if not (limits.network and one.name == "no network")]
        gaps = [f"{one.name} ({one.detail})" for one in wanted if not one.active]
    if gaps and limits.isolation == "strict":
        raise SandboxUnavailableError(
            "isolation='strict' requires layers of isolation that this machine does not provide: "
            f"{'; '.join(gaps)}. With isolation=best, your program runs with the layers that the machine "
            "provides."
        )
    if gaps:
        warn_once(
            f"A program of yours (such as an MCP server) runs without these layers of isolation: {'; '.join(gaps)}."
        )
    return plan


@functools.cache
def _find(without: tuple[str, ...]) -> tuple[dict[str, Any], list[Capability]]:
    try:
        done = subprocess.run(
            _words({"without": without}), capture_output=True, text=True, timeout=_PROBE_S, cwd="/", check=False
        )
    except subprocess.TimeoutExpired:
        raise SandboxUnavailableError(
            f"The layers of isolation could not be tested within {_PROBE_S:g} s: the machine is too busy, or a system "
            "call hangs."
        ) from None
    if done.returncode:
        raise SandboxUnavailableError(f"The layers of isolation could not be tested: {done.stderr[-1000:].strip()}")
    found = json.loads(done.stdout)
    return found["plan"], [Capability(**layer) for layer in found["guarantees"]]


def _words(order: dict[str, Any], *command: str) -> list[str]:
    return [sys.executable, "-I", "-S", launch.__file__, "stdio", json.dumps(order), *command]


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    if not linux.IS_LINUX:
        with tempfile.TemporaryDirectory() as folder:
            yield folder
        return
    outer, lock = make_scratch()
    try:
        os.chmod(outer, 0o711)  # a program that runs as a separate user must be able to enter it
        folder = os.path.join(outer, "files")
        os.mkdir(folder, 0o700)
        yield folder
    finally:
        remove_tree(outer)
        os.close(lock)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
