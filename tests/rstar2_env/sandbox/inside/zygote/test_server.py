"""A parent answers while orphans of its programs take long to end."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
from pathlib import Path

import pytest
from waiting import wait_for

from rstar2_env.sandbox.inside import orders
from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.inside.kernel.plan import IsolationPlan
from rstar2_env.sandbox.inside.zygote.server import ZygoteServer

PTRACE_SEIZE = 0x4206


def test_a_parent_answers_while_an_orphan_ends_and_reaps_it_afterwards() -> None:
    """A process is slow to end if it has many mappings, or, as here, if a debugger has not yet seen its end."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    traced, told = os.pipe()
    reading, writing = os.pipe()
    server = os.fork()
    if server == 0:
        control.close()
        _serve(theirs, writing, traced)
    theirs.close()
    orphan = int(os.read(reading, 100))
    try:
        if ctypes.CDLL(None, use_errno=True).ptrace(PTRACE_SEIZE, orphan, None, None) != 0:
            pytest.skip(f"This machine does not let a process trace its descendant: {os.strerror(ctypes.get_errno())}.")
        os.write(told, b"x")
        wait_for(lambda: _state(orphan) == "Z")  # the parent has killed it
        control.send(orders.pack_order(orders.PING))
        assert select.select([control], [], [], 30)[0], "the parent waits for the orphan"
        assert orders.unpack_reply(control.recv(orders.MAX_BYTES)).kind == orders.PONG
        assert _state(orphan) == "Z"
        os.waitpid(orphan, 0x40000000)  # __WALL: from now on, it can be reaped
        wait_for(lambda: _state(orphan) == "")  # the parent has reaped it
    finally:
        control.close()
        for end in (traced, told, reading, writing):
            os.close(end)
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        linux.kill(orphan)


def _serve(control: socket.socket, writing: int, traced: int) -> None:
    """Be a parent without a pid namespace that gets an orphan; does not return."""
    try:
        linux.become_subreaper()
        if (between := os.fork()) == 0:
            if os.fork() == 0:
                signal.pause()
            os._exit(0)
        os.waitpid(between, 0)
        server = ZygoteServer(control, IsolationPlan(), None)  # type: ignore[arg-type]  # it forks no child
        os.write(writing, str(linux.children()[0]).encode())
        os.read(traced, 1)
        server._kill_orphans()
        server.serve()
        server.close()
    finally:
        os._exit(0)


def _state(pid: int) -> str:
    """State of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
