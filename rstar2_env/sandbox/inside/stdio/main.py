"""Starts a program of the user under limits: ``launch.py stdio ORDER COMMAND...``; without a command, prints layers.

``ORDER`` is JSON: ``without`` for the layers; for a program also ``plan``, ``parent``, ``folder``, ``writable``,
``network``, ``memory``, ``file`` and ``processes``. This process is replaced by the program, so its id, its standard
streams and its exit code are those of the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys

from ..kernel import linux
from ..kernel.plan import IsolationPlan
from . import layers


def main() -> None:
    """Apply the limits to this process and replace it by the command; without a command, print the layers."""
    order, command = json.loads(sys.argv[2]), sys.argv[3:]
    if not command:
        print(json.dumps(layers.find(order["without"]).record()))
        return
    for kind, most in (
        # Of the address space, only the writable part counts: some runtimes reserve far more than they use.
        (resource.RLIMIT_DATA, order["memory"]),
        (resource.RLIMIT_FSIZE, order["file"]),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # the limit in force is lower
            resource.setrlimit(kind, (most, most))
    if linux.IS_LINUX:
        try:
            plan = IsolationPlan(**{**order["plan"], "namespaces": tuple(order["plan"]["namespaces"])})
            layers.enter(plan, order["folder"], order["processes"], order["writable"], network=order["network"])
        except OSError as error:
            sys.exit(f"{command[0]} cannot be isolated: {error.args[-1]}")
        if os.getppid() != order["parent"]:  # it ended before this process was bound to it
            return
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")
