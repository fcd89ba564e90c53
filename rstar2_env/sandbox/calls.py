"""What every sandbox that hands jobs on has in common: the ways of waiting for a job, and of using it as a context."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Protocol, Self

from rstar2_env.sandbox.job import Job, Outcome


class Pending(Protocol):
    """A job on its way."""

    @property
    def future(self) -> Future[Outcome]:
        """Where its outcome will be."""
        ...

    def drop(self) -> None:
        """Nobody waits any more: end the program."""
        ...


class Caller(abc.ABC):
    """Runs jobs by submitting them."""

    @abc.abstractmethod
    def submit(self, job: Job) -> Pending:
        """Start a job on its way, without waiting for it.

        Raises:
            SandboxUnavailableError: The sandbox is closed, or belongs to another process.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """End every process that belongs to the sandbox. Calls in flight become ``unavailable``."""

    def run(self, job: Job) -> Outcome:
        """Run one job and wait for it; a failure of our own is an ``unavailable`` outcome."""
        pending = self.submit(job)
        try:
            return pending.future.result()
        except BaseException:
            pending.drop()
            raise

    async def arun(self, job: Job) -> Outcome:
        """Run one job without blocking the event loop. Cancelling it ends the program."""
        pending = self.submit(job)
        try:
            return await asyncio.wrap_future(pending.future)
        except asyncio.CancelledError:
            pending.drop()
            raise

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs at once, as many as there are workers; outcomes come in the order of the jobs."""
        pending = [self.submit(job) for job in jobs]
        try:
            return [each.future.result() for each in pending]
        except BaseException:
            for each in pending:
                each.drop()
            raise

    def __enter__(self) -> Self:
        """Start using it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it."""
        self.close()
