"""The zygote: a warm interpreter that forks one child for each order, and reports how each ended.

It is single-threaded, holds the preloaded modules, and never sees a job or an output, since every child would inherit
them. It communicates with the warden over a message socket on descriptor 0; when that closes it ends, and as it is pid
1 of a pid namespace, the kernel ends every child with it. Covered: the start. Not covered: the loop (``server``).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys

from .. import orders
from ..kernel import linux
from . import warm


def main() -> None:
    """Warm up as the first message says, then serve."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.environ.pop("LD_BIND_NOW", None)
    linux.die_with_parent()
    linux.become_subreaper()
    linux.no_new_privileges()
    # With 1, unlike 0, a core dump does not even go to a program of the host (a pipe in core_pattern). Every child
    # inherits it, and the filter keeps it.
    with contextlib.suppress(ValueError, OSError):  # where an ordinary user's own limit is 0 already
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    options = json.loads(control.recv(1 << 16))
    try:
        if options["plan"]["namespaces"]:
            linux.drop_bounding_capabilities()
        linux.set_dumpable(False)
        warm.load(options["preload"], options["site_dirs"], options["warmup"])
        warm.fill_gaps()
        # The modules that run in every call are reimported now, to lie close together in memory (see ``warm``).
        for module in (linux, orders):
            package, _, name = module.__name__.rpartition(".")
            delattr(sys.modules[package], name)  # otherwise `from . import` would find the old module there
            del sys.modules[module.__name__]
        from ..kernel.isolation import Isolation
        from ..kernel.plan import Plan
        from .server import ZygoteServer

        plan = Plan(**options["plan"])
        isolation = Isolation(plan, options["readable"])
        server = ZygoteServer(control, plan, isolation)
        warm.settle()
        isolation.measure()
    except BaseException as error:
        control.send(orders.pack_reply(orders.FAILED, text=f"{type(error).__name__}: {error}"))
        return
    control.send(orders.pack_reply(orders.READY))
    try:
        server.serve()
    finally:
        server.close()
