"""The zygote: a warm interpreter that forks one child for each order, and says how each ended.

It is single-threaded, holds the preloaded modules, and never sees a job or an output: whatever it knew, every child
would inherit. It speaks to the warden over a message socket on descriptor 0; when that closes it ends, and as it is pid
1 of a pid namespace, the kernel ends every child with it. Covered: forking into namespaces, reaping, killing whole
trees. Not covered: warming up (``warm``), what a child does (``child``), judgement (``judge``).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from dataclasses import dataclass
from typing import Any

from . import child, linux, memory_watch, warm
from .isolation import Isolation
from .plan import Plan

_MESSAGE = 1 << 16


@dataclass(slots=True)
class _Tree:
    """One child, and the pausing process that is pid 1 above it (0 where there is no pid namespace)."""

    number: int
    main: int
    init: int = 0
    ended: bool = False
    killed: bool = False
    memory_limit: int = 0


class Zygote:
    """The loop: orders come in, forks and ends go out."""

    def __init__(self, control: socket.socket, plan: Plan, readable: list[str]) -> None:
        self._control = control
        self._plan = plan
        self.isolation = Isolation(plan, readable)
        self._trees: dict[int, _Tree] = {}  # by the warden's number
        self._watched: dict[int, tuple[_Tree, bool]] = {}  # by pidfd; true for the init
        self._memory_watched: set[int] = set()
        self._poll = select.poll()
        self._pausing = linux.Pausing() if "pid" in plan.namespaces else None
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if self._pausing else -1

    def serve(self) -> None:
        """Serve until the warden closes its end."""
        self._poll.register(self._control, select.POLLIN)
        control = self._control.fileno()
        while True:
            ready = self._poll.poll(memory_watch.INTERVAL_MS if self._memory_watched else None)
            if not ready:
                self._watch_memory()
            for descriptor, _ in ready:
                if descriptor != control:
                    self._on_end(descriptor)
                elif not self._obey():
                    return

    def close(self) -> None:
        """Kill every child."""
        for tree in list(self._trees.values()):
            self._kill(tree)
        self._kill_orphans()

    def _obey(self) -> bool:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, _MESSAGE, 16)
        except ConnectionError:
            return False
        if not message:
            return False
        order = json.loads(message)
        if order["op"] == "fork":
            self._fork(order, descriptors)
        elif order["op"] == "kill":
            tree = self._trees.get(order["n"])
            if tree is not None:
                self._kill(tree)
        elif order["op"] == "watch":
            tree = self._trees.get(order["n"])
            if tree is not None:
                tree.memory_limit = order["bytes"]
                self._memory_watched.add(tree.number)
        elif order["op"] == "ping":
            self._say({"op": "pong"})
        return True

    def _fork(self, order: dict[str, Any], descriptors: list[int]) -> None:
        tree = _Tree(order["n"], 0)
        init_fd = -1
        try:
            if self._pausing is not None:
                tree.init = self._pausing.make(self._plan.flags("pid", "mount", "ipc", "uts"))
                init_fd = os.pidfd_open(tree.init)
                linux.setns(init_fd, linux.CLONE_NEWPID)
            try:
                tree.main = os.fork()
                if tree.main == 0:
                    child.main(descriptors, order, self.isolation, init_fd)
            finally:
                if self._pausing is not None:
                    linux.setns(self._own_pids, linux.CLONE_NEWPID)
            self._watch(os.pidfd_open(tree.main), tree, init=False)
            self._trees[tree.number] = tree
        except OSError as error:
            self._say({"op": "fork_failed", "n": order["n"], "error": str(error)})
            if tree.init:
                os.kill(tree.init, signal.SIGKILL)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if init_fd >= 0:
            self._watch(init_fd, tree, init=True)

    def _on_end(self, pidfd: int) -> None:
        tree, is_init = self._watched.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(tree.init if is_init else tree.main, 0)
        if is_init:
            tree.init = 0
        else:
            tree.ended = True
            # No program can end its pid 1: when that one is on its way out, someone outside killed it, and with it all.
            broken = not tree.killed and status == signal.SIGKILL and tree.init > 0 and linux.is_exiting(tree.init)
            self._kill(tree)  # what is left of it
            self._say(
                {
                    "op": "ended",
                    "broken": broken,
                    "n": tree.number,
                    "status": status,
                    "cpu_s": usage.ru_utime + usage.ru_stime,
                    "peak_kb": usage.ru_maxrss,
                }
            )
        if tree.ended and not tree.init:
            self._trees.pop(tree.number, None)
            if self._pausing is None:
                self._kill_orphans()
            self._say({"op": "gone", "n": tree.number})

    def _watch_memory(self) -> None:
        """Where no control group bounds a tree: look at it, and end it when it holds too much."""
        for number in list(self._memory_watched):
            tree = self._trees.get(number)
            if tree is None or tree.ended:
                self._memory_watched.discard(number)
            elif memory_watch.exceeds([pid for pid in (tree.main, tree.init) if pid], tree.memory_limit):
                self._memory_watched.discard(number)
                self._say({"op": "over_memory", "n": number})
                self._kill(tree)

    def _watch(self, pidfd: int, tree: _Tree, *, init: bool) -> None:
        self._watched[pidfd] = (tree, init)
        self._poll.register(pidfd, select.POLLIN)

    def _kill(self, tree: _Tree) -> None:
        """Kill a tree whole: with pid 1 the kernel ends the namespace; without one, the group has to do."""
        tree.killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if tree.init:
                os.kill(tree.init, signal.SIGKILL)
            else:
                os.killpg(tree.main, signal.SIGKILL)
        if not tree.init and not tree.ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(tree.main, signal.SIGKILL)

    def _kill_orphans(self) -> None:
        """Without pid namespaces: kill what left its group and was handed to us as subreaper, until none is left."""
        if self._pausing is not None:
            return
        known = {tree.main for tree in self._trees.values()}
        for _ in range(1000):
            strangers = [pid for pid in linux.children() if pid not in known]
            if not strangers:
                return
            for pid in strangers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _say(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the warden is gone, and the next poll will tell
            self._control.send(json.dumps(message).encode())


def main() -> None:
    """Warm up as the first message says, then serve."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    linux.die_with_parent()
    linux.become_subreaper()
    linux.no_new_privileges()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = json.loads(control.recv(_MESSAGE))
    plan = Plan(**options["plan"])
    try:
        if plan.namespaces:
            linux.drop_bounding_capabilities()
        linux.set_dumpable(False)
        warm.load(options["preload"], options["site_dirs"], options["warmup"])
        zygote = Zygote(control, plan, options["readable"])
        warm.settle()
        zygote.isolation.measure()
    except BaseException as error:
        control.send(json.dumps({"op": "failed", "error": f"{type(error).__name__}: {error}"}).encode())
        return
    control.send(json.dumps({"op": "ready"}).encode())
    try:
        zygote.serve()
    finally:
        zygote.close()
