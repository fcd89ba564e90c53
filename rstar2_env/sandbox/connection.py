"""``Connection``: starts one warden (the process that supervises programs), and exchanges messages with it in a thread.

Covered: how messages are sent and received, the heartbeat, shutdown. Not covered: how a warden is started and reached
(``host``), the contents of messages, and the calls in flight when the warden is lost (``client``).
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox.host import Host
from rstar2_env.sandbox.inside import wire
from rstar2_env.sandbox.inside.send_queue import SendQueue
from rstar2_env.sandbox.job import Capability

_READ = 1 << 18
_START_S = 180.0
_CLOSE_S = 3.0


class Connection:
    """A running warden, and the thread that exchanges messages with it.

    Args:
        host: Starts the warden, and ends it.
        on_outcome: Called in the connection's thread with the header and blobs of each outcome.
        on_call_lost: Called in the connection's thread with the id of a call that was lost through no fault of its
            program, and the reason.
        on_lost: Called once in the connection's thread, with this connection and the reason, if a started warden ends
            without a call to ``close``.
    """

    def __init__(
        self,
        host: Host,
        on_outcome: Callable[[dict[str, Any], list[bytes]], None],
        on_call_lost: Callable[[int, str], None],
        on_lost: Callable[[Connection, str], None],
    ) -> None:
        self.capabilities: tuple[Capability, ...] = ()
        self.zygote_pid = 0
        self.lost = False
        self.host = host
        self._on_outcome = on_outcome
        self._on_call_lost = on_call_lost
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._out = SendQueue(self._send_now)
        self._started = threading.Event()
        self._failure: str | None = None
        self._closing = False
        self._socket: socket.socket | None = None
        self._wake_r, self._wake_w = os.pipe()
        self._thread = threading.Thread(target=self._main, name="rstar2-sandbox", daemon=True)

    def start(self) -> None:
        """Start the warden and wait until it accepts jobs.

        Raises:
            SandboxUnavailableError: The warden does not start; the message gives the reason.
        """
        self._thread.start()
        if not self._started.wait(_START_S):
            self._failure = f"it was not ready after {_START_S:.0f} seconds"
        if self._failure is not None:
            self.close()
            raise SandboxUnavailableError(f"{self.host.name} did not start: {self._failure}")

    def send(self, frame: bytes, key: Hashable | None = None) -> None:
        """Send a frame without blocking; if the socket's buffer is full, the connection's thread sends the rest.

        Args:
            frame: Bytes of the frame, as ``wire.pack`` returns them.
            key: See ``SendQueue.append``.
        """
        with self._lock:
            if self._socket is None:
                return
            waits = bool(self._out)
            self._out.append(frame, key)
            if not waits:
                self._flush()
            if not self._out:
                return
        self._wake()

    def order(self, op: str, key: Hashable | None = None, **arguments: Any) -> None:
        """Send the warden an order without binary data, as in ``order("cancel", id=3)`` (see ``WardenSupervisor``)."""
        self.send(wire.pack({"op": op, **arguments}), key)

    def begin_close(self) -> None:
        """Begin to end the warden and all its processes, without waiting."""
        self._closing = True
        self._shut()
        self._wake()

    def close(self) -> None:
        """End the warden and all its processes, and wait until they have ended."""
        self.begin_close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def abandon(self) -> None:
        """In a forked child process, close the inherited copies of the connection's descriptors."""
        self.host.abandon()
        stream = self._socket.detach() if self._socket is not None else -1
        for descriptor in (stream, self._wake_r, self._wake_w):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    # The thread

    def _main(self) -> None:
        why = "the warden (the process that supervises the programs) could not be started"
        try:
            stream = self.host.start()
            with self._lock:
                self._socket = stream
            self.send(wire.pack(self.host.options()))
            why = self._converse(stream)
        except Exception as error:  # waiting callers must receive any failure
            why = f"{why}: {type(error).__name__}: {error}"
        finally:
            self._shut()
            try:
                if stderr := self.host.end(_CLOSE_S if self._closing else 0.2):
                    why = f"{why}; its error output: {stderr}"
            except Exception as error:  # waiting callers must receive this failure too
                why = f"{why}; its process could not be ended: {type(error).__name__}: {error}"
        with self._lock:  # no send may reach a descriptor that was closed and reused
            if self._socket is not None:
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

    def _converse(self, stream: socket.socket) -> str:
        """Exchange frames until the warden ends or stalls, or the connection is closed; return the reason."""
        frames = wire.FrameReader()
        received_at = pinged_at = time.monotonic()
        poll = select.poll()
        poll.register(self._wake_r, select.POLLIN)
        stall = self.host.stall_timeout_s
        while not self._closing:
            poll.register(stream, select.POLLIN | (select.POLLOUT if self._out else 0))
            ready = dict(poll.poll(stall * 250))
            if self._wake_r in ready:
                os.read(self._wake_r, 4096)
            events = ready.get(stream.fileno(), 0)
            if events & select.POLLOUT:
                with self._lock:
                    self._flush()
            if events & ~select.POLLOUT:
                try:
                    data = stream.recv(_READ, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    continue
                except OSError as error:
                    return f"the warden (the process that supervises the programs) has ended ({error})"
                if not data:
                    return "the warden (the process that supervises the programs) has ended"
                received_at = time.monotonic()
                for frame in frames.feed(self.host.decode(data)):
                    if (why := self._handle(frame)) is not None:
                        return why
                continue
            now = time.monotonic()
            if not self._started.is_set():
                continue
            if pinged_at > received_at and now - pinged_at > stall:
                return f"the warden (the process that supervises the programs) did not respond for {stall:g} seconds"
            if now - received_at > stall / 4 and pinged_at <= received_at:
                pinged_at = now
                self.order("ping")
        return "the sandbox was closed"

    def _handle(self, frame: wire.Frame) -> str | None:
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
        return None

    def _flush(self) -> None:
        """Send waiting frames; the caller holds the lock."""
        with contextlib.suppress(OSError):  # the thread notices the loss, and the calls are sent to a new warden
            self._out.flush()

    def _send_now(self, data: memoryview) -> int:
        assert self._socket is not None  # nothing is sent before the start
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def _shut(self) -> None:
        with contextlib.suppress(OSError), self._lock:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def _wake(self) -> None:
        with self._lock:
            if self._wake_w >= 0:
                os.write(self._wake_w, b"x")
