"""The warden's side of the zygote: start it, give it orders, check that it is alive."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from .. import orders
from ..kernel import linux
from ..kernel.isolation import PROC_FD
from ..kernel.layers import Layers
from ..kernel.users import INSIDE_USER, enter_user_namespace
from ..kernel.view import build

if TYPE_CHECKING:
    from .child import Child

_START_S = 120.0

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
    "MALLOC_ARENA_MAX": "2",
    **dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
        "1",
    ),
}
"""The whole environment of a program. One thread, since a fork copies only one."""


class ZygoteLink:
    """A running zygote.

    Raises:
        RuntimeError: It did not start; the message says why.
    """

    def __init__(self, options: dict[str, Any], layers: Layers) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = _spawn(theirs.fileno(), layers, options["scratch"])
        self._asked_at: float | None = None
        self.control.settimeout(_START_S)
        start = {
            "preload": options["preload"],
            "warmup": options["warmup"],
            "site_dirs": layers.view.site_dirs,
            "readable": layers.view.readable,
            "plan": layers.plan.as_dict(),
        }
        try:
            self.control.send(json.dumps(start).encode())
            answer = self.receive()
            why = "it ended while it was starting" if answer is None else answer.text
        except OSError as error:
            answer, why = None, str(error)
        if answer is None or answer.kind != orders.READY:
            self.close()
            raise RuntimeError(f"The zygote did not start: {why}.")
        self.control.settimeout(options["stall_s"])

    def fork(self, child: Child) -> None:
        """Order the zygote to fork a child.

        Raises:
            OSError: The zygote has ended.
        """
        order = orders.pack_order(orders.FORK, child.number, child.slot.index, child.file_bytes, 0, child.workdir)
        socket.send_fds(self.control, [order], [*child.theirs, *child.slot.entrances])
        child.close_theirs()

    def watch(self, child: Child, tasks: int, memory: int, files: int) -> None:
        """Order a watch on the resources of a child's whole tree; 0 is no bound.

        Args:
            child: The child.
            tasks: Largest number of processes and threads.
            memory: Largest memory in bytes.
            files: Largest size of its files in bytes.

        Raises:
            OSError: The zygote has ended.
        """
        self.control.send(orders.pack_order(orders.WATCH, child.number, tasks, memory, files, child.workdir))

    def halt(self, child: Child) -> None:
        """Order that nothing of a child's tree runs until ``resume``.

        Raises:
            OSError: The zygote has ended.
        """
        self.control.send(orders.pack_order(orders.HALT, child.number))

    def resume(self, child: Child) -> None:
        """Order that a tree that was halted goes on.

        Raises:
            OSError: The zygote has ended.
        """
        self.control.send(orders.pack_order(orders.RESUME, child.number))

    def kill(self, child: Child) -> None:
        """Order the end of a child and of everything that it started.

        Raises:
            OSError: The zygote has ended.
        """
        child.must_end(time.monotonic())
        self.control.send(orders.pack_order(orders.KILL, child.number))

    def interrupt(self, child: Child) -> None:
        """Order an interrupt, as Ctrl-C sends it, for a child's first process. ``INTERRUPTED`` says that it was sent.

        Raises:
            OSError: The zygote has ended.
        """
        self.control.send(orders.pack_order(orders.INTERRUPT, child.number))

    def receive(self) -> orders.Reply | None:
        """The next message; ``None`` when the zygote is gone."""
        message = self.control.recv(orders.MAX_BYTES)
        if not message:
            return None
        self._asked_at = None
        return orders.unpack_reply(message)

    def check(self, stall_s: float) -> bool:
        """Send a ping; returns false when the last answer is more than ``stall_s`` seconds overdue."""
        now = time.monotonic()
        if self._asked_at is not None:
            return now - self._asked_at < stall_s
        self._asked_at = now
        try:
            self.control.send(orders.pack_order(orders.PING), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the zygote and, with it, every child."""
        self.control.close()
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _spawn(control: int, layers: Layers, scratch: str) -> int:
    """Start the zygote as a fresh interpreter with ``control`` as its descriptor 0; return its process id.

    The first process in a new pid namespace is its pid 1, so this warden's next fork is the last it can make.
    """
    plan, view = layers.plan, layers.view
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    if plan.user:
        enter_user_namespace(plan.users_from)
    if "pid" in plan.namespaces:
        linux.unshare(linux.CLONE_NEWPID)
    # Not -I: it would ignore PYTHONHASHSEED. The environment is ours alone, and -P and -s do the rest of -I.
    command = [view.python, "-P", "-s", "-S", view.launch, "zygote"]
    # Symbols are bound at load time, so that no child has to; the zygote removes the variable.
    environment = (
        ENVIRONMENT | {"LD_BIND_NOW": "1"} | ({"LD_LIBRARY_PATH": view.library_path} if view.library_path else {})
    )
    pid = os.fork()
    if pid:
        os.close(proc)
        return pid
    try:
        os.setsid()
        if flags := plan.flags("mount", "net", "ipc", "uts", "cgroup"):
            linux.unshare(flags)
        if "mount" in plan.namespaces:
            build(view, os.path.join(scratch, "root"), plan.users_from or INSIDE_USER)
        control = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, 64)
        proc = fcntl.fcntl(proc, fcntl.F_DUPFD_CLOEXEC, 64)
        os.dup2(control, 0)
        os.dup2(proc, PROC_FD)
        os.execve(view.python, command, environment)
    except BaseException as error:
        os.write(control, orders.pack_reply(orders.FAILED, text=f"{type(error).__name__}: {error}"))
    finally:
        os._exit(1)
