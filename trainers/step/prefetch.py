"""``Prefetch``: collects batches in a thread of its own, ahead of the trainer that takes them, by a bounded staleness.

The trainer takes a batch before the first step that trains on it. A batch may begin once weights are in the engine that
are at most ``staleness`` hand-overs older than those that it will train, so every turn of it is at most that old. Which
batch begins after which hand-over depends on the steps alone, never on how fast anybody is: the same run plays the same
starts, with the same limits, from weights of the same version.

``drain``: weights are handed over when every batch that may begin is collected, and the next batches then begin; this
is after every ``staleness``-th batch. ``carry``: they are handed over before every batch that is taken, while episodes
run, which go on with the new weights; which of their turns get them depends on time, and the turns' versions tell.

Not covered: what a batch is, how weights reach the engine, and writing down what was collected: that happens when it is
taken, and what is never taken counts for nothing. A run that goes on from a checkpoint collects it anew.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rstar2_env.core.blocking import Stoppable, StoppedError

B = TypeVar("B")
S = TypeVar("S")
T = TypeVar("T")

LEAVE_S = 30.0
"""Seconds that ``stop`` waits for the thread. It ends at once unless another process, with which it agrees, is gone."""


class Stateful(Protocol):
    """What collects: its state after each batch is kept, since a checkpoint needs that of the last one taken."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How far batches are collected ahead; all but ``staleness`` in optimizer steps.

    Attributes:
        staleness: Hand-overs by which the weights that draw a turn may be older than those that first train on it; at
            least 1.
        every: Steps that train on one batch.
        last: Steps of the run; no batch begins at this step or after it.
        carry: Hand weights over while episodes run.
    """

    staleness: int
    every: int
    last: int
    carry: bool = False


@dataclass(slots=True)
class _Found(Generic[B]):
    batch: B | None = None
    state: Any = None
    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class _Call:
    """Something that the thread asks of the trainer's thread."""

    work: Callable[[], Any]
    result: Any = None
    error: BaseException | None = None
    done: bool = False


