"""``SharedQueue``: one queue for all processes of a run, so that a process with room can play another's episodes.

Every process runs the rollout part on its own groups. Each episode that the part requests waits in the queue, which the
first process holds, until some process has room for it; its result returns to the process that requested it. A round
ends in all processes together, when the parts of all processes have returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rstar2_env.core.errors import Rstar2Error

from ..ranks import Ranks
from .local import LimitSource, LocalQueue, LocalRound, cancel_all
from .requests import EpisodePlayer
from .wire import Gone, Wire

T = TypeVar("T")

_FIRST_STEPS = 4
"""Number of event loop steps within which a rollout part that plays groups concurrently makes its first requests."""


class SilentProcessError(Rstar2Error, TimeoutError):
    """The other processes sent no message for too long."""


class AbandonedRoundError(Rstar2Error, RuntimeError):
    """Another process failed during the round, so the round cannot end."""


def make_queue(
    player: EpisodePlayer, ranks: Ranks, limits: LimitSource | None = None, *, timeout_s: float = 1800.0
) -> LocalQueue:
    """Return the queue of a run; all processes call this together.

    Args:
        player: Plays episodes.
        ranks: The processes that share the queue.
        limits: See ``LocalQueue``.
        timeout_s: See ``SharedQueue``.

    Raises:
        ConfigurationError: A process cannot reach the first one.
    """
    if ranks.size == 1:
        return LocalQueue(player, limits)
    return SharedQueue(player, Wire.connect(ranks), limits, timeout_s=timeout_s)


class SharedQueue(LocalQueue):
    """Plays the rounds of a run in several processes; every process has its own ``SharedQueue``.

    Args:
        player: Plays episodes.
        wire: Connects the processes.
        limits: Yields the number of episodes to play at the same time in all processes together; only the first process
            reads it. ``None`` is ``player.max_in_flight`` for each process.
        timeout_s: Seconds that an idle process waits for a message from another process.
    """

    def __init__(
        self, player: EpisodePlayer, wire: Wire, limits: LimitSource | None = None, *, timeout_s: float = 1800.0
    ) -> None:
        super().__init__(player, limits if wire.rank == 0 else None)
        self._wire, self._timeout_s = wire, timeout_s
        self._rounds = 0

    async def run(self, work: Callable[[LocalRound], Coroutine[Any, Any, T]], *, groups: int | None = None) -> T:
        """Play a round; all processes call this together. See ``LocalQueue.run``.

        Raises:
            AbandonedRoundError: Another process failed.
            SilentProcessError: This process was idle, and the other processes sent no message for ``timeout_s``.
        """
        self._rounds += 1
        one = SharedRound(self._player, groups, self._wire, self._rounds, self._timeout_s)
        return await one.run(work, self._limits)

    def fail(self, error: BaseException) -> None:
        """Report to the other processes that this one failed, so that they do not wait for it."""
        self._wire.fail(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()


class SharedRound(LocalRound):
    """One process's side of a round that several processes play together; created by ``SharedQueue.run``.

    Calls to another process are sent through the wire, as the name of a method with its arguments.

    Args:
        player: Plays episodes.
        groups: See ``LocalQueue.run``.
        wire: Connects the processes.
        number: Number of the round.
        timeout_s: See ``SharedQueue``.
    """

    def __init__(self, player: EpisodePlayer, groups: int | None, wire: Wire, number: int, timeout_s: float) -> None:
        super().__init__(player, groups, rank=wire.rank, size=wire.size)
        self._wire, self._number, self._timeout_s = wire, number, timeout_s
        self._last_message_s, self._done = 0.0, False
        self._over = asyncio.Event()
        self._finished = 0

    async def run(self, work: Callable[[LocalRound], Coroutine[Any, Any, T]], limits: LimitSource | None = None) -> T:
        """Play one round; see ``SharedQueue.run``."""
        waiting = asyncio.create_task(self._limit_silence())
        self._wire.open(self._number, self._receive)
        try:
            return await super().run(work, limits)
        finally:
            await cancel_all(waiting)

    async def _finish(self, working: asyncio.Task[T]) -> T:
        try:
            # This process requests its own episodes before it can be assigned those of other processes.
            for _ in range(_FIRST_STEPS):
                await asyncio.sleep(0)
            self._call(0, self._enter, self._rank)
            result = await super()._finish(working)
            self._done = True
            self._call(0, self._count_finished)
            await self._over.wait()
            if self._error is not None:
                raise self._error
            return result
        except Exception as error:
            if not isinstance(error, AbandonedRoundError):
                self._wire.fail(f"{type(error).__name__}: {error}")
            raise

    async def _limit_silence(self) -> None:
        """End the round if no other process sends messages; stopped or unreachable processes keep connections open."""
        loop = asyncio.get_running_loop()
        self._last_message_s = loop.time()
        while (left := self._last_message_s + self._timeout_s - loop.time()) > 0:
            await asyncio.sleep(left)
            if self._tasks or not (self._done or self._results):
                self._last_message_s = loop.time()  # this process was not idle
        why = (
            f"process {self._rank} has waited for {self._timeout_s:g} s, the limit run.process_timeout_s, "
            "without a message from the other processes"
        )
        self._wire.fail(why)
        self._fail(SilentProcessError(f"{why[0].upper()}{why[1:]}."))

    def _enter(self, rank: int) -> None:
        """Record in the queue, which the first process holds, that a process can play episodes from now on."""
        self._desk.enter(rank)
        self._give_out()

    def _count_finished(self) -> None:
        """Count a process whose rollout part has returned; end the round if all have. Runs in the first process."""
        self._finished += 1
        if self._finished == self._size:
            self._call_all(self._end_round)

    def _end_round(self) -> None:
        self._over.set()

    def _fail(self, error: Exception) -> None:
        super()._fail(error)
        self._over.set()

    def _close(self) -> None:
        self._wire.shut()

    def _call(self, rank: int, method: Callable[..., None], *arguments: Any) -> None:
        if rank == self._rank:
            method(*arguments)
        else:
            self._wire.send(rank, self._number, (method.__name__, arguments))

    def _receive(self, sender: int, message: Any) -> None:
        """Handle a message: a call, or ``Gone``."""
        self._last_message_s = asyncio.get_running_loop().time()
        if not isinstance(message, Gone):
            name, arguments = message
            getattr(self, name)(*arguments)
        elif not self._over.is_set():
            self._fail(AbandonedRoundError(f"Process {sender} of {self._size} failed: {message.why}"))
            if self._rank == 0:
                self._wire.fail(message.why)
