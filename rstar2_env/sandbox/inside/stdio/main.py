"""Starts a program of the user under limits: ``launch.py stdio ORDER COMMAND...``.

Without a command, it prints the layers of isolation that work on this machine. ``ORDER`` is a JSON object with
``without`` (layers to omit); for a program also ``plan``, ``parent``, ``folder``, ``writable``, ``network``,
``memory``, ``file`` and ``processes``. On Linux, this process becomes the keeper of the program (``keeper``) and exits
with the program's exit code; elsewhere, the program replaces this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..kernel import linux
from ..kernel.attempt import reason
from ..kernel.plan import IsolationPlan
from ..kernel.users import free_users
from . import keeper, layers


def main() -> None:
    """Run the given command under limits; without a command, print the working layers as JSON."""
    order, command = json.loads(sys.argv[2]), sys.argv[3:]
    if not command:
        print(json.dumps(layers.find(order["without"]).record()))
    elif linux.IS_LINUX:
        sys.exit(_keep(order, command))
    else:
        _limit(order)
        _replace(command)


def _keep(order: dict[str, Any], command: list[str]) -> int:
    plan = IsolationPlan(**{**order["plan"], "namespaces": tuple(order["plan"]["namespaces"])})
    network = order["network"]
    with _isolating(command):  # both depend on the id of this process, and on the processes that it sees
        user, most = free_users() if plan.users_from else 0, layers.most_processes(plan, order["processes"])

    def begin(orphaned: Callable[[], bool]) -> None:
        _limit(order)
        with _isolating(command):
            layers.enter(plan, order["folder"], user, most, order["writable"], network=network)
        if not orphaned():
            _replace(command)

    with _isolating(command):
        return keeper.keep(plan, begin, order["parent"], network=network)


@contextlib.contextmanager
def _isolating(command: list[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        sys.exit(f"The program {command[0]} cannot be isolated: {reason(error)}")


def _limit(order: dict[str, Any]) -> None:
    for kind, most in (
        # Of the address space, only the writable part counts: some runtimes reserve far more than they use.
        (resource.RLIMIT_DATA, order["memory"]),
        (resource.RLIMIT_FSIZE, order["file"]),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # the limit in force is lower
            resource.setrlimit(kind, (most, most))


def _replace(command: list[str]) -> None:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"The program {command[0]} cannot be started: {error.strerror}")
