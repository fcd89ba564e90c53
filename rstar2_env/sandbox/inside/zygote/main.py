"""The zygote: a small interpreter that forks parents, which fork the children that run programs.

A parent is a copy of it that has imported some modules. The zygote itself imports none of them and does nothing but
wait for the next order, so that a parent starts from clean memory. It communicates with the warden over a message
socket on descriptor 0; when that closes it ends, and as it is pid 1 of a pid namespace, the kernel ends everything with
it. Covered: the start, and forking parents. Not covered: what a parent does (``parent``).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import time
from typing import Any

from .. import orders
from ..kernel import linux
from . import parent
from .bell import ring_on_exit, stop_ringing

_PATIENCE_S, _LOOK_S = 0.8, 0.005
"""How long parents may take to end their programs, which is less than the warden gives the zygote."""


def main() -> None:
    """Prepare as the first message says, then fork a parent for each message."""
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
    for kind in (resource.RLIMIT_NICE, resource.RLIMIT_RTPRIO):  # no program takes more of the cores than it is given
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
    """Fork a parent for each message until the warden is gone; returns the parents that are left."""
    parents: set[int] = set()
    bell, ringer = ring_on_exit()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(bell, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == bell:
                os.read(bell, 4096)
                _reap(parents)
                continue
            if (message := _next(control)) is None:
                return parents
            names, theirs = message
            pid = os.fork()
            if pid == 0:
                stop_ringing()
                for inherited in (control.detach(), bell, ringer):
                    os.close(inherited)
                parent.main(socket.socket(fileno=theirs), names, options)
                os._exit(0)
            os.close(theirs)
            parents.add(pid)


def _next(control: socket.socket) -> tuple[list[str], int] | None:
    """What the next parent shall import, and its end of a socket to the warden; ``None`` when the warden is gone."""
    try:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
    except ConnectionError:
        return None
    return (json.loads(message), descriptors[0]) if message else None


def _reap(parents: set[int]) -> None:
    """Reap what has ended, and end what a parent left: it would hold that parent's descriptors open."""
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            parents.discard(pid)
    for pid in set(linux.children()) - parents:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _end(parents: set[int]) -> None:
    """Without a pid namespace: let the parents end what they forked, and end whatever is left."""
    until = time.monotonic() + _PATIENCE_S
    while parents and time.monotonic() < until:
        time.sleep(_LOOK_S)
        _reap(parents)
    for pid in linux.children():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
