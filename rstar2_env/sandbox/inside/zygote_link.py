"""The warden's side of the zygote: start it, give it orders, see that it is alive."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .call import Child

_MESSAGE = 1 << 16
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
"""All that a program finds in its environment. One thread: a fork copies no other."""


class ZygoteLink:
    """A running zygote.

    Raises:
        RuntimeError: It did not come up; the message says why.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = _spawn(theirs.fileno())
        self._asked_at: float | None = None
        self.control.settimeout(_START_S)
        start = {"preload": options["preload"], "site_dirs": options["site_dirs"]}
        try:
            self.control.send(json.dumps(start).encode())
            answer = self.receive() or {"op": "failed", "error": "it ended while it was starting"}
        except OSError as error:
            answer = {"op": "failed", "error": str(error)}
        if answer["op"] != "ready":
            self.close()
            raise RuntimeError(f"The warm parent did not start: {answer.get('error')}.")
        self.control.settimeout(options["stall_s"])

    def fork(self, child: Child) -> None:
        """Order one child.

        Raises:
            OSError: The zygote is gone.
        """
        order = {"op": "fork", "n": child.number, "workdir": child.workdir}
        socket.send_fds(self.control, [json.dumps(order).encode()], child.theirs)
        child.close_theirs()

    def kill(self, child: Child) -> None:
        """Order the end of a child and of everything that it started.

        Raises:
            OSError: The zygote is gone.
        """
        self.control.send(json.dumps({"op": "kill", "n": child.number}).encode())

    def receive(self) -> dict[str, Any] | None:
        """The next message; ``None`` when the zygote is gone."""
        message = self.control.recv(_MESSAGE)
        if not message:
            return None
        self._asked_at = None
        said: dict[str, Any] = json.loads(message)
        return said

    def check(self, stall_s: float) -> bool:
        """Ask for a sign of life; false when the last one is more than ``stall_s`` overdue."""
        now = time.monotonic()
        if self._asked_at is not None:
            return now - self._asked_at < stall_s
        self._asked_at = now
        try:
            self.control.send(b'{"op":"ping"}', socket.MSG_DONTWAIT)
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


def _spawn(control: int) -> int:
    """Start the zygote as a fresh interpreter with ``control`` as its descriptor 0; return its process id."""
    launch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
    # Not -I: it would ignore PYTHONHASHSEED. The environment is ours alone, and -P and -s do the rest of -I.
    command = [sys.executable, "-P", "-s", "-S", launch, "zygote"]
    return os.posix_spawn(
        sys.executable,
        command,
        ENVIRONMENT,
        file_actions=[(os.POSIX_SPAWN_DUP2, control, 0)],
        setsid=True,
    )
