"""The actor of one node: a local sandbox that receives calls in batches and returns outcomes as calls end.

Covered: many calls in flight in one actor; orders that arrive twice are carried out once; an outcome is kept
until its receipt is confirmed. Not covered: which calls come here, and what happens when it dies (``dispatcher``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.sandbox.base import Pending
from rstar2_env.sandbox.job import Capability, Job, Outcome
from rstar2_env.sandbox.local.provider import LocalSandbox
from rstar2_env.sandbox.messages import lost

POLL_S = 2.0
"""Seconds that ``collect`` waits for an outcome before it returns none: the heartbeat of an idle node."""


@dataclass(frozen=True, slots=True)
class Run:
    """Start a call."""

    call: int
    job: Job


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the program of a call whose outcome is no longer needed."""

    call: int


@dataclass(frozen=True, slots=True)
class EndSession:
    """End a session."""

    name: str


Order = Run | Cancel | EndSession


@dataclass(frozen=True, slots=True)
class Start:
    """Result of starting a node's sandbox.

    Attributes:
        workers: Programs that it runs at once.
        capabilities: Its layers of isolation.
        error: Why it did not start, or ``None``.
        mistaken: Whether the options were wrong.
    """

    workers: int = 0
    capabilities: Sequence[Capability] = ()
    error: str | None = None
    mistaken: bool = False


class Keeper:
    """Holds the local sandbox of a node. Ray makes an asynchronous actor of it.

    Args:
        options: Options of the local sandbox.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._sandbox: LocalSandbox | None = None
        self._calls: dict[int, Pending] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._carried_out = 0
        self._news = asyncio.Event()

    async def start(self) -> Start:
        """Start the sandbox and describe it. Failures are returned, not raised, so that callers can name the node."""
        try:
            sandbox = await asyncio.to_thread(LocalSandbox, **self._options)
        except (ConfigurationError, SandboxUnavailableError) as error:
            return Start(error=str(error), mistaken=isinstance(error, ConfigurationError))
        self._sandbox = sandbox
        return Start(sandbox.options.slots, tuple(sandbox.capabilities()))

    async def obey(self, number: int, orders: Sequence[Order]) -> None:
        """Carry out orders, one after the other; the calls that they start go on after the answer.

        Args:
            number: Counts these batches, from 1; one that was carried out is not carried out again.
            orders: What to do.
        """
        if number <= self._carried_out:
            return
        self._carried_out = number
        assert self._sandbox is not None  # orders come only after a successful start
        for order in orders:
            match order:
                case Run(call, job):
                    self._run(self._sandbox, call, job)
                case Cancel(call):
                    if (pending := self._calls.pop(call, None)) is not None:
                        pending.drop()
                case EndSession(name):
                    self._sandbox.end_session(name)

    async def collect(self, received: Sequence[int]) -> list[tuple[int, Outcome]]:
        """The available outcomes, as soon as there is one; drops those whose calls are in ``received``."""
        for call in received:
            self._outcomes.pop(call, None)
        if not self._outcomes:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), POLL_S)
            except TimeoutError:
                return []
        return list(self._outcomes.items())

    async def stop(self) -> None:
        """End the sandbox and every process of it."""
        if self._sandbox is not None:
            await asyncio.to_thread(self._sandbox.close)

    def _run(self, sandbox: LocalSandbox, call: int, job: Job) -> None:
        try:
            pending = sandbox.submit(job)
        except (SandboxUnavailableError, ConfigurationError) as error:
            self._note(call, lost(str(error), 1, job.session))
            return
        self._calls[call] = pending
        loop = asyncio.get_running_loop()
        # Called in the sandbox's own thread.
        pending.future.add_done_callback(lambda future: loop.call_soon_threadsafe(self._on_end, call, future))

    def _on_end(self, call: int, future: Future[Outcome]) -> None:
        if self._calls.pop(call, None) is not None:
            self._note(call, future.result())

    def _note(self, call: int, outcome: Outcome) -> None:
        self._outcomes[call] = outcome
        self._news.set()
