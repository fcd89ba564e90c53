"""The warden: takes jobs from the caller, hands each to a waiting child, and sees it through.

One single-threaded loop. It enforces the wall clock and the output limit, reads output as it comes, and makes the
outcome from what it and the kernel saw. It is a program apart, so that the caller's locks, imports and global
interpreter lock cannot delay a deadline. When the caller goes, so does it, and everything below it.

Covered: queueing, dispatch, deadlines, output, outcomes. Not covered: forking (``zygote``) and the verdict (``judge``).
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import os
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from . import linux, wire
from .call import Call, Child, Stream
from .zygote_link import ZygoteLink

_READ = 1 << 18
_TICK_S = 1.0


class Warden:
    """The loop."""

    def __init__(self, caller: socket.socket, options: dict[str, Any], zygote: ZygoteLink) -> None:
        self._caller = caller
        self._options = options
        self._zygote = zygote
        self._selector = selectors.DefaultSelector()
        self._frames = wire.FrameReader()
        self._out: deque[memoryview] = deque()
        self._queue: deque[Call] = deque()
        self._calls: dict[int, Call] = {}
        self._children: dict[int, Child] = {}
        self._waiting: deque[Child] = deque()
        self._numbers = itertools.count(1)
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._serving = True
        self._running = 0

    def serve(self) -> None:
        """Serve until the caller closes its end, or the zygote is gone."""
        self._caller.setblocking(False)
        self._watch(self._caller, self._on_caller)
        self._watch(self._zygote.control, self._on_zygote)
        self._tick()
        self._refill()
        while self._serving:
            timeout = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            for key, events in self._selector.select(timeout):
                # An earlier event of this round may have closed the descriptor, and even opened it anew.
                if self._selector.get_map().get(key.fd) is key:
                    key.data(events)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()

    def close(self) -> None:
        """End every program and remove what it left."""
        self._zygote.close()
        for child in list(self._children.values()):
            child.close()

    # The caller

    def _on_caller(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if not events & selectors.EVENT_READ:
            return
        try:
            data = self._caller.recv(_READ)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._serving = False
            return
        for frame in self._frames.feed(data):
            self._obey(frame)

    def _obey(self, frame: wire.Frame) -> None:
        header = frame.header
        if header["op"] == "run":
            call = Call(header["id"], header["limits"], frame.raw)
            self._calls[call.id] = call
            self._queue.append(call)
            self._dispatch()
        elif header["op"] == "cancel":
            self._cancel(header["id"])
        elif header["op"] == "ping":
            self._say({"op": "pong"})

    def _cancel(self, call_id: int) -> None:
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        if call.child is None:
            with contextlib.suppress(ValueError):
                self._queue.remove(call)
        else:
            call.cancelled = True
            self._kill(call.child)

    def _say(self, header: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> None:
        self._out.append(memoryview(wire.pack(header, blobs)))
        if len(self._out) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._out:
            try:
                sent = self._caller.send(self._out[0])
            except BlockingIOError:
                break
            except ConnectionError:
                self._serving = False
                return
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)
        if self._selector.get_key(self._caller).events != wanted:
            self._selector.modify(self._caller, wanted, self._on_caller)

    # Children

    def _refill(self) -> None:
        """Keep as many children waiting as there is room and use for."""
        room = self._options["workers"] + self._options["waiting"] - len(self._children)
        idle = len(self._children) - self._running
        wanted = min(room, self._options["waiting"] + min(len(self._queue), self._options["workers"]) - idle)
        for _ in range(max(0, wanted)):
            self._fork()

    def _fork(self) -> None:
        child = Child(next(self._numbers), self._options["scratch"])
        try:
            self._zygote.fork(child)
        except OSError:
            self._serving = False
            return
        self._children[child.number] = child
        self._watch(child.report, lambda _: self._on_report(child))
        for stream in child.streams:
            self._watch(stream.descriptor, partial(self._on_output, child, stream))

    def _on_zygote(self, _: int) -> None:
        try:
            message = self._zygote.receive()
        except OSError:
            message = None
        if message is None:
            self._serving = False
            return
        child = self._children.get(message.get("n", 0))
        if message["op"] == "ended" and child is not None:
            child.wait_status, child.peak_kb = message["status"], message["peak_kb"]
            child.cpu_s = max(0.0, message["cpu_s"] - child.cpu_at_start)
            child.ended_at = time.monotonic()
            self._at(child.ended_at + 2.0, lambda: self._abandon_streams(child))
            self._settle(child)
        elif message["op"] == "fork_failed" and child is not None:
            self._lose(child, message["error"])

    def _on_report(self, child: Child) -> None:
        try:
            message = child.report.recv(1 << 18)
        except OSError:
            message = b""
        if not message:
            self._unwatch(child.report)
            child.report.close()
            child.open_ends -= 1
            self._settle(child)
            return
        if not child.ready:
            self._on_ready(child, message)
        elif child.call is not None:
            child.note(message)

    def _on_ready(self, child: Child, message: bytes) -> None:
        said = json.loads(message)
        if "failed" in said:
            child.failure = said["failed"]
            return
        child.ready, child.cpu_at_start = True, said["cpu_s"]
        self._waiting.append(child)
        self._dispatch()

    def _dispatch(self) -> None:
        while self._queue and self._waiting and self._running < self._options["workers"]:
            self._start(self._waiting.popleft(), self._queue.popleft())
        self._refill()

    def _start(self, child: Child, call: Call) -> None:
        child.call, call.child = call, child
        self._running += 1
        child.job_left = memoryview(call.raw)
        call.raw = b""
        child.started_at = time.monotonic()
        self._at(child.started_at + call.limits["wall_s"], lambda: self._deadline(child))
        self._feed(child)
        if child.job_left:
            self._watch(child.job_fd, lambda _: self._feed(child), selectors.EVENT_WRITE)

    def _feed(self, child: Child) -> None:
        """Write more of the job to the child; close the pipe when it is all written or not wanted."""
        try:
            while child.job_left:
                child.job_left = child.job_left[os.write(child.job_fd, child.job_left) :]
        except BlockingIOError:
            return
        except OSError:
            child.job_left = memoryview(b"")
        self._unwatch(child.job_fd)
        child.close_job()

    def _on_output(self, child: Child, stream: Stream, _: int) -> None:
        try:
            data = os.read(stream.descriptor, _READ)
        except BlockingIOError:
            return
        if data:
            if stream.add(data, child.output_limit) and child.call is not None:
                self._stop(child, "output_limit")
            return
        self._unwatch(stream.descriptor)
        child.close_stream(stream)
        self._settle(child)

    def _deadline(self, child: Child) -> None:
        if child.wait_status is None and child.call is not None:
            self._stop(child, "timeout")

    def _stop(self, child: Child, why: str) -> None:
        if child.stopped_for is None and child.wait_status is None:
            child.stopped_for = why
            self._kill(child)

    def _kill(self, child: Child) -> None:
        try:
            self._zygote.kill(child)
        except OSError:
            self._serving = False

    def _abandon_streams(self, child: Child) -> None:
        """Stop waiting for the pipes of a child that has ended: something that we could not kill holds them."""
        for stream in child.streams:
            if stream.descriptor >= 0:
                self._unwatch(stream.descriptor)
                child.close_stream(stream)
        if child.report.fileno() >= 0:
            self._unwatch(child.report)
            child.report.close()
            child.open_ends -= 1
        self._settle(child)

    def _settle(self, child: Child) -> None:
        """When the process is reaped and every pipe is at its end: make the outcome and forget the child."""
        if child.wait_status is None or child.open_ends > 0 or child.number not in self._children:
            return
        if child.call is None:
            self._lose(child, child.failure or "it ended before its job came")
            return
        call = child.call
        header, blobs = child.outcome()
        self._forget(child)
        self._running -= 1
        if not call.cancelled:
            del self._calls[call.id]
            self._say({"op": "outcome", "id": call.id, **header}, blobs)
        self._dispatch()

    def _lose(self, child: Child, why: str) -> None:
        """A child was lost before it had a job: tell the caller, and make another one a little later."""
        self._forget(child)
        self._say({"op": "trouble", "error": f"A child could not be prepared: {why}."})
        self._at(time.monotonic() + 0.2, self._refill)

    def _forget(self, child: Child) -> None:
        self._children.pop(child.number, None)
        with contextlib.suppress(ValueError):
            self._waiting.remove(child)
        for end in (child.job_fd, child.report, *(stream.descriptor for stream in child.streams)):
            self._unwatch(end)
        child.close()

    # Time and descriptors

    def _tick(self) -> None:
        """See that the zygote still answers."""
        if not self._zygote.check(self._options["stall_s"]):
            self._serving = False
        self._at(time.monotonic() + _TICK_S, self._tick)

    def _at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (when, next(self._numbers), what))

    def _watch(self, end: Any, callback: Callable[[int], None], events: int = selectors.EVENT_READ) -> None:
        self._selector.register(end, events, callback)

    def _unwatch(self, end: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(end)


def main() -> None:
    """Read the options, start the zygote, and serve."""
    linux.die_with_parent()
    caller = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    frames = wire.FrameReader()
    first: list[wire.Frame] = []
    while not first:
        data = caller.recv(_READ)
        if not data:
            return
        first = frames.feed(data)
    options = first[0].header
    try:
        zygote = ZygoteLink(options)
    except Exception as error:
        caller.sendall(wire.pack({"op": "failed", "error": str(error)}))
        return
    caller.sendall(wire.pack({"op": "started", "zygote_pid": zygote.pid, "capabilities": []}))
    warden = Warden(caller, options, zygote)
    try:
        warden.serve()
    finally:
        warden.close()
    sys.exit(0)
