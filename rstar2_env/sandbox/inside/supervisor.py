"""The warden's work: take jobs from the caller, hand each to a waiting child, and see it through.

One single-threaded loop. It enforces the wall clock and the output limit, reads output as it comes, and makes the
outcome from what it and the kernel saw. Covered: queueing, dispatch, deadlines, output, outcomes. Not covered: the
start (``warden``), forking (``fork_server``) and the verdict (``judge``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections import deque
from functools import partial
from typing import Any

from . import orders, wire
from .call import Call, Child, Slot, Stream
from .caller_link import CallerLink
from .loop import OUT, Loop
from .zygote_link import ZygoteLink

_READ = 1 << 18
_TICK_S = 1.0
_STREAMS_CLOSE_S = 2.0
"""Seconds that pipes may stay open after the end of a child, before they are given up."""
_RETRY_S = 0.2
_MAX_RESTARTS = 5
_SPARE_MEMORY = 64 << 20
_MAX_FAILURES = 20
"""Children in a row that may fail to be prepared before this warden gives up."""


class Supervisor:
    """The warden at work.

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
        self._loop = Loop()
        self._wants_to_write = False
        self._queue: deque[Call] = deque()
        self._calls: dict[int, Call] = {}
        self._children: dict[int, Child] = {}
        self._waiting: deque[Child] = deque()
        self._preparing = self._running = self._failures = 0
        self._numbers = itertools.count(1)

    def serve(self) -> None:
        """Serve until the caller closes its end, or the zygote is gone."""
        self._caller.do_not_block()
        self._loop.watch(self._caller.incoming, self._on_caller)
        self._loop.watch(self._caller.outgoing, self._on_room, 0)
        self._loop.watch(self._zygote.control.fileno(), self._on_zygote)
        self._tick()
        self._refill()
        self._loop.run()

    def stop(self) -> None:
        """Return from ``serve`` soon."""
        self._loop.stop()

    def close(self) -> None:
        """End every program and remove what it left."""
        self._zygote.close()
        for child in list(self._children.values()):
            child.close()
        for slot in self._slots:
            slot.close()

    # The caller

    def _on_room(self, events: int) -> None:
        self._after_writing(bool(events & OUT) and self._caller.flush())  # without OUT, the other end is closed

    def _on_caller(self, _: int) -> None:
        frames = self._caller.receive()
        if frames is None:
            self._loop.stop()
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
            self._loop.stop()
            return
        if self._caller.backlog != self._wants_to_write:
            self._wants_to_write = self._caller.backlog
            self._loop.rewatch(self._caller.outgoing, OUT if self._wants_to_write else 0)

    # Making children and giving them jobs

    def _refill(self) -> None:
        """Keep children waiting: as many as asked for, and one for each call that could start now."""
        able = min(len(self._queue), self._workers - self._running)
        wanted = self._target + able - len(self._waiting) - self._preparing
        for _ in range(min(wanted, len(self._free))):
            if self._loop.running:
                self._fork(self._free.popleft())

    def _fork(self, slot: Slot) -> None:
        try:
            child = Child(next(self._numbers), slot, self._file_bytes)
        except OSError as error:  # out of descriptors, or of disk
            self._free.append(slot)
            self._fail(str(error))
            self._loop.at(time.monotonic() + _RETRY_S, self._refill)
            return
        self._children[child.number] = child
        self._preparing += 1
        self._loop.watch(child.report.fileno(), partial(self._on_report, child))
        for stream in child.streams:
            self._loop.watch(stream.descriptor, partial(self._on_output, child, stream))
        try:
            self._zygote.fork(child)
        except OSError:
            self._loop.stop()

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
        child.started_at = time.monotonic()
        slot = child.slot
        if not (slot.bounds_memory and slot.bounds_processes and slot.bounds_files):
            self._zygote.watch(
                child,
                0 if slot.bounds_processes else limits["processes"],
                0 if slot.bounds_memory else limits["memory_bytes"] + _SPARE_MEMORY,
                0 if slot.bounds_files else limits["file_bytes"],
            )
        self._loop.at(child.started_at + limits["wall_s"], lambda: self._stop(child, "timeout"))
        self._feed(child)
        if child.job_left:
            self._loop.watch(child.job_fd, lambda _: self._feed(child), OUT)

    def _feed(self, child: Child) -> None:
        """Write more of the job to the child; close the pipe when it is all written or not wanted."""
        try:
            while child.job_left:
                child.job_left = child.job_left[os.write(child.job_fd, child.job_left) :]
        except BlockingIOError:
            return
        except OSError:
            child.job_left = memoryview(b"")
        self._loop.forget(child.job_fd)
        child.close_job()

    # What children do

    def _on_report(self, child: Child, _: int) -> None:
        try:
            message = child.report.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._loop.forget(child.report.fileno())
            child.close_report()
            self._settle(child)
        elif child.call is not None:
            child.note(message)
        elif not child.ready:
            self._on_ready(child, message.decode("utf-8", "replace"))

    def _on_ready(self, child: Child, said: str) -> None:
        word, _, rest = said.partition(" ")
        if word != "ready":
            child.failure = rest
            return
        child.ready, child.cpu_at_start = True, int(rest) / 1e9
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
        self._loop.forget(stream.descriptor)
        child.close_stream(stream)
        self._settle(child)

    def _on_zygote(self, _: int) -> None:
        try:
            message = self._zygote.receive()
        except BlockingIOError:
            return
        except OSError:
            message = None
        if message is None:
            print("the warm parent is gone", file=sys.stderr)
            self._loop.stop()
            return
        child = self._children.get(message.number)
        if child is None:
            return
        if message.kind in (orders.ENDED, orders.BROKEN):
            child.end(message, time.monotonic())
            if child.open_ends > 0:
                self._loop.at(child.ended_at + _STREAMS_CLOSE_S, lambda: self._abandon_streams(child))
            self._settle(child)
        elif message.kind == orders.OVERDRAWN:
            child.stopped_for = child.stopped_for or message.text
        elif message.kind == orders.GONE:
            child.gone = True
            self._release(child)
        elif message.kind == orders.FORK_FAILED:
            child.failure, child.gone, child.settled = message.text, True, True
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
            self._loop.stop()

    def _abandon_streams(self, child: Child) -> None:
        """Stop waiting for the pipes of a child that has ended: something that we could not kill holds them."""
        for stream in child.streams:
            self._loop.forget(stream.descriptor)
            child.close_stream(stream)
        self._loop.forget(child.report.fileno())
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
                self._answer(call, child)
            self._dispatch()
        self._release(child)

    def _answer(self, call: Call, child: Child) -> None:
        why = child.lost()
        if why is not None and not child.compiled and call.restarts < _MAX_RESTARTS:
            call.restarts += 1  # nothing of it ran: it may as well be its first start
            call.child = None
            self._queue.appendleft(call)
            return
        del self._calls[call.id]
        if why is not None:
            self._say({"op": "lost", "id": call.id, "error": why})
        else:
            header, blobs = child.outcome()
            self._say({"op": "outcome", "id": call.id, **header}, blobs)

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
            self._loop.stop()

    def _release(self, child: Child) -> None:
        """When nothing of a child is left: give its slot to the next."""
        if not (child.gone and child.settled) or child.number not in self._children:
            return
        del self._children[child.number]
        for descriptor in child.descriptors():
            self._loop.forget(descriptor)
        child.close()
        self._free.append(child.slot)
        if self._failures:
            self._loop.at(time.monotonic() + _RETRY_S, self._refill)
        else:
            self._refill()

    # Time

    def _tick(self) -> None:
        """See that the zygote still answers."""
        if not self._zygote.check(self._stall_s):
            print(f"the warm parent gave no sign of life for {self._stall_s:g} seconds", file=sys.stderr)
            self._loop.stop()
        self._loop.at(time.monotonic() + _TICK_S, self._tick)