class Prefetch(Generic[B, S]):
    """Collects ahead; every method but ``on_trainer`` belongs to the thread that trains.

    Args:
        collector: Whose state is kept.
        collect: Collects the batch that begins to train at a step, under the settings given for it.
        pace: How far ahead.
        hand_over: Gives the engine the present weights.
        settings: Returns the settings under which a batch is collected; asked when it may begin, not when it does, so
            that they do not depend on time.
    """

    def __init__(
        self,
        collector: Stateful,
        collect: Callable[[int, S], B],
        pace: Pace,
        *,
        hand_over: Callable[[], object],
        settings: Callable[[], S],
    ) -> None:
        self._collector, self._collect, self._pace = collector, collect, pace
        self._hand_over, self._settings = hand_over, settings
        self._work = Stoppable()
        self._thread: threading.Thread | None = None
        self._next: int | None = None  # the step of the first batch that may not begin yet
        self._state: Any = None
        # The condition guards everything below.
        self._change = threading.Condition()
        self._open: deque[tuple[int, S]] = deque()
        self._now: int | None = None
        self._found: dict[int, _Found[B]] = {}
        self._call: _Call | None = None
        self._stopped = False

    def take(self, step: int) -> B:
        """Return the batch that begins to train at a step; hands weights over where that is due.

        Args:
            step: Optimizer steps that are done.

        Raises:
            Exception: Collecting it failed.
        """
        pace = self._pace
        if self._next is None:
            self._next, self._state = step, deepcopy(self._collector.state_dict())
        if pace.carry or (self._next <= step + pace.every and self._next < pace.last):
            with self.updated(step):
                pass
        self._wait(lambda: step in self._found)
        with self._change:
            found = self._found.pop(step)
        self._state = found.state
        if found.error is not None:
            raise found.error
        assert found.batch is not None
        return found.batch

    @contextmanager
    def updated(self, version: int) -> Iterator[None]:
        """Hand the present weights over; what they allow to begin begins at the end of the block.

        With ``drain`` nothing is collected within the block.

        Args:
            version: Their version: the optimizer steps that are done.

        Raises:
            Exception: Collecting a batch that had to end first failed.
        """
        self.drain()
        self._hand_over()
        yield
        self._permit(version)

    def drain(self) -> None:
        """Unless episodes are carried over, wait until every batch that may begin is collected.

        Raises:
            Exception: Collecting one failed.
        """
        if not (self._pace.carry or self._stopped):
            self._wait(lambda: not self._open and self._now is None)

    def on_trainer(self, work: Callable[[], T]) -> T:
        """Have the thread that trains do something when it waits for the batch that is being collected.

        Batches of all processes ask in the same order, so what is done may be a collective call of theirs.

        Raises:
            StoppedError: ``stop`` was called.
            Exception: It failed.
        """
        if threading.current_thread() is not self._thread:
            return work()
        call = _Call(work)
        with self._change:
            self._call = call
            self._change.notify_all()
            self._change.wait_for(lambda: call.done or self._stopped)
            if not call.done:
                self._call = None
                raise StoppedError("The run ended before it was done.")
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    def stop(self) -> None:
        """Abandon what is being collected, and end the thread."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
        self._work.stop()
        if self._thread is not None:
            self._thread.join(LEAVE_S)

    def state_dict(self) -> dict[str, Any]:
        """The collector's state after the last batch that was taken."""
        state: dict[str, Any] = self._collector.state_dict() if self._next is None else self._state
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; before the first batch is taken."""
        self._collector.load_state_dict(state)

    def _permit(self, version: int) -> None:
        """Let the batches begin for which weights of a version are new enough."""
        pace = self._pace
        if self._next is None or self._stopped:
            return
        with self._change:
            while self._next <= version + pace.staleness * pace.every and self._next < pace.last:
                self._open.append((self._next, self._settings()))
                self._next += pace.every
            self._change.notify_all()
        if self._thread is None:
            # A daemon: where another process is gone, its calls may never return.
            self._thread = threading.Thread(target=self._run, name="rstar2-collect-ahead", daemon=True)
            self._thread.start()

    def _wait(self, until: Callable[[], bool]) -> None:
        """Wait for something, and do what the thread asks for meanwhile.

        Batches are collected one after the other, so what is asked for while a batch is waited for is of that batch or
        of one before it, on every process.

        Args:
            until: Whether to wait no longer; a batch that could not be collected ends the wait too.

        Raises:
            Exception: Collecting a batch failed.
        """
        while True:
            with self._change:
                self._change.wait_for(lambda: until() or self._failed() is not None or self._call is not None)
                if until():
                    return
                if (error := self._failed()) is not None:
                    raise error
                call, self._call = self._call, None
            assert call is not None
            self._do(call)

    def _failed(self) -> BaseException | None:
        return next((found.error for found in self._found.values() if found.error is not None), None)

    def _do(self, call: _Call) -> None:
        try:
            call.result = call.work()
        except Exception as error:
            call.error = error
        except BaseException:
            call.error = StoppedError("The run was interrupted.")
            raise
        finally:
            with self._change:
                call.done = True
                self._change.notify_all()

    def _run(self) -> None:
        """Collect one batch after the other; the thread's own."""
        with self._work.here():
            while (order := self._take_order()) is not None:
                found: _Found[B] = _Found()
                try:
                    found.batch = self._collect(*order)
                    found.state = deepcopy(self._collector.state_dict())
                except BaseException as error:
                    found.error = error
                with self._change:
                    self._now, self._found[order[0]] = None, found
                    self._change.notify_all()
                if found.error is not None:
                    return

    def _take_order(self) -> tuple[int, S] | None:
        with self._change:
            # What may begin is begun even after ``stop``, to fail there at once: other processes may wait in it.
            self._change.wait_for(lambda: bool(self._open) or self._stopped)
            if not self._open:
                return None
            order = self._open.popleft()
            self._now = order[0]
            return order
