"""Starts a warden (the process that supervises programs) as a process on this machine, reached over a pair of sockets.

Covered: its start and end, its folder, and the removal of folders that killed processes left. Not covered: the messages
(``connection``).
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from typing import IO, Any

from rstar2_env.sandbox.host import Host
from rstar2_env.sandbox.inside import launch
from rstar2_env.sandbox.inside.folder_lock import lock_folder
from rstar2_env.sandbox.inside.tidy import remove_tree
from rstar2_env.sandbox.options import LocalOptions

_PREFIX = "rstar2-sandbox-"
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class LocalProcess(Host):
    """Starts and ends one warden as a process on this machine; the ``Host`` of the provider ``local``.

    Args:
        options: The provider's options.
    """

    name = "The local sandbox"

    def __init__(self, options: LocalOptions) -> None:
        self.stall_timeout_s = options.stall_timeout_s
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._theirs: socket.socket | None = None
        self._lock = -1
        self._log: IO[bytes] | None = None

    def start(self) -> socket.socket:
        """Start the warden, and return the stream to it. The kernel ends the warden when the calling thread ends."""
        self.scratch, self._lock = make_scratch()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # read and closed by end
        ours, self._theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", launch.__file__, "warden"],
                stdin=self._theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            self._theirs.close()
        self.warden_pid = self._process.pid
        return ours

    def options(self) -> dict[str, Any]:
        """Return the warden's options, which are the first message to the warden."""
        return self._options.for_warden(self.scratch)

    def end(self, patience: float) -> str:
        """End the warden (kill it after ``patience`` seconds) and remove its folder; return the end of its stderr."""
        if self._process is not None:
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        stderr = ""
        if self._log is not None:
            with self._log:
                stderr = _tail(self._log)
        if self._lock >= 0:
            remove_tree(self.scratch)
            os.close(self._lock)
        return stderr

    def abandon(self) -> None:
        """In a process forked during the warden's start, close the inherited copy of the warden's end of the socket."""
        if self._theirs is not None and (descriptor := self._theirs.detach()) >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def make_scratch() -> tuple[str, int]:
    """Create a temporary folder that is locked while this process lives; remove the folders that killed processes left.

    Returns:
        The folder, and the descriptor of its lock. The caller removes the folder (``remove_tree``), and then closes the
        descriptor.
    """
    parent = tempfile.gettempdir()
    for name in os.listdir(parent):
        if name.startswith(_PREFIX):
            with contextlib.suppress(OSError):
                os.close(lock_folder(os.path.join(parent, name), os.geteuid()))
                remove_tree(os.path.join(parent, name))
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX)
        with contextlib.suppress(OSError):  # removed by another process before it was locked
            return path, lock_folder(path, os.geteuid())


def _tail(log: IO[bytes]) -> str:
    """Return the last part of the warden's error output, for an error message."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 2000))
    return log.read().decode("utf-8", "replace").strip()
