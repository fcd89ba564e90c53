"""``EpisodeQueue``: plays rounds of groups; what one process has no room for, another plays and hands back.

Every process runs the rollout part on its own groups. An episode that the part asks for becomes a job, which waits at
the desk of the first process until some process has room for it; who plays it is the desk's choice, whose group it is
of does not change. A round is over for all processes at once, when the parts of all have returned.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import Rstar2Error

from .desk import Desk, Key
from .job import Job, Player, Unfinished, perform
from .messages import (
    Drop,
    Ended,
    Enter,
    Finished,
    GroupEnded,
    Halt,
    Lend,
    Lent,
    Offer,
    Over,
    Play,
    Played,
    Result,
    Withdraw,
)
from .wire import Gone, Wire

T = TypeVar("T")


class SilentProcessError(Rstar2Error, TimeoutError):
    """Nothing was heard of the other processes for too long."""


class AbandonedError(Rstar2Error, RuntimeError):
    """Another process failed in the round, so that it cannot end."""


Limits = Callable[[Desk], AsyncIterator[int]]
"""Of a desk: how many episodes may play at the same time, again and again until the round is over."""


class EpisodeQueue:
    """Plays the rounds of a run; every process has one.

    Args:
        player: Plays episodes.
        wire: Connects the processes.
        limits: Says how many episodes may play at the same time; only that of the first process is asked. ``None`` is
            ``player.max_in_flight`` for each process.
        patience_s: Seconds that a process which has nothing to do waits for a word of the others.
    """

    def __init__(
        self,
        player: Player,
        wire: Wire | None = None,
        limits: Limits | None = None,
        *,
        patience_s: float = 1800.0,
    ) -> None:
        self._player, self._wire, self._limits, self._patience_s = player, wire or Wire(), limits, patience_s
        self._rounds = 0

    async def run(self, work: Callable[[Round], Coroutine[Any, Any, T]], *, groups: int | None = None) -> T:
        """Play a round; all processes call together, each as often as the others.

        Args:
            work: Plays the groups of this process through the round that it is given.
            groups: Groups, over all processes, that end the round once all of their episodes have ended; ``None`` plays
                all groups to their end.

        Returns:
            What ``work`` returned.

        Raises:
            AbandonedError: Another process failed.
            SilentProcessError: Nothing was heard of the others for ``patience_s``, and there was nothing to do here.
        """
        self._rounds += 1
        one = Round(self._player, self._wire, self._rounds, groups, self._patience_s)
        return await one.run(work, self._limits if self._wire.rank == 0 else None)

    def fail(self, error: BaseException) -> None:
        """Tell the other processes that this one failed, so that none waits for it in a round."""
        self._wire.fail(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()


class Round:
    """One round, as one process sees it; made by ``EpisodeQueue.run``.

    Args:
        player: Plays episodes.
        wire: Connects the processes.
        number: Which round it is.
        groups: See ``EpisodeQueue.run``.
        patience_s: See ``EpisodeQueue``.

    Attributes:
        halted: Whether enough groups have ended.
    """

    def __init__(self, player: Player, wire: Wire, number: int, groups: int | None, patience_s: float) -> None:
        self.halted = False
        self._patience_s, self._heard, self._waits = patience_s, 0.0, False
        self._player, self._wire, self._number, self._groups = player, wire, number, groups
        self._jobs: dict[int, Job] = {}
        self._results: dict[int, asyncio.Future[Episode | Unfinished]] = {}
        self._asked = 0
        self._tasks: dict[Key, asyncio.Task[Episode]] = {}
        self._over = asyncio.Event()
        self._failed = ""
        self._trouble: Exception | None = None
        self._working: asyncio.Task[Any] | None = None
        # At the desk of the first process:
        self._desk = Desk(wire.size, player.max_in_flight)
        self._finished: set[int] = set()

    async def play(self, job: Job) -> Episode | Unfinished:
        """Have a job played, here or elsewhere; cancelling this stops it.

        Raises:
            BranchError: It cannot branch there.
        """
        number = self._asked
        self._asked += 1
        self._jobs[number] = job
        result = self._results[number] = asyncio.get_running_loop().create_future()
        self._tell(Offer(number))
        try:
            played = await result
        except asyncio.CancelledError:
            self._tell(Withdraw(number))
            raise
        finally:
            self._jobs.pop(number, None)
            self._results.pop(number, None)
        return Unfinished(played.begun or job.begun) if isinstance(played, Unfinished) else played

    def group_ended(self) -> None:
        """Say that all episodes of a group of this process have ended."""
        if self._groups is not None:
            self._tell(GroupEnded())

    async def run(self, work: Callable[[Round], Coroutine[Any, Any, T]], limits: Limits | None) -> T:
        """See ``EpisodeQueue.run``."""
        working = self._working = asyncio.create_task(work(self))
        waiting = asyncio.create_task(self._be_patient()) if self._wire.size > 1 else None
        watching = None
        if limits is not None:
            self._desk.limit = 0  # until it is said
            watching = asyncio.create_task(self._follow(limits))
        self._wire.open(self._number, self._handle)
        try:
            # Its own episodes are asked for before those of others are offered here.
            for _ in range(_FIRST_STEPS):
                await asyncio.sleep(0)
            self._tell(Enter())
            try:
                done: T = await working
            except asyncio.CancelledError:
                self._raise_if_abandoned()
                raise
            self._waits = True
            self._tell(Finished())
            await self._over.wait()
            self._raise_if_abandoned()
            return done
        except Exception as error:
            if not isinstance(error, AbandonedError):
                self._wire.fail(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._wire.shut()
            await _ended(working, watching, waiting, *self._tasks.values())

    async def _follow(self, limits: Limits) -> None:
        """Let the limit change, and give out what it has room for."""
        try:
            async for limit in limits(self._desk):
                self._desk.limit = limit
                self._give_out()
        except Exception as error:
            self._trouble = error
            self._leave()

    async def _be_patient(self) -> None:
        """Leave the round when others are not heard of: one that is stopped, or out of reach, says no goodbye."""
        loop, patience_s = asyncio.get_running_loop(), self._patience_s
        self._heard = loop.time()
        while (left := self._heard + patience_s - loop.time()) > 0:
            await asyncio.sleep(left)
            if self._tasks or not (self._waits or self._results):
                self._heard = loop.time()  # there was something to do here
        why = f"process {self._wire.rank} has waited {patience_s:g} s for a word of the others (run.process_timeout_s)"
        self._trouble = SilentProcessError(f"{why[0].upper()}{why[1:]}.")
        self._wire.fail(why)
        self._leave()

    def _tell(self, message: Any) -> None:
        """Tell the desk."""
        self._send(0, message)

    def _send(self, to: int, message: Any) -> None:
        if to == self._wire.rank:
            self._handle(to, message)
        else:
            self._wire.send(to, self._number, message)

    def _handle(self, sender: int, message: Any) -> None:
        if sender != self._wire.rank:
            self._heard = asyncio.get_running_loop().time()
        if isinstance(message, Gone):
            if not self._over.is_set():
                self._abandon(sender, message.why)
        elif isinstance(message, (Enter, Offer, Withdraw, Lent, Ended, GroupEnded, Finished)):
            self._at_desk(sender, message)
            self._give_out()
        else:
            self._from_desk(message)

    def _at_desk(self, sender: int, message: Any) -> None:
        desk = self._desk
        if isinstance(message, Enter):
            desk.enter(sender)
        elif isinstance(message, Offer):
            if self.halted:
                self._send(sender, Result(message.number, Unfinished()))
            else:
                desk.offer((sender, message.number))
        elif isinstance(message, Withdraw):
            key = (sender, message.number)
            rank = desk.where(key)
            if rank is None:
                desk.forget(key)
            else:
                self._send(rank, Drop(key))
        elif isinstance(message, Lent):
            key = (sender, message.number)
            rank = desk.where(key)
            if rank is not None and message.job is not None and not self.halted:
                self._send(rank, Play(key, message.job))
            else:
                desk.forget(key)
                self._send(sender, Result(message.number, Unfinished()))
        elif isinstance(message, Ended):
            desk.forget(message.key)
            owner, number = message.key
            self._send(owner, Result(number, message.played))
        elif isinstance(message, GroupEnded):
            assert self._groups is not None
            self._groups -= 1
            if self._groups <= 0 and not self.halted:
                self._halt_all()
        else:
            self._finished.add(sender)
            if len(self._finished) == self._wire.size:
                self._to_all(Over())

    def _halt_all(self) -> None:
        for owner, number in self._desk.withdraw_all():
            self._send(owner, Result(number, Unfinished()))
        self._to_all(Halt())

    def _to_all(self, message: Any) -> None:
        # The first process last: it may leave the round with this.
        for rank in reversed(range(self._wire.size)):
            self._send(rank, message)

    def _give_out(self) -> None:
        for key, rank in self._desk.assign():
            owner, number = key
            self._send(owner, Play(key) if rank == owner else Lend(number))

    def _from_desk(self, message: Any) -> None:
        if isinstance(message, Play):
            job = self._jobs.get(message.key[1]) if message.job is None else message.job
            if job is None or self.halted:
                self._tell(Ended(message.key, Unfinished()))
            else:
                self._start(message.key, job)
        elif isinstance(message, Lend):
            self._tell(Lent(message.number, self._jobs.get(message.number)))
        elif isinstance(message, Drop):
            if (task := self._tasks.get(message.key)) is not None:
                task.cancel()
        elif isinstance(message, Result):
            result = self._results.get(message.number)
            if result is None or result.done():
                return
            if isinstance(message.played, BaseException):
                result.set_exception(message.played)
            else:
                result.set_result(message.played)
        elif isinstance(message, Halt):
            self.halted = True
            for task in self._tasks.values():
                task.cancel()
        else:
            self._over.set()

    def _start(self, key: Key, job: Job) -> None:
        """Play a job, and tell the desk what became of it."""
        record = Episode(group=job.group, seed=job.seed)

        def ended(task: asyncio.Task[Episode]) -> None:
            del self._tasks[key]
            played: Played
            if task.cancelled():
                played = Unfinished(record if job.carries and record.turns else None)
            elif (error := task.exception()) is not None:
                played = error if key[0] == self._wire.rank else _portable(error)
            else:
                played = task.result()
            self._tell(Ended(key, played))

        task = self._tasks[key] = asyncio.create_task(perform(job, self._player, record))
        task.add_done_callback(ended)

    def _abandon(self, sender: int, why: str) -> None:
        """Another process failed: leave the round, and let everybody else leave it."""
        self._failed = self._failed or f"Process {sender} of {self._wire.size} failed: {why}"
        if self._wire.rank == 0:
            self._wire.fail(why)
        self._leave()

    def _leave(self) -> None:
        self._over.set()
        if self._working is not None:
            self._working.cancel()

    def _raise_if_abandoned(self) -> None:
        if self._trouble is not None:
            raise self._trouble
        if self._failed:
            raise AbandonedError(self._failed)


_FIRST_STEPS = 4
"""Steps of the event loop in which a part that plays all of its groups at once has asked for its episodes."""


async def _ended(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks, and wait until they have ended."""
    left = [task for task in tasks if task is not None]
    for task in left:
        task.cancel()
    for task in left:
        with suppress(asyncio.CancelledError, Exception):
            await task


def _portable(error: BaseException) -> BaseException:
    """An exception that another process can read."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
