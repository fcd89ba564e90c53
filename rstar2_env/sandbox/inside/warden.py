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
import shutil
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from . import layers, linux, wire
from .call import Call, Child, Slot, Stream
from .caller_link import CallerLink
from .zygote_link import ZygoteLink

_READ = 1 << 18
_TICK_S = 1.0
_STREAMS_CLOSE_S = 2.0
"""Seconds that pipes may stay open after the end of a child, before they are given up."""
_RETRY_S = 0.2
_SPARE_MEMORY = 64 << 20
_MAX_FAILURES = 20
"""Children in a row that may fail to be prepared before this warden gives up."""


class Warden:
    """The loop.

    Args:
        caller: Where jobs come from.
        options: ``workers``, ``waiting``, ``file_bytes`` (of the first children), ``stall_s``.
        zygote: Who forks.
        slots: A place for every child that may be alive at once.
        greeting: What to tell the caller once a first child is ready, which proves that every layer could be laid.
    """

    def __init__(
        self,
        caller: CallerLink,
        options: dict[str, Any],
        zygote: ZygoteLink,
        slots: list[Slot],
        greeting: dict[str, Any],
    ) -> None:
        self._caller = caller
        self._greeting: dict[str, Any] | None = greeting
        self._workers: int = options["workers"]
        self._target: int = options["waiting"]
        self._stall_s: float = options["stall_s"]
        self._file_bytes: int = options["file_bytes"]
        self._zygote = zygote
        self._slots = slots
        self._free = deque(slots)
        self._selector = selectors.DefaultSelector()
        self._queue: deque[Call] = deque()
        self._calls: dict[int, Call] = {}
        self._children: dict[int, Child] = {}
        self._waiting: deque[Child] = deque()
        self._preparing = self._running = self._failures = 0
        self._numbers = itertools.count(1)
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._serving = True

    def serve(self) -> None:
        """Serve until the caller closes its end, or the zygote is gone."""
        self._caller.socket.setblocking(False)
        self._watch(self._caller.socket, self._on_caller)
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
        for slot in self._slots:
            slot.close()

    # The caller

    def _on_caller(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._after_writing(self._caller.flush())
        if not events & selectors.EVENT_READ:
            return
        frames = self._caller.receive()
        if frames is None:
            self._serving = False
            return
        for frame in frames:
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
            self._queue.remove(call)
        else:
            call.cancelled = True
            self._kill(call.child)

    def _say(self, header: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> None:
        self._after_writing(self._caller.say(header, blobs))

    def _after_writing(self, alive: bool) -> None:
        if not alive:
            self._serving = False
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._caller.backlog else 0)
        if self._selector.get_key(self._caller.socket).events != wanted:
            self._selector.modify(self._caller.socket, wanted, self._on_caller)

    # Making children and giving them jobs

    def _refill(self) -> None:
        """Keep children waiting: as many as asked for, and one for each call that could start now."""
        able = min(len(self._queue), self._workers - self._running)
        wanted = self._target + able - len(self._waiting) - self._preparing
        for _ in range(min(wanted, len(self._free))):
            if self._serving:
                self._fork(self._free.popleft())

    def _fork(self, slot: Slot) -> None:
        try:
            child = Child(next(self._numbers), slot, self._file_bytes)
        except OSError as error:  # out of descriptors, or of disk
            self._free.append(slot)
            self._fail(str(error))
            self._at(time.monotonic() + _RETRY_S, self._refill)
            return
        self._children[child.number] = child
        self._preparing += 1
        self._watch(child.report, lambda _: self._on_report(child))
        for stream in child.streams:
            self._watch(stream.descriptor, partial(self._on_output, child, stream))
        try:
            self._zygote.fork(child)
        except OSError:
            self._serving = False

    def _dispatch(self) -> None:
        while self._queue and self._running < self._workers:
            wanted = self._queue[0].limits["file_bytes"]
            if wanted != self._file_bytes:
                self._reshape(wanted)
            if not self._waiting:
                break
            self._start(self._waiting.popleft(), self._queue.popleft())
        self._refill()

    def _reshape(self, file_bytes: int) -> None:
        """The size of a child's file system is fixed when it is prepared: let those of another size go."""
        self._file_bytes = file_bytes
        for child in self._waiting:
            child.discarded = True
            self._kill(child)
        self._waiting.clear()

    def _start(self, child: Child, call: Call) -> None:
        limits = call.limits
        if child.slot.group is not None:
            child.slot.group.prepare(limits["memory_bytes"], limits["processes"])
        child.call, call.child = call, child
        self._running += 1
        child.job_left = memoryview(call.raw)
        call.raw = b""
        child.started_at = time.monotonic()
        if not child.slot.bounds_memory:
            self._zygote.watch_memory(child, limits["memory_bytes"] + _SPARE_MEMORY)
        self._at(child.started_at + limits["wall_s"], lambda: self._stop(child, "timeout"))
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

    # What children do

    def _on_report(self, child: Child) -> None:
        try:
            message = child.report.recv(_READ)
        except OSError:
            message = b""
        if not message:
            self._unwatch(child.report)
            child.close_report()
            self._settle(child)
        elif child.call is not None:
            child.note(message)
        elif not child.ready:
            self._on_ready(child, json.loads(message))

    def _on_ready(self, child: Child, said: dict[str, Any]) -> None:
        if "failed" in said:
            child.failure = said["failed"]
            return
        child.ready, child.cpu_at_start = True, said["cpu_s"]
        if self._greeting is not None:
            self._say(self._greeting)
            self._greeting = None
        self._preparing -= 1
        self._failures = 0
        if child.file_bytes == self._file_bytes:
            self._waiting.append(child)
        else:
            child.discarded = True
            self._kill(child)
        self._dispatch()

    def _on_output(self, child: Child, stream: Stream, _: int) -> None:
        try:
            data = os.read(stream.descriptor, _READ)
        except BlockingIOError:
            return
        if data:
            if stream.add(data, child.output_limit):
                self._stop(child, "output_limit")
            return
        self._unwatch(stream.descriptor)
        child.close_stream(stream)
        self._settle(child)

    def _on_zygote(self, _: int) -> None:
        try:
            message = self._zygote.receive()
        except OSError:
            message = None
        if message is None:
            print("the warm parent is gone", file=sys.stderr)
            self._serving = False
            return
        child = self._children.get(message.get("n", 0))
        if child is None:
            return
        if message["op"] == "ended":
            child.end(message, time.monotonic())
            if child.open_ends > 0:
                self._at(child.ended_at + _STREAMS_CLOSE_S, lambda: self._abandon_streams(child))
            self._settle(child)
        elif message["op"] == "over_memory":
            child.stopped_for = child.stopped_for or "memory"
        elif message["op"] == "gone":
            child.gone = True
            self._release(child)
        elif message["op"] == "fork_failed":
            child.failure, child.gone, child.settled = message["error"], True, True
            self._lose(child)
            self._release(child)

    # How children end

    def _stop(self, child: Child, why: str) -> None:
        """End a program that broke a limit."""
        if child.call is not None and child.stopped_for is None and child.wait_status is None:
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
            self._unwatch(stream.descriptor)
            child.close_stream(stream)
        self._unwatch(child.report)
        child.close_report()
        self._settle(child)

    def _settle(self, child: Child) -> None:
        """When the process is reaped and every pipe is at its end: make the outcome."""
        if child.wait_status is None or child.open_ends > 0 or child.settled:
            return
        child.settled = True
        call = child.call
        if call is None:
            self._lose(child)
        else:
            self._running -= 1
            if not call.cancelled:
                del self._calls[call.id]
                if (why := child.lost()) is not None:
                    self._say({"op": "lost", "id": call.id, "error": why})
                else:
                    header, blobs = child.outcome()
                    self._say({"op": "outcome", "id": call.id, **header}, blobs)
            self._dispatch()
        self._release(child)

    def _lose(self, child: Child) -> None:
        """A child ended before it had a job. Unless that was our wish, say so, and go slow."""
        if not child.ready:
            self._preparing -= 1
        if child.discarded:
            return
        with contextlib.suppress(ValueError):
            self._waiting.remove(child)
        self._fail(child.failure or "it ended without a word")

    def _fail(self, reason: str) -> None:
        """Count a child that could not be prepared; too many in a row, or the very first, and this warden gives up."""
        self._failures += 1
        why = f"A child could not be prepared: {reason}"
        print(why, file=sys.stderr)
        if self._greeting is not None:
            self._say({"op": "failed", "error": why})
        if self._greeting is not None or self._failures > _MAX_FAILURES:
            self._serving = False

    def _release(self, child: Child) -> None:
        """When nothing of a child is left: give its slot to the next."""
        if not (child.gone and child.settled) or child.number not in self._children:
            return
        del self._children[child.number]
        for end in (child.job_fd, child.report, *(stream.descriptor for stream in child.streams)):
            self._unwatch(end)
        child.close()
        self._free.append(child.slot)
        if self._failures:
            self._at(time.monotonic() + _RETRY_S, self._refill)
        else:
            self._refill()

    # Time and descriptors

    def _tick(self) -> None:
        """See that the zygote still answers."""
        if not self._zygote.check(self._stall_s):
            print(f"the warm parent gave no sign of life for {self._stall_s:g} seconds", file=sys.stderr)
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
    """Read the options, find the layers, start the zygote, and serve."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # tidies up on its way out
    linux.die_with_parent(signal.SIGTERM)
    caller = CallerLink(socket.socket(fileno=os.dup(0)))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    options = caller.first()
    if options is None:
        return
    os.makedirs(os.path.join(options["scratch"], "root"), exist_ok=True)
    found = layers.find(options)
    try:
        if options["isolation"] == "strict" and (broken := found.broken()):
            raise RuntimeError(f"isolation='strict' needs what this machine does not give: {'; '.join(broken)}.")
        zygote = ZygoteLink(options, found)
        scratch = None if "mount" in found.plan.namespaces else options["scratch"]
        count = options["workers"] + 2 * options["waiting"]
        slots = [Slot(index, found.groups, scratch) for index in range(count)]
    except (OSError, RuntimeError) as error:
        caller.say({"op": "failed", "error": str(error)})
        return
    greeting = {"op": "started", "zygote_pid": zygote.pid, "capabilities": found.capabilities()}
    warden = Warden(caller, options, zygote, slots, greeting)
    try:
        warden.serve()
    finally:
        warden.close()
        if found.groups is not None:
            found.groups.close()
        shutil.rmtree(options["scratch"], ignore_errors=True)
