"""Starts the zygote: a small interpreter that forks parent processes, which fork the children that run programs.

A parent is a fork of the zygote that has imported some modules. The zygote imports none of them and only waits for the
next order, so that a parent starts from clean memory. The zygote receives orders over a message socket on descriptor 0
and ends when the socket closes. If pid namespaces work, the zygote is pid 1 of a pid namespace: when it ends, the
kernel kills all processes in the namespace. Covered: the start, and forking parents. Not covered: parents (``parent``).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import socket
import time
from typing import Any

from .. import orders
from ..kernel import linux
from . import parent
from .wakeup import stop_waking, wake_on_child_exit

_PATIENCE_S, _LOOK_S = 0.8, 0.005
"""When the zygote ends: the seconds within which parent processes must end their programs (fewer than the zygote itself
has for its end), and the seconds between two checks whether the parent processes have ended."""


def main() -> None:
    """Apply the options in the first message, then fork a parent process for each further message."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.environ.pop("LD_BIND_NOW", None)
    linux.die_with_parent()
    linux.become_subreaper()
    linux.no_new_privileges()
    # With a limit of 1, unlike 0, the kernel does not even pipe a core dump to a program of the host (core_pattern).
    # Every child inherits the limit, and the filter forbids changing it.
    with contextlib.suppress(ValueError, OSError):  # the limit of an ordinary user may already be 0
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    for kind in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):  # programs cannot raise their own weight
        resource.setrlimit(kind, (0, 0))
    options = json.loads(control.recv(1 << 16))
    try:
        if options["plan"]["namespaces"]:
            linux.drop_bounding_capabilities()
        linux.set_dumpable(False)
    except OSError as error:
        control.send(orders.pack_reply(orders.FAILED, text=f"{type(error).__name__}: {error}"))
        return
    control.send(orders.pack_reply(orders.READY))
    parents = _serve(control, options)
    if "pid" not in options["plan"]["namespaces"]:
        _end(parents)


def _serve(control: socket.socket, options: dict[str, Any]) -> set[int]:
    """Fork a parent for each message until the warden is gone; return the remaining parents."""
    parents: set[int] = set()
    wakeup, waker = wake_on_child_exit()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == wakeup:
                os.read(wakeup, 4096)
                _reap(parents)
                continue
            if (message := _next(control)) is None:
                return parents
            names, theirs = message
            pid = os.fork()
            if pid == 0:
                stop_waking()
                for inherited in (control.detach(), wakeup, waker):
                    os.close(inherited)
                parent.main(socket.socket(fileno=theirs), names, options)
                os._exit(0)
            os.close(theirs)
            parents.add(pid)


def _next(control: socket.socket) -> tuple[list[str], int] | None:
    """Receive the module names and the socket of the parent that is forked next; ``None`` if the warden is gone."""
    try:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
    except ConnectionError:
        return None
    return (json.loads(message), descriptors[0]) if message else None


def _reap(parents: set[int]) -> None:
    """Reap ended processes. Kill orphaned children of ended parents, since such children hold descriptors open."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            parents.discard(pid)
    for pid in set(linux.children()) - parents:
        linux.kill(pid)


def _end(parents: set[int]) -> None:
    """Without a pid namespace, end all processes: let parents end their children, then kill all that are left."""
    until = time.monotonic() + _PATIENCE_S
    while parents and time.monotonic() < until:
        time.sleep(_LOOK_S)
        _reap(parents)
    for pid in linux.children():
        linux.kill(pid)
