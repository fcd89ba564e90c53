"""One warden and the thread that speaks with it.

Covered: starting the program, sending, receiving, the heartbeat, the end. Not covered: what the calls mean and what
happens to them when the warden is lost (``local``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO, Any

from rstar2_env.errors import SandboxUnavailableError
from rstar2_env.sandbox.inside import launch, wire
from rstar2_env.sandbox.inside.tidy import remove_tree
from rstar2_env.sandbox.job import Capability
from rstar2_env.sandbox.options import LocalOptions

_PREFIX = "rstar2-sandbox-"
_READ = 1 << 18
_START_S = 180.0
_CLOSE_S = 3.0


class Connection:
    """A running warden.

    Args:
        options: How it runs.
        on_outcome: Called in the connection's thread with the header and blobs of each outcome.
        on_call_lost: Called in the connection's thread with a call that was lost through no fault of its program.
        on_lost: Called in the connection's thread, once, when the warden is gone without ``close``.
    """

    def __init__(
        self,
        options: LocalOptions,
        on_outcome: Callable[[dict[str, Any], list[bytes]], None],
        on_call_lost: Callable[[int, str], None],
        on_lost: Callable[[Connection, str], None],
    ) -> None:
        self.capabilities: tuple[Capability, ...] = ()
        self.warden_pid = 0
        self.zygote_pid = 0
        self.scratch = ""
        self.lost = False
        self._options = options
        self._on_outcome = on_outcome
        self._on_call_lost = on_call_lost
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._backlog: deque[memoryview] = deque()
        self._started = threading.Event()
        self._failure: str | None = None
        self._trouble = ""
        self._closing = False
        self._socket, self._theirs = socket.socketpair()
        self._wake_r, self._wake_w = os.pipe()
        self._thread = threading.Thread(target=self._main, name="rstar2-sandbox", daemon=True)

    def start(self) -> None:
        """Start the warden and wait until it serves.

        Raises:
            SandboxUnavailableError: It does not come up; the message says why.
        """
        self._thread.start()
        if not self._started.wait(_START_S):
            self._failure = f"it was not ready after {_START_S:.0f} seconds"
        if self._failure is not None:
            self.close()
            raise SandboxUnavailableError(f"The local sandbox did not start: {self._failure}")

    def send(self, frame: bytes) -> None:
        """Send a frame without blocking; what does not fit goes out from the connection's thread."""
        with self._lock:
            if not self._backlog:
                try:
                    sent = self._socket.send(frame, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    sent = 0
                except OSError:  # the thread finds out by itself, and sends the call again elsewhere
                    return
                if sent == len(frame):
                    return
                frame = frame[sent:]
            self._backlog.append(memoryview(frame))
        self._wake()

    def cancel(self, call_id: int) -> None:
        """End a call whose outcome nobody wants."""
        self.send(wire.pack({"op": "cancel", "id": call_id}))

    def close(self) -> None:
        """End the warden and everything below it, and wait for that."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def abandon(self) -> None:
        """In a forked child of the caller: close the descriptors and nothing else."""
        for descriptor in (self._socket.detach(), self._theirs.detach(), self._wake_r, self._wake_w):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    # The thread. The kernel ends the warden with the thread that started it, so that one must live as long.

    def _main(self) -> None:
        self.scratch, lock = _make_scratch()
        why = "the warden could not be started"
        process: subprocess.Popen[bytes] | None = None
        with tempfile.TemporaryFile() as log:
            try:
                process = self._spawn(log)
                self._theirs.close()
                self.send(wire.pack(self._options.for_warden(self.scratch)))
                why = self._converse()
            except Exception as error:  # whatever it is, those who wait must hear of it
                why = f"{why}: {type(error).__name__}: {error}"
            finally:
                self._end(process)
                why = f"{why}{_tail(log)}"
        remove_tree(self.scratch)
        os.close(lock)
        with self._lock:  # no send may reach a descriptor that was closed and given out anew
            self._socket.close()
            os.close(self._wake_r)
            os.close(self._wake_w)
            self._wake_r = self._wake_w = -1
        if not self._started.is_set():
            self._failure = self._failure or why
            self._started.set()
        elif not self._closing:
            self.lost = True
            self._on_lost(self, why)

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", launch.__file__, "warden"],
            stdin=self._theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
        self.warden_pid = process.pid
        return process

    def _converse(self) -> str:
        """Speak with the warden until it is gone; returns why."""
        frames = wire.FrameReader()
        heard = asked = time.monotonic()
        poll = select.poll()
        poll.register(self._wake_r, select.POLLIN)
        stall = self._options.stall_s
        while not self._closing:
            poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._backlog else 0))
            ready = dict(poll.poll(stall * 250))
            if self._wake_r in ready:
                os.read(self._wake_r, 4096)
            events = ready.get(self._socket.fileno(), 0)
            if events & select.POLLOUT:
                self._flush()
            if events & ~select.POLLOUT:
                try:
                    data = self._socket.recv(_READ, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue
                except OSError as error:
                    return f"the warden is gone ({error})"
                if not data:
                    return "the warden is gone"
                heard = time.monotonic()
                for frame in frames.feed(data):
                    if (why := self._obey(frame)) is not None:
                        return why
                continue
            now = time.monotonic()
            if not self._started.is_set():
                continue
            if asked > heard and now - asked > stall:
                return f"the warden gave no sign of life for {stall:g} seconds"
            if now - heard > stall / 4 and asked <= heard:
                asked = now
                self.send(wire.pack({"op": "ping"}))
        return "it was closed"

    def _obey(self, frame: wire.Frame) -> str | None:
        header = frame.header
        if header["op"] == "outcome":
            self._on_outcome(header, frame.blobs)
        elif header["op"] == "lost":
            self._on_call_lost(header["id"], header["error"])
        elif header["op"] == "started":
            self.zygote_pid = header["zygote_pid"]
            self.capabilities = tuple(Capability(**layer) for layer in header["capabilities"])
            self._started.set()
        elif header["op"] == "failed":
            self._failure = header["error"]
            return str(header["error"])
        elif header["op"] == "trouble":
            self._trouble = header["error"]
        return None

    def _flush(self) -> None:
        with self._lock:
            while self._backlog:
                try:
                    sent = self._socket.send(self._backlog[0], socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return
                except OSError:
                    self._backlog.clear()
                    return
                if sent < len(self._backlog[0]):
                    self._backlog[0] = self._backlog[0][sent:]
                else:
                    self._backlog.popleft()

    def _end(self, process: subprocess.Popen[bytes] | None) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._theirs.close()
        if process is None:
            return
        try:
            process.wait(_CLOSE_S if self._closing else 0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wake(self) -> None:
        with self._lock:
            if self._wake_w >= 0:
                os.write(self._wake_w, b"x")


def _make_scratch() -> tuple[str, int]:
    """Make the warden's folder, locked while this process lives, and remove those of processes that were killed."""
    parent = tempfile.gettempdir()
    for name in os.listdir(parent):
        if name.startswith(_PREFIX):
            with contextlib.suppress(OSError):
                os.close(_lock(os.path.join(parent, name)))
                remove_tree(os.path.join(parent, name))
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX)
        with contextlib.suppress(OSError):  # another process swept it away before it was locked
            return path, _lock(path)


def _lock(path: str) -> int:
    """Hold a folder of this user's.

    Raises:
        OSError: Another process holds it, or it belongs to another user.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise OSError(errno.EPERM, "the folder belongs to another user", path)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.isdir(path):
            raise OSError(errno.ENOENT, "the folder is gone", path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _tail(log: IO[bytes]) -> str:
    """The last words of the warden, for an error message."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 2000))
    text = log.read().decode("utf-8", "replace").strip()
    return f"; its last words: {text}" if text else ""
