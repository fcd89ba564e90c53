"""The zygote: a warm interpreter that forks one child for each order, and says how each ended.

It is single-threaded, holds the preloaded modules, and never sees a job or an output: whatever it knew, every child
would inherit. It speaks to the warden over a message socket on descriptor 0; when that closes, it ends, and takes its
children along. Covered: forking, reaping, killing trees. Not covered: isolation (``child``), judgement (``judge``).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from . import child, linux

_MESSAGE = 1 << 16


class Zygote:
    """The loop: orders come in, forks and ends go out."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, int] = {}  # process id -> the warden's number
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def serve(self) -> None:
        """Serve until the warden closes its end."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_r, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._wake_r:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_r, 4096)
                    self._reap()
                elif not self._obey():
                    return

    def close(self) -> None:
        """Kill every child."""
        for pid in list(self._children):
            self._kill(pid)
        self._kill_orphans()

    def _obey(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, _MESSAGE, 8)
        if not message:
            return False
        order = json.loads(message)
        if order["op"] == "fork":
            self._fork(order, descriptors)
        elif order["op"] == "kill":
            for pid, number in list(self._children.items()):
                if number == order["n"]:
                    self._kill(pid)
        elif order["op"] == "ping":
            self._say({"op": "pong"})
        return True

    def _fork(self, order: dict[str, Any], descriptors: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            self._say({"op": "fork_failed", "n": order["n"], "error": str(error)})
            pid = -1
        if pid == 0:
            child.main(descriptors, order)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid > 0:
            self._children[pid] = order["n"]

    def _reap(self) -> None:
        ended = False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            number = self._children.pop(pid, None)
            if number is None:
                continue
            ended = True
            self._kill(pid)  # what is left of its group
            self._say(
                {
                    "op": "ended",
                    "n": number,
                    "status": status,
                    "cpu_s": usage.ru_utime + usage.ru_stime,
                    "peak_kb": usage.ru_maxrss,
                }
            )
        if ended:
            self._kill_orphans()

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _kill_orphans(self) -> None:
        """Kill processes that left their group and were handed to us as subreaper, until none is left."""
        for _ in range(1000):
            strangers = [pid for pid in linux.children() if pid not in self._children]
            if not strangers:
                return
            for pid in strangers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _say(self, message: dict[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())


def main() -> None:
    """Warm up as the first message says, then serve."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    linux.die_with_parent()
    linux.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = json.loads(control.recv(_MESSAGE))
    try:
        warm(options["preload"], options["site_dirs"])
    except BaseException as error:
        control.send(json.dumps({"op": "failed", "error": f"{type(error).__name__}: {error}"}).encode())
        return
    control.send(json.dumps({"op": "ready"}).encode())
    zygote = Zygote(control)
    try:
        zygote.serve()
    finally:
        zygote.close()


def warm(preload: list[str], site_dirs: list[str]) -> None:
    """Import what every program may want, and put the interpreter into the state that children start from."""
    sys.path.extend(site_dirs)
    site = importlib.import_module("site")
    for step in (site.setquit, site.setcopyright, site.sethelper):  # exit(), quit() and help(), absent with -S
        step()
    for name in preload:
        importlib.import_module(name)
    atexit._clear()
    gc.collect()
    gc.disable()
    gc.freeze()
