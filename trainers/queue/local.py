"""``LocalQueue``: the queue of episodes of one process; the module ``shared`` extends it to several processes.

An episode waits in the queue (``Desk``) until there is room, is played in a separate task, and is then delivered to the
caller of ``play``. ``LocalRound`` calls its own methods for these steps; ``shared.SharedRound`` sends the calls to
other processes.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from rstar2_env.core.episode import Episode

from .desk import Desk, RequestKey
from .requests import EpisodePlayer, PlayRequest, Unfinished, perform

T = TypeVar("T")
PlayResult = Episode | Unfinished | BaseException
"""The result of a request: an episode, a part of an episode, or the error that playing it raised."""

LimitSource = Callable[[Desk], AsyncIterator[int]]
"""Function that yields the maximum number of concurrent episodes: first the initial maximum, later its changes."""


class LocalQueue:
    """Plays the rounds of a run in one process.

    Args:
        player: Plays episodes.
        limits: Yields the number of episodes to play at the same time; ``None`` is ``player.max_in_flight``.
    """

    def __init__(self, player: EpisodePlayer, limits: LimitSource | None = None) -> None:
        self._player, self._limits = player, limits

    async def run(self, work: Callable[[LocalRound], Coroutine[Any, Any, T]], *, groups: int | None = None) -> T:
        """Play one round of groups.

        Args:
            work: Plays the groups of this process; receives the round, whose ``play`` it calls.
            groups: The round ends as soon as this number of groups, over all processes, have ended; ``None`` plays all
                groups to their end.

        Returns:
            The result of ``work``.
        """
        return await LocalRound(self._player, groups).run(work, self._limits)

    def fail(self, error: BaseException) -> None:
        """Report to the other processes, if there are any, that this one failed."""

    def close(self) -> None:
        """Close the connections to the other processes, if there are any."""


class LocalRound:
    """One round: groups of a step that are played together; created by ``LocalQueue.run``.

    Args:
        player: Plays episodes.
        groups: See ``LocalQueue.run``.
        rank: Rank of this process, from 0.
        size: Number of processes.

    Attributes:
        halted: Whether enough groups have ended, so that no further episode is played.
    """

    def __init__(self, player: EpisodePlayer, groups: int | None = None, *, rank: int = 0, size: int = 1) -> None:
        self.halted = False
        self._player, self._groups, self._rank, self._size = player, groups, rank, size
        self._numbers = itertools.count()
        self._requests: dict[RequestKey, PlayRequest] = {}
        self._results: dict[RequestKey, asyncio.Future[Episode | Unfinished]] = {}
        self._tasks: dict[RequestKey, asyncio.Task[Episode]] = {}
        self._working: asyncio.Task[Any] | None = None
        self._error: Exception | None = None
        self._desk = Desk(size, player.max_in_flight)
        if size == 1:
            self._desk.enter(0)

    async def play(self, request: PlayRequest) -> Episode | Unfinished:
        """Play an episode as soon as there is room for it; cancelling the call stops the episode.

        Raises:
            BranchError: The episode cannot branch at the requested token.
        """
        key = (self._rank, next(self._numbers))
        self._requests[key] = request
        result = self._results[key] = asyncio.get_running_loop().create_future()
        self._call(0, self._offer, key)
        try:
            played = await result
        except asyncio.CancelledError:
            self._call(0, self._withdraw, key)
            raise
        finally:
            del self._requests[key], self._results[key]
        return Unfinished(played.begun or request.begun) if isinstance(played, Unfinished) else played

    def group_ended(self) -> None:
        """Report that a group of this process needs no further episodes."""
        if self._groups is not None:
            self._call(0, self._count_group)

    async def run(self, work: Callable[[LocalRound], Coroutine[Any, Any, T]], limits: LimitSource | None = None) -> T:
        """Play one round; see ``LocalQueue.run``."""
        working = self._working = asyncio.create_task(work(self))
        watching = None
        if limits is not None:
            self._desk.limit = 0  # until the first limit is known
            watching = asyncio.create_task(self._follow(limits))
        try:
            return await self._finish(working)
        finally:
            self.halted = True
            self._close()
            await cancel_all(working, watching, *self._tasks.values())

    # Calls to a process that requested or plays an episode.

    def _hand_out(self, key: RequestKey, rank: int) -> None:
        """Let a process play an episode that this process requested."""
        request = self._requests.get(key)
        if request is None:
            self._call(0, self._end, key, Unfinished())
        elif rank == self._rank:
            self._start(key, request)
        else:
            self._call(0, self._forward, key, rank, request)

    def _start(self, key: RequestKey, request: PlayRequest) -> None:
        """Play an episode, and report its result to the process that holds the queue (``Desk``)."""
        if self.halted:
            self._call(0, self._end, key, Unfinished())
            return
        record = Episode(group=request.group, seed=request.seed)

        def report(task: asyncio.Task[Episode]) -> None:
            del self._tasks[key]
            result: PlayResult
            if task.cancelled():
                result = Unfinished(record if request.carries and record.turns else None)
            elif (error := task.exception()) is not None:
                result = error if key[0] == self._rank else _portable(error)
            else:
                result = task.result()
            self._call(0, self._end, key, result)

        task = self._tasks[key] = asyncio.create_task(perform(request, self._player, record))
        task.add_done_callback(report)

    def _stop(self, key: RequestKey) -> None:
        """Stop an episode that this process plays."""
        if (task := self._tasks.get(key)) is not None:
            task.cancel()

    def _deliver(self, key: RequestKey, result: PlayResult) -> None:
        """Return the result of a request to the caller of ``play``."""
        future = self._results.get(key)
        if future is None or future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _halt(self) -> None:
        """Stop all episodes that this process plays."""
        self.halted = True
        for task in self._tasks.values():
            task.cancel()

    # Calls to the queue (``Desk``), which the first process holds.

    def _offer(self, key: RequestKey) -> None:
        """Queue an episode."""
        if self.halted:
            self._call(key[0], self._deliver, key, Unfinished())
        else:
            self._desk.offer(key)
            self._give_out()

    def _withdraw(self, key: RequestKey) -> None:
        """Remove a waiting episode from the queue, or stop an episode that is being played."""
        rank = self._desk.where(key)
        if rank is None:
            self._desk.forget(key)
        else:
            self._call(rank, self._stop, key)

    def _give_out(self) -> None:
        """Let processes play the episodes for which there is room."""
        for key, rank in () if self.halted else self._desk.assign():
            self._call(key[0], self._hand_out, key, rank)

    def _forward(self, key: RequestKey, rank: int, request: PlayRequest) -> None:
        """Let a process play an episode that another process requested."""
        if self.halted:
            self._end(key, Unfinished())
        else:
            self._call(rank, self._start, key, request)

    def _end(self, key: RequestKey, result: PlayResult) -> None:
        """Return an episode's result to the process that requested it, and let a waiting episode take its place."""
        self._desk.forget(key)
        self._call(key[0], self._deliver, key, result)
        self._give_out()

    def _count_group(self) -> None:
        """Count a group that has ended; halt the round if enough groups have."""
        assert self._groups is not None
        self._groups -= 1
        if self._groups <= 0 and not self.halted:
            for key in self._desk.withdraw_all():
                self._call(key[0], self._deliver, key, Unfinished())
            self._call_all(self._halt)

    # The end of the round.

    async def _finish(self, working: asyncio.Task[T]) -> T:
        """Wait for the result of ``work``."""
        try:
            return await working
        except asyncio.CancelledError:
            if self._error is not None:
                raise self._error from None
            raise

    async def _follow(self, limits: LimitSource) -> None:
        """Apply each new limit on concurrent episodes, and start the episodes for which it makes room."""
        try:
            async for limit in limits(self._desk):
                self._desk.limit = limit
                self._give_out()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the round in this process with an error."""
        self._error = self._error or error
        if self._working is not None:
            self._working.cancel()

    def _close(self) -> None:
        """Stop receiving calls from other processes."""

    # Calls between processes.

    def _call(self, rank: int, method: Callable[..., None], *arguments: Any) -> None:
        """Call a method of the round in the process ``rank``; here, there is only this process."""
        method(*arguments)

    def _call_all(self, method: Callable[..., None]) -> None:
        """Call a method in every process, and in the first process last, because the call may end the round there."""
        for rank in reversed(range(self._size)):
            self._call(rank, method)


async def cancel_all(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks, and wait until they have ended."""
    left = [task for task in tasks if task is not None]
    for task in left:
        task.cancel()
    for task in left:
        with suppress(asyncio.CancelledError, Exception):
            await task


def _portable(error: BaseException) -> BaseException:
    """Return the error, or a ``RuntimeError`` with its text if another process could not unpickle it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
