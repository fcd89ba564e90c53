"""Assigns calls to nodes, in one thread with its own event loop.

Covered: which call goes where (free places, sessions to the node that holds them), nodes that join and leave, calls
that were in flight on a lost node, shutdown. Not covered: communicating with a node (``node``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.ray_cluster import RayNode, living_nodes, no_node
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.messages import lost
from rstar2_env.sandbox.ray.homes import Homes
from rstar2_env.sandbox.ray.node import Node, Ticket
from rstar2_env.sandbox.ray.options import RayOptions

_LONGEST_PAUSE_S = 60.0
_STRIKES = 3
"""Consecutive sandbox failures on a node after which its actor is replaced."""

_log = logging.getLogger(__name__)


class Dispatcher:
    """Takes calls from any thread and gives each exactly one outcome.

    Args:
        options: The provider's options.
    """

    def __init__(self, options: RayOptions) -> None:
        self.nodes: dict[str, Node] = {}
        self._options = options
        self._lock = threading.Lock()
        self._inbox: list[Ticket] = []
        self._queue: deque[Ticket] = deque()
        self._homes = Homes()
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._next_id = 0
        self._closed = False
        self._started = threading.Event()
        self._trouble: Exception | None = None
        self._loop = asyncio.new_event_loop()
        self._life = self._loop.create_task(self._live())
        self._look = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="rstar2-sandbox-ray", daemon=True)

    # From any thread

    def start(self) -> None:
        """Start a sandbox on every node, and return when all are ready.

        Raises:
            SandboxUnavailableError: There is no node, or the sandbox of one does not start; the message names it.
            ConfigurationError: An option does not fit a node.
        """
        self._thread.start()
        self._started.wait()
        if self._trouble is not None:
            self._thread.join()
            raise self._trouble

    @property
    def closed(self) -> bool:
        """Whether it accepts no more calls."""
        return self._closed

    def submit(self, job: Job) -> Ticket:
        """Put a call into the queue.

        Raises:
            SandboxUnavailableError: It is closed.
        """
        with self._lock:
            if self._closed:
                raise SandboxUnavailableError("This sandbox is closed; make another one.")
            self._next_id += 1
            ticket = Ticket(self._next_id, job, self._on_drop)
            self._inbox.append(ticket)
            if len(self._inbox) == 1:  # otherwise the loop has been woken already
                self._loop.call_soon_threadsafe(self._open_inbox)
        return ticket

    def end_session(self, name: str) -> None:
        """End a session, wherever it lives."""
        self._from_outside(lambda: self._end_session(name))

    def close(self) -> None:
        """End everything on every node. Calls in flight become ``unavailable``."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._life.cancel)
        if self._thread.is_alive():
            self._thread.join()

    def _on_drop(self, ticket: Ticket) -> None:
        self._from_outside(lambda: self._take_back(ticket))

    def _from_outside(self, act: Callable[[], None]) -> None:
        with self._lock:
            if not self._closed:
                self._loop.call_soon_threadsafe(act)

    # The thread

    def _main(self) -> None:
        try:
            self._loop.run_until_complete(self._life)
        except asyncio.CancelledError:  # it was closed
            pass
        except Exception as error:  # waiting callers must be told of any failure
            self._trouble = error
            if self._started.is_set():
                _log.exception("The ray sandbox failed.")
        finally:
            with self._lock:
                self._closed = True
            self._resolve_all("The sandbox was closed.")
            self._loop.run_until_complete(self._stop_nodes())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
            self._started.set()

    async def _live(self) -> None:
        await self._start_all()
        self._started.set()
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.watch_s):
                    await self._look.wait()
            self._look.clear()
            await self._survey()

    async def _start_all(self) -> None:
        """The first start: every node must provide the requested isolation."""
        found = await asyncio.to_thread(living_nodes, self._options.resource)
        if not found:
            raise SandboxUnavailableError(no_node(self._options.resource))
        ends = await asyncio.gather(*(self._start(where) for where in found), return_exceptions=True)
        if any(isinstance(end, BaseException) for end in ends):
            alive = {node.id for node in await asyncio.to_thread(living_nodes, self._options.resource)}
            for where, end in zip(found, ends, strict=True):
                if (
                    isinstance(end, BaseException) and where.id in alive
                ):  # a node that died in the meantime is not an error
                    raise end
        if not self.nodes:
            raise SandboxUnavailableError(no_node(self._options.resource))

    async def _start(self, where: RayNode) -> None:
        node = Node(where, self._options, self._on_outcome, self._on_lost)
        await node.start()
        self.nodes[where.id] = node
        self._dispatch()

    async def _survey(self) -> None:
        """Remove dead nodes, start on new ones, and give up calls that have waited too long for a node."""
        try:
            found = {node.id: node for node in await asyncio.to_thread(living_nodes, self._options.resource)}
        except Exception as error:
            self._give_up_waiting(f"The nodes of the Ray cluster cannot be listed: {error}")
            return
        for name in set(self.nodes) - set(found):
            self.nodes[name].abandon("Its node left the cluster.", True)
        now = time.monotonic()
        for name in set(found) - set(self.nodes) - set(self._starting):
            if now >= self._not_before.get(name, now):
                self._starting[name] = asyncio.create_task(self._join(found[name]))
        self._give_up_waiting(no_node(self._options.resource))

    async def _join(self, where: RayNode) -> None:
        """Start on a node that joined later or whose actor died; one without the required isolation is left out."""
        try:
            await self._start(where)
        except (SandboxUnavailableError, ConfigurationError) as error:
            self._pause(where.id, 1.0)
            _log.warning("%s It is left out for now.", error)
        finally:
            del self._starting[where.id]

    def _pause(self, name: str, first_s: float) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        pause = min(_LONGEST_PAUSE_S, first_s + 2.0 ** min(failures, 10) - 2)
        self._not_before[name] = time.monotonic() + pause

    def _give_up_waiting(self, why: str) -> None:
        """Without a node, calls wait for one up to ``grace_s``; end those that waited longer."""
        if self.nodes:
            return
        last = time.monotonic() - self._options.grace_s
        waiting, self._queue = self._queue, deque()
        for ticket in waiting:
            if ticket.since > last:
                self._queue.append(ticket)
            else:
                self._give_up(ticket, why)

    async def _stop_nodes(self) -> None:
        starting = list(self._starting.values())
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        nodes, self.nodes = list(self.nodes.values()), {}
        await asyncio.gather(*(node.stop() for node in nodes))

    def _resolve_all(self, why: str) -> None:
        with self._lock:
            tickets, self._inbox = self._inbox, []
        tickets += self._queue
        self._queue.clear()
        for node in self.nodes.values():
            tickets += [*node.flying.values(), *node.waiting]
        for ticket in tickets:
            _resolve(ticket, lost(why, ticket.attempts + ticket.sent, ticket.job.session))

    # Which call goes where

    def _open_inbox(self) -> None:
        with self._lock:
            tickets, self._inbox = self._inbox, []
        self._queue += tickets
        self._dispatch()

    def _dispatch(self) -> None:
        for home in self.nodes.values():
            while home.waiting and home.room > 0:
                _give(home, home.waiting.popleft())
        while self._queue:
            ticket = self._queue[0]
            session = ticket.job.session
            node = self._roomiest(ticket) if session is None else self._home(ticket, session)
            if node is None:
                return
            self._queue.popleft()
            if session is not None and (node.waiting or node.room <= 0):
                node.waiting.append(ticket)
            else:
                _give(node, ticket)

    def _roomiest(self, ticket: Ticket) -> Node | None:
        """The node with the largest share of free places; not the one that lost the call, if there is another."""
        best = max(self._but(ticket.avoid), key=lambda node: node.room, default=None)
        return best if best is not None and best.room > 0 else None

    def _home(self, ticket: Ticket, session: str) -> Node | None:
        """The node that holds the session; for a new one, the node with the fewest, even if it is full."""
        node = self._homes.find(session)
        if node is None:
            node = min(self._but(ticket.avoid), key=lambda node: node.sessions / node.workers, default=None)
            if node is not None:
                self._homes.settle(session, node)
        return node

    def _but(self, avoided: str | None) -> list[Node]:
        """Every node but one, if there is another."""
        return [node for node in self.nodes.values() if node.where.id != avoided] or list(self.nodes.values())

    def _take_back(self, ticket: Ticket) -> None:
        for node in self.nodes.values():
            node.take_back(ticket)
        self._dispatch()

    def _end_session(self, name: str) -> None:
        if (node := self._homes.leave(name)) is not None:
            node.end_session(name)

    # What comes back

    def _on_outcome(self, node: Node, ticket: Ticket, outcome: Outcome) -> None:
        ticket.attempts += max(1, outcome.attempts)
        node.failing = outcome.status is ToolStatus.UNAVAILABLE
        if not node.failing:
            node.strikes = 0
            self._failures.pop(node.where.id, None)
        elif not node.flying:  # the last of a group that failed together
            node.strikes += 1
        if node.failing and self._may_run_again(ticket):
            self._requeue(node, ticket)
        else:
            if ticket.job.session is not None:
                outcome = self._homes.tell(ticket.job.session, outcome)
            _resolve(ticket, replace(outcome, attempts=ticket.attempts))
        if node.strikes >= _STRIKES:
            node.abandon("Its sandbox failed repeatedly.", True)
        self._dispatch()

    def _on_lost(self, node: Node, why: str, known: bool) -> None:
        """A node is lost. Its calls run again elsewhere if it is certain that they no longer run there."""
        del self.nodes[node.where.id]
        self._pause(node.where.id, 0.0)
        why = f"The sandbox on the node {node.where} was lost: {why}"
        _log.warning("%s", why)
        tickets = [*node.flying.values(), *node.waiting]
        kept = {id(ticket) for ticket in tickets if not ticket.sent or (known and self._may_run_again(ticket, 1))}
        node.flying.clear()
        node.waiting.clear()
        self._homes.lose(node)
        for ticket in reversed(tickets):
            ticket.attempts += ticket.sent
            if id(ticket) in kept:
                self._requeue(node, ticket)
            else:
                self._give_up(ticket, why)
        self._look.set()
        self._dispatch()

    def _may_run_again(self, ticket: Ticket, lost_now: int = 0) -> bool:
        session = ticket.job.session
        return ticket.attempts + lost_now <= self._options.retries and not (session and self._homes.begun(session))

    def _requeue(self, node: Node, ticket: Ticket) -> None:
        if ticket.sent and ticket.job.session is not None:  # its first cell: the session may start anywhere
            self._homes.unsettle(ticket.job.session)
        ticket.avoid, ticket.sent, ticket.since = node.where.id, False, time.monotonic()
        self._queue.appendleft(ticket)

    def _give_up(self, ticket: Ticket, why: str) -> None:
        session = ticket.job.session
        outcome = lost(why, ticket.attempts, session)
        _resolve(ticket, outcome if session is None else self._homes.tell(session, outcome))


def _give(node: Node, ticket: Ticket) -> None:
    if not ticket.future.cancelled():
        node.give(ticket)


def _resolve(ticket: Ticket, outcome: Outcome) -> None:
    if ticket.future.set_running_or_notify_cancel():
        ticket.future.set_result(outcome)
