"""``ZygoteLink``: the warden's connection to the zygote, which it starts, orders to fork parent processes, and ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
from dataclasses import asdict
from typing import Any

from .. import orders
from ..kernel import linux
from ..kernel.isolation import PROC_FD
from ..kernel.layers import Layers
from ..kernel.users import INSIDE_USER, enter_user_namespace
from ..kernel.view import build
from .parent_link import ParentLink

START_S = 120.0
"""Maximum seconds that the zygote or a parent process may take to start."""

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
"""All environment variables of a program. They limit libraries to one thread, since a fork copies only one thread."""


class ZygoteLink:
    """A running zygote: a small interpreter that forks parent processes.

    Args:
        options: The warden's options (``LocalOptions.for_warden``).
        layers: Active layers of isolation.

    Raises:
        RuntimeError: The zygote did not start; the message gives the reason.
    """

    def __init__(self, options: dict[str, Any], layers: Layers) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = _spawn(theirs.fileno(), layers, options["scratch"])
        self._control.settimeout(START_S)
        start = {
            "preload": options["preload"],
            "warmup": options["warmup"],
            "site_dirs": layers.view.site_dirs,
            "readable": layers.view.readable,
            "plan": asdict(layers.plan),
        }
        try:
            self._control.send(json.dumps(start).encode())
            message = self._control.recv(orders.MAX_BYTES)
            why = orders.start_failure(orders.unpack_reply(message) if message else None)
        except OSError as error:
            why = str(error)
        if why is not None:
            self.close()
            raise RuntimeError(f"The process from which programs are forked (zygote) did not start: {why}.")

    def make_parent(self, names: list[str]) -> ParentLink:
        """Order the zygote to fork a parent process. The parent's first message is ``READY`` or ``FAILED``.

        Args:
            names: Modules that the parent imports.

        Raises:
            OSError: The zygote has ended, or there are no descriptors left.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._control, [json.dumps(names).encode()], [theirs.fileno()])
                return ParentLink(ours)
            except OSError:
                ours.close()
                raise

    def close(self) -> None:
        """End the zygote with all its parent processes and their children."""
        self._control.close()
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _spawn(control: int, layers: Layers, scratch: str) -> int:
    """Start the zygote as a fresh interpreter with ``control`` as its descriptor 0; return its process id.

    If pid namespaces work, the zygote becomes pid 1 of a new pid namespace. Later forks of the calling process would
    join this namespace too.

    Args:
        control: The zygote's end of the control socket.
        layers: Active layers of isolation, and the files that the zygote sees.
        scratch: Temporary folder, in which the zygote's root file system is built.
    """
    plan, view = layers.plan, layers.view
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    if plan.user:
        enter_user_namespace(plan.users_from)
    if "pid" in plan.namespaces:
        linux.unshare(linux.CLONE_NEWPID)
    # -I would ignore PYTHONHASHSEED. The environment is defined here, so -P and -s isolate the interpreter as well.
    command = [view.python, "-P", "-s", "-S", view.launch, "zygote"]
    # LD_BIND_NOW binds symbols at load time, so that children need not bind them; the zygote removes the variable.
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
