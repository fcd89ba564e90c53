"""One node of the cluster, seen from the caller: its actor, the calls in flight, and the two exchanges with it.

Covered: starting the actor, orders in batches (while one batch is sent, the next is collected), outcomes as they come,
and detecting that it is lost: killed, its node dead, or stuck. Not covered: what becomes of its calls (``dispatcher``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.ray_cluster import RayNode, actor_on, connected
from rstar2_env.sandbox.job import Capability, Job, Outcome
from rstar2_env.sandbox.ray.keeper import Cancel, EndSession, Keeper, Order, Run
from rstar2_env.sandbox.ray.options import RayOptions

_log = logging.getLogger(__name__)

_AGAIN_S = 0.2
_STOP_S = 10.0


class Ticket:
    """One call in progress.

    Args:
        number: Its number.
        job: What to run.
        on_drop: Called with the ticket when its outcome is no longer needed.

    Attributes:
        id: Its number.
        job: What to run.
        future: Resolves to the outcome.
        attempts: How many times it was started and lost.
        sent: Whether the node that has it may have started it.
        since: When it was last put into the queue, on the monotonic clock.
        avoid: Id of the node that lost it last.
    """

    __slots__ = ("_on_drop", "attempts", "avoid", "future", "id", "job", "sent", "since")

    def __init__(self, number: int, job: Job, on_drop: Callable[[Ticket], None]) -> None:
        self._on_drop = on_drop
        self.id = number
        self.job = job
        self.future: Future[Outcome] = Future()
        self.attempts = 0
        self.sent = False
        self.since = time.monotonic()
        self.avoid: str | None = None

    def drop(self) -> None:
        """Nobody waits any more: end the program, if it runs."""
        self.future.cancel()
        self._on_drop(self)


class Node:
    """The sandbox on one node. Everything but the constructor belongs to the dispatcher's event loop.

    Args:
        where: The node.
        options: The provider's options.
        on_outcome: Called with each outcome of a call that is in flight here.
        on_lost: Called once, when the actor is gone, with the reason and whether its programs are known to have ended.
    """

    def __init__(
        self,
        where: RayNode,
        options: RayOptions,
        on_outcome: Callable[[Node, Ticket, Outcome], None],
        on_lost: Callable[[Node, str, bool], None],
    ) -> None:
        self.where = where
        self.capabilities: tuple[Capability, ...] = ()
        self.workers = 0
        self.flying: dict[int, Ticket] = {}
        self.waiting: deque[Ticket] = deque()
        self.failing = False  # its last outcome was a sandbox failure
        self.sessions = 0
        self.strikes = 0  # consecutive sandbox failures
        self._options, self._on_outcome, self._on_lost = options, on_outcome, on_lost
        self._orders: list[Order] = []
        self._work = asyncio.Event()
        self._actor: Any = None
        self._talks: list[asyncio.Task[None]] = []
        self._gone = False
        self._doubtful = False

    @property
    def room(self) -> float:
        """Share of its places that are free, from 0 to 1. A failing node gets one call at a time."""
        if self._doubtful:
            return 0.0
        places = 1 if self.failing else self.workers * self._options.ahead
        return 1 - len(self.flying) / places

    async def start(self) -> None:
        """Start the actor and its sandbox.

        Raises:
            SandboxUnavailableError: It does not start; the message names the node.
            ConfigurationError: An option does not fit that node.
        """
        local = {"workers": max(1, int(self.where.cpus)), **self._options.local, "retries": 0}
        self._actor = actor_on(self.where, Keeper, local, threads=64, cpus=self._options.reserve_cpus)
        try:
            async with asyncio.timeout(self._options.start_s):
                answer = await self._remote("start")
        except TimeoutError:
            why = f"it was not ready after {self._options.start_s:g} seconds"
        except Exception as error:  # Ray raises many kinds: the actor died, its class could not be imported there, ...
            why = f"{type(error).__name__}: {_short(error)}"
        except BaseException:
            self._kill()
            raise
        else:
            if answer.error is None:
                self.workers, self.capabilities = answer.workers, tuple(answer.capabilities)
                self._talks = [asyncio.create_task(self._talk(do)) for do in (self._give_orders, self._collect)]
                return
            why = answer.error
            if answer.mistaken:
                self._kill()
                raise ConfigurationError(f"On the node {self.where}: {why}")
        self._kill()
        raise SandboxUnavailableError(f"The sandbox on the node {self.where} did not start: {why}")

    def give(self, ticket: Ticket) -> None:
        """Send a call to the node with the next orders."""
        self.flying[ticket.id] = ticket
        ticket.sent = False
        self._order(Run(ticket.id, ticket.job))

    def take_back(self, ticket: Ticket) -> None:
        """End the program of a call whose outcome is no longer needed."""
        if self.flying.pop(ticket.id, None) is None:
            return
        if ticket.sent:
            self._order(Cancel(ticket.id))
        else:
            self._orders = [one for one in self._orders if not (isinstance(one, Run) and one.call == ticket.id)]

    def end_session(self, name: str) -> None:
        """End a session of this node."""
        self._order(EndSession(name))

    async def stop(self) -> None:
        """End the sandbox cleanly, and then the actor."""
        self._gone = True
        await self._cancel_talks()
        with contextlib.suppress(Exception):  # it may be gone already
            async with asyncio.timeout(_STOP_S):
                await self._remote("stop")
        self._kill()

    def abandon(self, why: str, known: bool) -> None:
        """The actor is gone: report this once.

        Args:
            why: The reason.
            known: Whether its programs are known to have ended.
        """
        if not self._gone:
            self._gone = True
            for talk in self._talks:
                if talk is not asyncio.current_task():
                    talk.cancel()
            self._kill()
            self._on_lost(self, why, known)

    def _order(self, order: Order) -> None:
        self._orders.append(order)
        self._work.set()

    # The two exchanges. Each repeats what may not have arrived; the actor carries it out once.

    async def _talk(self, talk: Callable[[], Awaitable[None]]) -> None:
        try:
            await talk()
        except Exception as error:  # an internal error must not leave calls waiting forever
            _log.exception("Communication with the node %s failed.", self.where)
            self.abandon(f"{type(error).__name__}: {error}", await self._is_dead())

    async def _give_orders(self) -> None:
        number = 0
        while True:
            await self._work.wait()
            self._work.clear()
            number += 1
            orders, self._orders = self._orders, []
            for order in orders:
                if isinstance(order, Run):
                    self.flying[order.call].sent = True
            if await self._ask("obey", number, orders) is _NO_ANSWER:
                return

    async def _collect(self) -> None:
        received: Sequence[int] = ()
        while True:
            outcomes = await self._ask("collect", received)
            if outcomes is _NO_ANSWER:
                return
            received = [number for number, _ in outcomes]
            for number, outcome in outcomes:
                if (ticket := self.flying.pop(number, None)) is not None:
                    self._on_outcome(self, ticket, outcome)

    async def _ask(self, method: str, *arguments: Any) -> Any:
        """The actor's answer; retried while Ray is unsure whether the actor lives. When it is gone, ``_NO_ANSWER``."""
        from ray.exceptions import ActorDiedError, ActorUnavailableError

        deadline = time.monotonic() + self._options.stall_s
        why = ""
        while (left := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    return await self._remote(method, *arguments)
            except ActorDiedError as error:
                self.abandon(_short(error), True)
                return _NO_ANSWER
            except ActorUnavailableError as error:
                why = f": {_short(error)}"
                await asyncio.sleep(_AGAIN_S)
            except TimeoutError:
                break
            except Exception as error:  # an internal error, or one of Ray: an actor that fails is not kept
                self.abandon(f"{type(error).__name__}: {error}", await self._is_dead())
                return _NO_ANSWER
        why = f"it did not respond for {self._options.stall_s:g} seconds{why}"
        self.abandon(why, await self._is_dead())
        return _NO_ANSWER

    def _remote(self, method: str, *arguments: Any) -> Any:
        connected()
        return getattr(self._actor, method).remote(*arguments)

    async def _is_dead(self) -> bool:
        """Kill the actor; returns whether Ray confirms its death, so that its calls may run elsewhere."""
        from ray.exceptions import ActorDiedError

        self._doubtful = True
        self._kill()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._remote("collect", ())
        except ActorDiedError:
            return True
        except Exception:
            return False
        return False

    def _kill(self) -> None:
        if self._actor is not None:
            with contextlib.suppress(Exception):  # it is dead already, or Ray is
                connected().kill(self._actor, no_restart=True)

    async def _cancel_talks(self) -> None:
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)


_NO_ANSWER = object()


def _short(error: BaseException) -> str:
    """Ray's reason, on one line and without its long advice."""
    return " ".join(str(error).split()).partition(" Some common causes")[0][:500]
