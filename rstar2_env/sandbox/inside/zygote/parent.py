"""Starts a parent process: a fork of the zygote that imports modules once, then forks a child for each order.

A parent has one thread and never receives jobs or outputs, since every child would inherit them. Covered: the start.
Not covered: the loop of a parent (``server``), and the layout of its memory (``warm``).
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from .. import orders
from ..kernel import linux
from . import warm

_ROOM_TO_IMPORT = 256 << 20
"""Bytes added to a program's limit on address space, for modules that the program's parent has not imported."""


def main(control: socket.socket, names: list[str], options: dict[str, Any]) -> None:
    """Import modules, prepare the interpreter's memory, then fork children until the warden closes the socket.

    Args:
        control: Message socket to the warden.
        names: The modules of ``preload`` that this parent imports.
        options: The warden's first message to the zygote, with the keys ``preload``, ``warmup`` (a dict from a module's
            name to a program; the program under the key "" runs in every parent that imports a module),
            ``site_dirs`` (folders of installed packages), ``plan`` (the layers of isolation) and ``readable`` (paths
            that programs can read).
    """
    zygote = os.getppid()
    linux.die_with_parent()
    linux.become_subreaper()
    if os.getppid() != zygote:
        return
    preload: list[str] = options["preload"]
    try:
        warm.find(preload, options["site_dirs"])
        warm.load(names, _warmup(names, preload, options["warmup"]))
        warm.fill_gaps()
        # Modules that run in every call are imported again, so that they are close together in memory (see ``warm``).
        for module in (linux, orders):
            package, _, name = module.__name__.rpartition(".")
            delattr(sys.modules[package], name)  # otherwise `from . import` would find the old module there
            del sys.modules[module.__name__]
        from ..kernel.isolation import Isolation
        from ..kernel.plan import IsolationPlan
        from .server import ZygoteServer

        plan = IsolationPlan(**options["plan"])
        isolation = Isolation(plan, options["readable"])
        server = ZygoteServer(control, plan, isolation)
        warm.settle(plan, options["readable"])
        isolation.measure()
        if names != preload:
            isolation.base_memory += _ROOM_TO_IMPORT
    except BaseException as error:
        control.send(orders.pack_reply(orders.FAILED, text=f"{type(error).__name__}: {error}"))
        return
    control.send(orders.pack_reply(orders.READY))
    try:
        server.serve()
    finally:
        server.close()


def _warmup(names: list[str], preload: list[str], programs: dict[str, str]) -> str:
    general = programs.get("", "") if names or not preload else ""
    return "".join(programs.get(name, "") for name in names) + general
