"""``ZygoteServer``: the loop of a parent process: forks a child for each order, reaps it, kills its process tree.

Not covered: the start (``parent``, ``warm``), the steps of a child (``child``), the verdict (the warden's ``verdict``).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time

from .. import orders
from ..kernel import linux
from ..kernel.isolation import Isolation
from ..kernel.plan import IsolationPlan
from . import child
from .halt import TreeHalt
from .priority import LoweredTree
from .wakeup import stop_waking, wake_on_child_exit
from .watch import INTERVAL_S, Watch

_PATIENCE_S, _LEAVING_S = 0.5, 0.005
"""The first constant: seconds for which ``ZygoteServer.close`` waits for orphaned processes to end. The second: seconds
between two checks whether killed processes have ended."""
_DESCRIPTOR_SPACE = socket.CMSG_SPACE(16 * 4)


class _Tree:
    """The process tree of one child. ``main`` is the id of the child's process.

    ``init`` is the id of the process that only waits, as pid 1 of the child's namespace; 0 without a pid namespace.
    """

    __slots__ = ("ended", "halt", "init", "killed", "lowered", "main", "number", "watch")

    def __init__(self, number: int) -> None:
        self.number = number
        self.main = self.init = 0
        self.ended = self.killed = False
        self.watch: Watch | None = None
        self.halt: TreeHalt | None = None
        self.lowered: LoweredTree | None = None


class ZygoteServer:
    """Receives orders from the warden, forks children, and reports their ends.

    Args:
        control: Message socket to the warden.
        plan: The active layers of isolation.
        isolation: Applies the layers in each child.
    """

    def __init__(self, control: socket.socket, plan: IsolationPlan, isolation: Isolation) -> None:
        child.occupy_fixed_numbers()
        self._control = control
        self._isolation = isolation
        self._fork = linux.plain_fork()
        self._wait = linux.Reaper().wait
        self._trees: dict[int, _Tree] = {}  # by the number that the warden assigned
        self._watched: dict[int, tuple[_Tree, bool]] = {}  # by pidfd; true for pid 1
        self._bounded: set[int] = set()
        self._halting: set[int] = set()  # trees with an order to halt that are not yet stopped
        self._leaving: dict[int, _Tree] = {}  # ended trees, if some of their processes still run
        self._orphans = False  # whether killed orphans have not yet ended
        self._check_at = 0.0
        self._poll = select.poll()
        self._wakeup = -1 if linux.has_pidfds() else wake_on_child_exit()[0]
        self._own_nets = "net" in plan.namespaces
        self._pausing = linux.Pausing(plan.flags("pid", "mount", "ipc", "uts")) if "pid" in plan.namespaces else None
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if self._pausing else -1

    def serve(self) -> None:
        """Carry out orders until the warden closes the socket."""
        self._poll.register(self._control, select.POLLIN)
        if self._wakeup >= 0:
            self._poll.register(self._wakeup, select.POLLIN)
        control = self._control.fileno()
        while True:
            interval = INTERVAL_S if self._bounded or self._halting else None
            if self._leaving or self._orphans:
                interval = _LEAVING_S
            for descriptor, _ in self._poll.poll(None if interval is None else interval * 1000):
                if descriptor == self._wakeup:
                    self._reap_ended()
                elif descriptor != control:
                    self._on_end(descriptor)
                elif not self._handle():
                    return
            if self._leaving or self._orphans:
                self._check_leaving()
            if interval is not None and time.monotonic() >= self._check_at:
                self._check_bounds()
                self._check_halting()
                self._check_at = time.monotonic() + INTERVAL_S

    def close(self) -> None:
        """Kill every child with its processes."""
        for tree in list(self._trees.values()):
            self._kill(tree)
        until = time.monotonic() + _PATIENCE_S
        while self._pausing is None and time.monotonic() < until:
            self._kill_orphans()
            if not self._orphans:
                return
            time.sleep(_LEAVING_S)

    def _handle(self) -> bool:
        try:
            message, ancillary, _, _ = self._control.recvmsg(orders.MAX_BYTES, _DESCRIPTOR_SPACE)
        except ConnectionError:
            return False
        if not message:
            return False
        order = orders.unpack_order(message)
        if order.kind == orders.FORK:
            data = ancillary[0][2]
            self._make(order, struct.unpack(f"{len(data) // 4}i", data))
        elif order.kind == orders.PING:
            self._send(orders.pack_reply(orders.PONG))
            if self._pausing is not None and any(tree.ended for tree in self._trees.values()):
                self._kill_orphans()
        elif (tree := self._trees.get(order.number)) is not None:
            if order.kind == orders.KILL:
                self._kill(tree)
            elif order.kind == orders.HALT:
                self._halt(tree)
            elif order.kind == orders.RESUME:
                self._resume(tree)
            elif order.kind == orders.INTERRUPT:
                if not tree.ended:
                    os.kill(tree.main, signal.SIGINT)
                self._send(orders.pack_reply(orders.INTERRUPTED, order.number))
            elif order.kind == orders.DEPRIORITIZE:
                self._deprioritize(tree)
            else:
                tree.watch = Watch(order.slot, order.value, order.files, order.workdir, self._own_nets, order.pipes)
                self._bounded.add(tree.number)
        return True

    def _make(self, order: orders.Order, descriptors: tuple[int, ...]) -> None:
        tree = _Tree(order.number)
        init_fd = -1
        try:
            self._isolation.prepare(order.slot, order.value)
            if self._pausing is not None:
                tree.init = self._pausing.make()
                init_fd = os.pidfd_open(tree.init)
                linux.setns(init_fd, linux.CLONE_NEWPID)
            try:
                tree.main = self._fork()
                if tree.main == 0:
                    if self._wakeup >= 0:
                        stop_waking()
                    child.main(descriptors, order, self._isolation, init_fd)
                elif tree.main < 0:
                    raise linux.failure("fork")
            finally:
                if self._pausing is not None:
                    linux.setns(self._own_pids, linux.CLONE_NEWPID)
            if self._wakeup < 0:
                self._watch(os.pidfd_open(tree.main), tree, False)
            self._trees[tree.number] = tree
        except OSError as error:
            self._send(orders.pack_reply(orders.FORK_FAILED, order.number, text=str(error)))
            if tree.init:
                os.kill(tree.init, signal.SIGKILL)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if init_fd >= 0:
            self._watch(init_fd, tree, True)

    def _on_end(self, pidfd: int) -> None:
        tree, is_init = self._watched.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        self._finish(tree, is_init)

    def _reap_ended(self) -> None:
        """Find the children that have ended, if the kernel has no pidfds to report their end."""
        os.read(self._wakeup, 4096)
        for tree in list(self._trees.values()):
            wanted = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if not tree.ended and os.waitid(os.P_PID, tree.main, wanted) is not None:
                self._finish(tree, False)

    def _finish(self, tree: _Tree, is_init: bool) -> None:
        status, cpu_us, peak_kb = self._wait(tree.init if is_init else tree.main)
        if is_init:
            tree.init = 0
        else:
            tree.ended = True
            # A program cannot kill its pid 1: if pid 1 is exiting, it was killed from outside, and the tree with it.
            broken = not tree.killed and status == signal.SIGKILL and tree.init > 0 and linux.is_exiting(tree.init)
            self._kill(tree)  # the rest of the tree
            kind = orders.BROKEN if broken else orders.ENDED
            self._send(orders.pack_reply(kind, tree.number, status, cpu_us, peak_kb))
        if tree.ended and not tree.init:
            self._trees.pop(tree.number, None)
            self._leaving[tree.number] = tree
            self._check_leaving()

    def _check_leaving(self) -> None:
        """Report to the warden each tree whose processes have all ended; the tree's first process may end earlier."""
        if self._pausing is None:
            self._kill_orphans()
        for number, tree in list(self._leaving.items()):
            if self._pausing is not None or not _group_exists(tree.main):
                del self._leaving[number]
                self._send(orders.pack_reply(orders.GONE, number))

    def _watch(self, pidfd: int, tree: _Tree, is_init: bool) -> None:
        self._watched[pidfd] = (tree, is_init)
        self._poll.register(pidfd, select.POLLIN)

    def _halt(self, tree: _Tree) -> None:
        if tree.ended or tree.killed:
            return
        tree.halt = TreeHalt(tree.main, tree.init)
        tree.halt.sweep()
        self._halting.add(tree.number)

    def _resume(self, tree: _Tree) -> None:
        self._halting.discard(tree.number)
        if tree.halt is not None:
            tree.halt.undo()
            tree.halt = None
        if tree.watch is not None:
            self._bounded.add(tree.number)

    def _deprioritize(self, tree: _Tree) -> None:
        """Lower the CPU weight of a tree's processes; report to the warden how long the tree has waited for a core."""
        if tree.ended or tree.killed:
            return
        tree.lowered = tree.lowered or LoweredTree(tree.main, tree.init)
        lowered, waited_us = tree.lowered.lower(), int(tree.lowered.waited_s() * 1e6)
        self._send(orders.pack_reply(orders.DEPRIORITIZED, tree.number, lowered, waited_us))

    def _check_halting(self) -> None:
        """Check whether the trees that are being halted have stopped; end those that cannot be stopped."""
        for number in list(self._halting):
            tree = self._trees.get(number)
            if tree is None or tree.ended or tree.halt is None:
                self._halting.discard(number)
            elif tree.halt.is_stopped():
                self._halting.discard(number)
                self._bounded.discard(number)  # stopped processes use no more resources
            elif not tree.halt.sweep():
                self._halting.discard(number)
                self._end_overdrawn(tree, "rest")

    def _end_overdrawn(self, tree: _Tree, bound: str) -> None:
        self._send(orders.pack_reply(orders.OVERDRAWN, tree.number, text=bound))
        self._kill(tree)

    def _check_bounds(self) -> None:
        """Check the trees whose limits no other layer enforces, and end trees that exceed them."""
        for number in list(self._bounded):
            tree = self._trees.get(number)
            if tree is None or tree.ended or tree.watch is None:
                self._bounded.discard(number)
            elif (bound := tree.watch.overdrawn([pid for pid in (tree.main, tree.init) if pid])) is not None:
                self._bounded.discard(number)
                self._end_overdrawn(tree, bound)
        if self._pausing is None:
            self._kill_orphans()  # a check of a tree would miss orphans

    def _kill(self, tree: _Tree) -> None:
        """Kill a process tree: kill its pid 1, which ends the namespace; without one, kill the process group."""
        tree.killed = True
        try:
            if tree.init:
                os.kill(tree.init, signal.SIGKILL)
            else:
                os.killpg(tree.main, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        if not tree.init and not tree.ended:
            linux.kill(tree.main)

    def _kill_orphans(self) -> None:
        """Kill the children that were not forked here (orphans of ended processes), and reap those that have ended.

        This does not wait for any of them, since a process with many mappings takes long to end. With pid namespaces
        there should be no orphans; if one exists, it would keep the pid 1 of its namespace from ending.
        """
        trees = [*self._trees.values(), *(tree for tree, _ in self._watched.values())]
        known = {pid for tree in trees for pid in (tree.main, tree.init)}
        orphans = [pid for pid in linux.children() if pid not in known]
        for pid in orphans:
            linux.kill(pid)
        ended = 0
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                ended += os.waitpid(pid, os.WNOHANG)[0] == pid
        self._orphans = ended < len(orphans)

    def _send(self, message: bytes) -> None:
        try:  # noqa: SIM105  # runs in every call, where each touched object costs a page
            self._control.send(message)
        except BrokenPipeError:  # the warden is gone; the next poll notices it
            pass


def _group_exists(pid: int) -> bool:
    """Whether the process group ``pid`` has processes; while it has any, the kernel does not reuse the id ``pid``."""
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
