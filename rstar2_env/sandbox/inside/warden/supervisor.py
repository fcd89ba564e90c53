"""``WardenSupervisor``: receives jobs from the caller, sends each one to a waiting child, and reports its outcome.

The supervisor runs in a single thread. It enforces the limits on wall-clock time and output, reads output as it
arrives, and builds the outcome from its own and the kernel's observations. Covered: queueing, dispatch, deadlines,
output, outcomes. Not covered: the start (``main``), parents (``parents``), forking (the zygote's ``server``) and how
the status of a call is decided (``verdict``).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import orders, wire
from .backlog import Backlog
from .caller_link import CallerLink
from .cells import Cells
from .child import Call, Child
from .deprioritizing import Deprioritizer
from .imports import program_texts
from .loop import ENDED, OUT, EventLoop, log_error
from .parent import Parent
from .parents import Parents
from .pool import ChildPool
from .slot import ChildSlot
from .stream import Stream

_READ = 1 << 18
_TICK_S = 1.0
_STREAMS_CLOSE_S = 2.0
"""Seconds from a child's end until the warden closes its output pipes, even if another process holds them open."""


@dataclass(eq=False)
class WardenSupervisor:
    """Runs the jobs of one caller, as the main loop of the warden.

    Attributes:
        caller: The connection to the caller.
        options: The options of ``ChildPool``, ``Parents``, ``Sessions`` and ``Deprioritizer``.
        parents: The parents that fork children.
        make_slot: Function that creates the slot of a child.
        greeting: First message to the caller, sent when the first child is ready, since this shows that every layer
            can be applied; ``None`` after it was sent.
    """

    caller: CallerLink
    options: dict[str, Any]
    parents: Parents
    make_slot: Callable[[int], ChildSlot]
    greeting: dict[str, Any] | None

    def __post_init__(self) -> None:
        """Create the parts of the supervisor.

        Raises:
            OSError: The slots of the children cannot be created.
        """
        self._workers: int = self.options["workers"]
        self._stall_timeout_s: float = self.options["stall_timeout_s"]
        self._loop = EventLoop(self._fail_child)
        self._wants_to_write = False
        self._queue = Backlog()
        self._calls: dict[int, Call] = {}
        self._running = 0
        self._pool = ChildPool(
            self.options,
            self._loop,
            self.parents,
            self.make_slot,
            demand=lambda parent: min(self._queue.waiting_for(parent), self._workers - self._running),
            on_report=self._on_report,
            on_output=self._on_output,
            give_up=self._give_up,
        )
        self._cells = Cells(self.options, self._loop, self._queue, self._pool, self._report, self._report_lost)
        self._deprioritizer = Deprioritizer(self.options, self._loop, self._stop, self._on_deprioritized)

    def serve(self) -> None:
        """Run jobs until the caller closes the connection, ``stop`` is called or a parent process ends."""
        self.caller.do_not_block()
        self._loop.watch(self.caller.incoming, self._on_caller)
        self._loop.watch(self.caller.outgoing, self._on_room, 0)
        self.parents.listen(self._loop, self._on_parent, self._on_parent_settled)
        self._tick()
        self._pool.refill()
        self._loop.run()

    def stop(self) -> None:
        """End ``serve`` after the current round of the event loop."""
        self._loop.stop()

    def close(self) -> None:
        """Close all children and remove their control groups; call this after the programs have ended."""
        self._pool.close()

    # The caller

    def _on_room(self, events: int) -> None:
        self._after_writing(bool(events & OUT) and self.caller.flush())  # without OUT, the connection is closed

    def _on_caller(self, _: int) -> None:
        frames = self.caller.receive()
        if frames is None:
            self._loop.stop()
            return
        for frame in frames:
            try:
                self._handle(frame)
            except Exception as error:  # an invalid message
                log_error(error)
                if frame.header.get("op") == "run" and frame.header.get("id") not in self._calls:
                    why = f"the supervising process (warden) could not read the call: {type(error).__name__}: {error}"
                    self._send({"op": "lost", "id": frame.header.get("id"), "error": why})

    def _handle(self, frame: wire.Frame) -> None:
        header = frame.header
        if header["op"] == "run":
            name = header.get("session")
            parent = self.parents.for_program(program_texts(frame)) if name is None else self.parents.for_session()
            call = self._calls[header["id"]] = Call(header["id"], header["limits"], frame.raw, parent)
            if name is None:
                self._queue.append(call)
            else:
                self._cells.sessions.submit(call, name)
            self._dispatch()
        elif header["op"] == "cancel":
            self._cancel(header["id"])
        elif header["op"] == "ping":
            self._send({"op": "pong"})
        elif header["op"] == "end_session":
            self._cells.end(header["name"])
            self._dispatch()
        elif header["op"] == "sessions_lost":
            self._cells.note_restart(header["names"])

    def _cancel(self, call_id: int) -> None:
        if (call := self._calls.pop(call_id, None)) is None:
            return
        if call.session is not None:
            self._cells.cancel(call)
            self._dispatch()
        elif call.child is None:
            self._queue.remove(call)
        else:
            call.cancelled = True
            self._pool.kill(call.child)

    def _send(self, header: dict[str, Any], blobs: tuple[bytes, ...] = (), call: Call | None = None) -> None:
        key = call.session.name if call is not None and call.session is not None else None
        self._after_writing(self.caller.send(header, blobs, key))

    def _after_writing(self, alive: bool) -> None:
        if not alive:
            self._loop.stop()
            return
        if self.caller.backlog != self._wants_to_write:
            self._wants_to_write = self.caller.backlog
            self._loop.rewatch(self.caller.outgoing, OUT if self._wants_to_write else 0)

    # Dispatching

    def _dispatch(self) -> None:
        while self._running < self._workers and (found := self._queue.next(self._pool.take)) is not None:
            self._give(*found)
        self._pool.refill(at_once=self._running == 0)

    def _give(self, child: Child, call: Call) -> None:
        try:
            self._start(child, call)
        except Exception as error:
            self._report_lost(
                call, f"the supervising process (warden) could not start the program: {type(error).__name__}: {error}"
            )
            self._fail_child(child, error)
            if call.session is not None and child.session is None:
                self._cells.sessions.lose_process(call.session)

    def _start(self, child: Child, call: Call) -> None:
        limits, slot = call.limits, child.slot
        continues = child.session is not None
        if slot.group is not None and continues:
            slot.group.reset_counters()
        elif slot.group is not None:
            try:
                slot.group.prepare(limits["memory_bytes"], limits["processes"])
            except OSError as error:  # the memory of the previous call is not yet freed
                self._start_elsewhere(child, call, error)
                return
        child.begin(call)
        self._running += 1
        if any(watched := slot.unbounded(child.limits)):
            child.watch(*watched)
        if call.session is not None:
            self._cells.begin(child, call)
            self._pool.make_slots(self._cells.sessions.count + self._deprioritizer.count)
        else:
            self._deprioritizer.begin(child)
        self._feed(child)
        if child.job_left:
            self._loop.watch(child.job_fd, lambda _: self._feed(child, True), OUT, child)

    def _start_elsewhere(self, child: Child, call: Call, why: OSError) -> None:
        """Discard a child whose limits cannot be set, and queue its call again."""
        self._pool.discard(child)
        if not self._queue.retry(call):
            self._report_lost(call, f"the limits of the program's control group could not be set: {why}")

    def _on_deprioritized(self) -> None:
        self._running -= 1
        self._pool.make_slots(self._cells.sessions.count + self._deprioritizer.count)
        self._dispatch()

    def _feed(self, child: Child, was_watched: bool = False) -> None:
        """Write pending bytes of the job to the child; close the pipe at the end, unless it belongs to a session.

        Args:
            child: The child that receives the job.
            was_watched: Whether the event loop watches the pipe, so that it must be unwatched at the end.
        """
        if not child.feed():
            return
        if child.session is None:
            self._loop.forget(child.job_fd)
            child.close_job()
        elif was_watched:
            self._loop.unwatch(child.job_fd)

    # Messages and output of children

    def _on_report(self, child: Child, events: int) -> None:
        if child.is_idle and not events & ENDED:
            self._cells.mute(child, child.report.fileno())
            return
        try:
            message = child.receive()
        except BlockingIOError:
            return
        if not message:
            self._loop.forget(child.report.fileno())
            child.close_report()
            if child.session is not None:  # without the socket, the end of a cell cannot be reported
                self._loop.call_at(time.monotonic() + _STREAMS_CLOSE_S, lambda: self._pool.kill(child), child)
            self._settle(child)
        elif child.session is not None and self._cells.is_end(child, message):
            self._cells.finish(child, message)
            if child.call is None:
                self._running -= 1
                self._dispatch()
        elif child.call is not None:
            child.note(message)
        elif not child.ready and self._pool.admit(child, message.decode("utf-8", "replace")):
            if self.greeting is not None:
                self._send(self.greeting)
                self.greeting = None
            self._dispatch()

    def _on_output(self, child: Child, stream: Stream, events: int) -> None:
        if child.is_idle and not events & ENDED:
            self._cells.mute(child, stream.descriptor)
            return
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

    def _on_parent(self, parent: Parent, message: orders.OrderReply | None) -> None:
        if message is None:
            names = ", ".join(parent.names) or "no module"
            print(
                f"A process from which programs are forked has ended (its preloaded modules: {names}).", file=sys.stderr
            )
            self._loop.stop()
            return
        child = self._pool.children.get(message.number)
        if child is None:
            return
        try:
            self._follow(child, message)
        except Exception as error:
            self._fail_child(child, error)

    def _follow(self, child: Child, message: orders.OrderReply) -> None:
        """Handle a message from a parent process about one of its children."""
        if message.kind in (orders.ENDED, orders.BROKEN):
            child.end(message, time.monotonic())
            if child.open_ends > 0:
                self._loop.call_at(child.ended_at + _STREAMS_CLOSE_S, lambda: self._abandon_streams(child), child)
            self._settle(child)
        elif message.kind == orders.INTERRUPTED:
            self._cells.interrupted(child)
            self._dispatch()
        elif message.kind == orders.DEPRIORITIZED:
            self._deprioritizer.on_reply(child, message)
        elif message.kind == orders.OVERDRAWN:
            child.note_ending(time.monotonic())
            child.stopped_for = child.stopped_for or message.text
        elif message.kind == orders.GONE:
            child.gone = True
            if child.wait_status is not None and child.open_ends > 0:
                self._read_rest(child)
            self._pool.release(child)
        elif message.kind == orders.FORK_FAILED:
            child.failure, child.gone, child.settled = message.text, True, True
            self._pool.lose(child)
            self._pool.release(child)

    def _on_parent_settled(self, parent: Parent) -> None:
        """Dispatch calls after a parent became ready; if it failed to start, first move its calls to another parent."""
        if not parent.ready:
            self._queue.move(parent, self.parents.first)
        self._dispatch()

    # End of children

    def _stop(self, child: Child, why: str) -> None:
        """Stop a call that exceeded a limit: interrupt the call if it belongs to a session, else end its program."""
        if child.session is not None:
            self._cells.stop(child, why)
        elif child.call is not None and child.stopped_for is None and child.wait_status is None:
            child.stopped_for = why
            self._pool.kill(child)

    def _read_rest(self, child: Child) -> None:
        """Read the rest of a program's output, and close the pipes, since no process is left that could write more.

        It does not wait for the end of each pipe, since a message in flight that contains a pipe's descriptor keeps the
        pipe open.
        """
        while child.report.fileno() >= 0 and child.has_message():
            self._on_report(child, ENDED)
        for stream in child.streams:
            stream.take(child.output_limit)
        self._abandon_streams(child)

    def _abandon_streams(self, child: Child) -> None:
        """Close the pipes of a child that has ended, even if another process keeps them open."""
        for descriptor in child.listening():
            self._loop.forget(descriptor)
        child.close_ends()
        self._settle(child)

    def _settle(self, child: Child) -> None:
        """Report the outcome of a child's call, if the process is reaped and every pipe is at its end."""
        at_end = child.wait_status is not None and child.open_ends == 0
        if child.settled or not (at_end or child.written_off):
            return
        child.settled = True
        if child.call is not None and not self._deprioritizer.end(child):
            self._running -= 1
        try:
            if child.session is not None:
                self._cells.settle(child)
            elif child.call is None:
                self._pool.lose(child)
            elif not child.call.cancelled:
                self._answer(child.call, child)
        except Exception as error:
            self._fail_child(child, error)
        self._dispatch()
        self._pool.release(child)

    def _fail_child(self, child: Child, error: Exception) -> None:
        """Handle an internal error: report the call of the child as lost, and kill the child."""
        log_error(error)
        if child.call is not None:
            why = (
                f"the supervising process (warden) failed while it handled the program: {type(error).__name__}: {error}"
            )
            self._report_lost(child.call, why)
        if child.wait_status is None:
            self._pool.discard(child)

    def _answer(self, call: Call, child: Child) -> None:
        why = child.lost()
        if why is None:
            self._report(call, *child.outcome())
        elif child.compiled or not self._queue.retry(call):
            self._report_lost(call, why)

    def _report(self, call: Call, header: dict[str, Any], blobs: tuple[bytes, bytes]) -> None:
        if self._calls.pop(call.id, None) is not None:
            known = {name: value for name, value in header.items() if value is not None}
            self._send({"op": "outcome", "id": call.id, **known}, blobs, call)

    def _report_lost(self, call: Call, why: str) -> None:
        if self._calls.pop(call.id, None) is not None:
            self._send({"op": "lost", "id": call.id, "error": why}, call=call)

    def _give_up(self, why: str) -> None:
        """Stop the warden, because no child can be created; ``why`` is the reason."""
        if self.greeting is not None:
            self._send({"op": "failed", "error": why})
        self._loop.stop()

    def _tick(self) -> None:
        """Check periodically that the parents answer and that children end."""
        if self.parents.stalled():
            print(
                f"A process from which programs are forked did not respond for {self._stall_timeout_s:g} seconds.",
                file=sys.stderr,
            )
            self._loop.stop()
        for child in self._pool.overdue(self._stall_timeout_s):
            child.written_off = True
            self._settle(child)
            self._pool.write_off(child)
        self._loop.call_at(time.monotonic() + _TICK_S, self._tick)
