"""``Prefetch``: collects batches in a thread, ahead of the trainer that takes them, with bounded staleness.

The trainer takes a batch just before its first update on that batch. Collecting a batch may start when the trainer will
train on at most ``staleness`` other batches between the last weight sync and that first update. Therefore the
staleness of every turn of the batch is within this bound. The sync after which a batch starts depends only on the
number of batches and not on the speed of a process. A repeated run therefore plays the same starts with the same limits
and the same versions of the weights. A batch may have fewer updates than expected; the run then takes more batches.

Without ``PrefetchPace.carry``, weights are synced once every batch that was allowed to start has been collected, that
is, after every ``staleness``-th batch; then the next batches start. With ``carry``, weights are synced before every
batch that is taken, while episodes run, and these episodes continue with the new weights. Timing determines which turns
use the new weights; each turn records the version of its weights.

Not covered: the content of a batch, how weights reach the engine, and recording a batch, which happens when it is
taken. A batch that is never taken has no effect; a run that resumes from a checkpoint collects it again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rstar2_env.core.blocking import Stoppable, StoppedError

B = TypeVar("B")
S = TypeVar("S")
T = TypeVar("T")

LEAVE_S = 30.0
"""Seconds that ``stop`` waits for the thread. The thread ends at once unless it waits for a process that is gone."""


class Stateful(Protocol):
    """A part of a run whose state is saved in checkpoints, as plain values and tensors."""

    def state_dict(self) -> Any:
        """Return the state for a checkpoint."""

    def load_state_dict(self, state: Any) -> None:
        """Restore a state that ``state_dict`` returned."""


@dataclass(frozen=True, slots=True)
class PrefetchPace:
    """Limits of prefetching; all numbers except ``staleness`` are in optimizer steps.

    Attributes:
        staleness: Maximum number of batches that are trained on between the generation of a turn and the first update
            on that turn; at least 1.
        every: Maximum number of updates on one batch.
        last: Number of steps of the run. A batch whose first update is expected at this step or later is not collected
            ahead.
        carry: Sync weights while episodes run; otherwise, wait until the running episodes have ended.
    """

    staleness: int
    every: int
    last: int
    carry: bool = False


class Prefetch(Generic[B, S]):
    """Collects batches ahead; the training thread calls every method except ``on_trainer``.

    Args:
        collector: The collector; its state is copied after each batch, since a checkpoint saves the state after the
            last batch taken.
        collect: Collects the next batch with the given settings.
        pace: Limits of prefetching.
        hand_over: Syncs the current weights to the engine.
        settings: Returns the settings of a batch, which are passed to ``collect``. It is called when the batch is
            permitted to start, not when the batch starts, so that the settings do not depend on timing.
    """

    def __init__(
        self,
        collector: Stateful,
        collect: Callable[[S], B],
        pace: PrefetchPace,
        *,
        hand_over: Callable[[], object],
        settings: Callable[[], S],
    ) -> None:
        self._collector, self._collect, self._pace = collector, collect, pace
        self._hand_over, self._settings = hand_over, settings
        self._work = Stoppable()
        self._thread: threading.Thread | None = None
        self._state: Any = None
        self._started = False
        # Batches are numbered from 0, in the order in which they are collected and taken.
        self._next = 0  # the first batch that may not start yet
        self._taken = 0
        self._step = 0  # the step at which the last taken batch starts to train
        # The condition guards everything below.
        self._change = threading.Condition()
        self._open: deque[tuple[int, S]] = deque()
        self._now: int | None = None
        self._found: dict[int, Future[tuple[B, Any]]] = {}  # each batch, with the collector's state after it
        self._call: tuple[Callable[[], Any], Future[Any]] | None = None  # delegated to the training thread
        self._stopped = False

    def take(self, step: int) -> B:
        """Return the next batch; sync the weights first if a sync is due.

        Args:
            step: Number of optimizer steps before the first update on the batch.

        Raises:
            Exception: Collecting the batch failed.
        """
        if not self._started:
            self._started, self._state = True, deepcopy(self._collector.state_dict())
        number = self._taken
        if self._pace.carry or (self._next <= number + 1 and self._wanted(number, step)):
            with self.updated(step):
                pass
        self._wait(lambda: number in self._found)
        with self._change:
            found = self._found.pop(number)
        batch, self._state = found.result()
        self._taken, self._step = number + 1, step
        return batch

    @contextmanager
    def updated(self, step: int, *, between: bool = True) -> Iterator[None]:
        """Context manager that first syncs the current weights; at its end, it permits batches that may use them.

        Without ``carry``, nothing is collected inside the context.

        Args:
            step: Number of optimizer steps so far.
            between: Whether all optimizer steps on the last taken batch are done.

        Raises:
            Exception: An unfinished batch had to be collected first, and this failed.
        """
        self.drain()
        self._hand_over()
        yield
        if between:
            self._permit(self._taken, step)
        else:
            self._permit(self._taken - 1, self._step)

    def drain(self) -> None:
        """Wait for every batch that was allowed to start to be collected, unless ``PrefetchPace.carry`` is set.

        Raises:
            Exception: Collecting a batch failed.
        """
        if not (self._pace.carry or self._stopped):
            self._wait(lambda: not self._open and self._now is None)

    def on_trainer(self, work: Callable[[], T]) -> T:
        """Run a function in the training thread while the training thread waits for the batch that is being collected.

        All processes run such functions in the same order, so a function may make collective calls.

        Raises:
            StoppedError: ``stop`` was called.
            Exception: The function failed.
        """
        if threading.current_thread() is not self._thread:
            return work()
        result: Future[T] = Future()
        with self._change:
            self._call = work, result
            self._change.notify_all()
            self._change.wait_for(lambda: result.done() or self._stopped)
            if not result.done():
                self._call = None
                raise StoppedError("The run ended before the training thread carried out this call.")
        return result.result()

    def stop(self) -> None:
        """Abandon the batch that is being collected, and end the thread."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
        self._work.stop()
        if self._thread is not None:
            self._thread.join(LEAVE_S)

    def state_dict(self) -> Any:
        """Return the collector's state after the last batch that was taken."""
        return self._state if self._started else self._collector.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Restore a state that ``state_dict`` returned; call it before the first batch is taken."""
        self._collector.load_state_dict(state)

    def _wanted(self, number: int, step: int) -> bool:
        """Return whether the run probably needs another batch, if training on batch ``number`` begins at ``step``."""
        return step + (self._next - number) * self._pace.every < self._pace.last

    def _permit(self, number: int, step: int) -> None:
        """Permit the collection of the batches for which the current weights are new enough.

        Args:
            number: Number of the batch that is being trained on or, between batches, of the next one.
            step: Number of optimizer steps before the first update on that batch.
        """
        if not self._started or self._stopped:
            return
        with self._change:
            while self._next <= number + self._pace.staleness and self._wanted(number, step):
                self._open.append((self._next, self._settings()))
                self._next += 1
            self._change.notify_all()
        if self._thread is None:
            # A daemon: if another process is gone, its calls may never return.
            self._thread = threading.Thread(target=self._run, name="rstar2-collect-ahead", daemon=True)
            self._thread.start()

    def _wait(self, until: Callable[[], bool]) -> None:
        """Wait for a condition; meanwhile, run the function calls that the collecting thread requests.

        Batches are collected in order, so a call made while a batch is awaited belongs to that batch or to an earlier
        one, in every process.

        Args:
            until: The condition; a batch that could not be collected ends the wait too.

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
            self._do(*call)

    def _failed(self) -> BaseException | None:
        return next(filter(None, (found.exception() for found in self._found.values())), None)

    def _do(self, work: Callable[[], T], result: Future[T]) -> None:
        try:
            value = work()
        except Exception as error:
            result.set_exception(error)
        except BaseException:
            result.set_exception(StoppedError("The run was interrupted."))
            raise
        else:
            result.set_result(value)
        finally:
            with self._change:
                self._change.notify_all()

    def _run(self) -> None:
        """Collect one batch after the other; runs in the collecting thread."""
        with self._work.here():
            while (order := self._take_order()) is not None:
                found: Future[tuple[B, Any]] = Future()
                try:
                    found.set_result((self._collect(order[1]), deepcopy(self._collector.state_dict())))
                except BaseException as error:
                    found.set_exception(error)
                with self._change:
                    self._now, self._found[order[0]] = None, found
                    self._change.notify_all()
                if found.exception() is not None:
                    return

    def _take_order(self) -> tuple[int, S] | None:
        with self._change:
            # Batches that may start are started even after ``stop``, to fail at once: other processes may wait in them.
            self._change.wait_for(lambda: bool(self._open) or self._stopped)
            if not self._open:
                return None
            order = self._open.popleft()
            self._now = order[0]
            return order
