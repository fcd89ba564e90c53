"""``Service``: a queue of limited length in front of one sandbox; each call has an id and runs once.

The outcome is kept for some time, so that a client that has lost its connection can request it again. A watcher is a
function that waits for a call's outcome, on behalf of a client. Covered: how calls are accepted, refused, run and
cancelled; how the outcome reaches every watcher; calls that are sent again; clients that disconnect and reconnect;
shutdown. Not covered: HTTP (``app``, ``stream``). Everything here runs in one event loop.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from rstar2_env.core.cores import usable_cores
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox.fleet.codec import dump, outcome_to_json
from rstar2_env.sandbox.job import Job, Outcome, Sandbox
from rstar2_env.sandbox.messages import lost
from rstar2_env.sandbox.serve.metrics import Metrics
from rstar2_env.sandbox.serve.options import ServeOptions, cut_to
from rstar2_env.sandbox.session_names import SessionNames

Watcher: TypeAlias = "Callable[[ServedCall], None]"
"""Function that gets a ``ServedCall`` as soon as the call's answer is known."""
_SHORTEST_RETRY_S, _LONGEST_RETRY_S = 0.05, 30.0
_GIVEN_UP = "The call was ended because its client disconnected or cancelled it."


class ServedCall:
    """One call of a client, from its arrival until the server forgets it.

    Args:
        call_id: Id that the client chose.
        job: The job; ``None`` if the call will not run.
        arrived: Time of arrival in seconds, on the event loop's clock.

    Attributes:
        id: Id that the client chose.
        answer: Outcome or refusal of the call, encoded as a line of JSON; ``None`` until it is known, and again after
            it is forgotten.
        outcome: The outcome, only while the functions that wait for it (watchers) are called; ``None`` at other times,
            and if the call did not run.
    """

    def __init__(self, call_id: str, job: Job | None, arrived: float) -> None:
        self.id = call_id
        self.job = job
        self.arrived = arrived
        self.cut: list[str] = []
        self.task: asyncio.Task[Outcome] | None = None
        self.watchers: set[Watcher] = set()
        self.outcome: Outcome | None = None
        self.answer: bytes | None = None
        self.done = False
        self.done_at = 0.0
        self.size = 0


class Service:
    """A queue of calls in front of a sandbox.

    Args:
        sandbox: A running sandbox of any provider; the caller closes it.
        options: Bounds and timeouts of the server.
        provider: Name of the provider, reported to clients.
    """

    def __init__(self, sandbox: Sandbox, options: ServeOptions, provider: str = "local") -> None:
        self.sandbox = sandbox
        self.options = options
        self.provider = provider
        self.boot = secrets.token_hex(8)
        """Id that is new at each start of the server; calls that were accepted under an earlier id are lost."""
        known = int(getattr(getattr(sandbox, "options", None), "slots", 0))
        self.slots = options.slots or known or usable_cores()
        self.in_flight_limit = options.in_flight if options.in_flight is not None else 2 * self.slots
        self.draining = False
        self.running = 0
        self.metrics = Metrics(
            {
                "queue_depth": (lambda: self.waiting, "Waiting calls."),
                "in_flight": (lambda: self.running, "Calls passed to the provider and not yet finished."),
                "sessions": (lambda: len(self._sessions.names()), "Sessions believed to be alive."),
                "remembered": (lambda: len(self._calls), "Calls remembered by id."),
            }
        )
        self._recent_s = 0.05  # moving average of the duration of calls, with an initial guess
        self._calls: dict[str, ServedCall] = {}
        self._queue: dict[ServedCall, None] = {}  # in order of arrival; any call can be removed
        self._finished: deque[ServedCall] = deque()
        self._answers: deque[ServedCall] = deque()
        self._answer_bytes = 0
        self._sessions = SessionNames()
        self._idle = asyncio.Event()
        self._idle.set()

    # Calls

    @property
    def waiting(self) -> int:
        """Number of calls in the queue."""
        return len(self._queue)

    def room(self) -> int:
        """Number of further calls that the queue can accept now."""
        if self.draining:
            return 0
        return max(0, self.options.queue - len(self._queue)) + max(0, self.in_flight_limit - self.running)

    def known(self, call_id: str) -> ServedCall | None:
        """Return the call with an id; ``None`` if the service never accepted it or has dropped it."""
        call = self._calls.get(call_id)
        if call is not None:
            self.metrics.repeated.inc()
        return call

    def take(self, call_id: str, job: Job) -> ServedCall:
        """Accept a call and put it into the queue; call this only if ``room`` is positive."""
        call = ServedCall(call_id, job, asyncio.get_running_loop().time())
        limits, call.cut = cut_to(job.limits, self.options.max_limits)
        if call.cut:
            call.job = replace(job, limits=limits)
        self._calls[call_id] = call
        self._queue[call] = None
        self._idle.clear()
        self._start_what_fits()
        return call

    def leave(self, call: ServedCall, watcher: Watcher, *, grace_s: float) -> None:
        """Remove a watcher of a call. If the call then has no watcher for ``grace_s`` seconds, the call is ended.

        Args:
            call: Call that the watcher waits for.
            watcher: The watcher to remove.
            grace_s: Seconds until an unwatched call is ended; 0 ends it immediately.
        """
        call.watchers.discard(watcher)
        if call.done or call.watchers:
            return
        if grace_s > 0:
            asyncio.get_running_loop().call_later(grace_s, partial(self.leave, call, watcher, grace_s=0.0))
        else:
            self.cancel(call.id)

    def cancel(self, call_id: str) -> None:
        """End a call whose outcome is no longer needed; unknown and finished calls are ignored."""
        call = self._calls.get(call_id)
        if call is None or call.done:
            return
        self.metrics.cancelled.inc()
        if call in self._queue:
            del self._queue[call]
            self._refuse(call, "cancelled")
        elif call.task is not None:
            call.task.cancel()

    def retry_after(self) -> float:
        """Estimate the seconds until the queue has room, from the duration of recent calls."""
        ahead = max(1, len(self._queue) + self.running - self.in_flight_limit)
        return min(_LONGEST_RETRY_S, max(_SHORTEST_RETRY_S, self._recent_s * ahead / self.in_flight_limit))

    def end_session(self, name: str) -> None:
        """End a session in another thread, without waiting for it."""
        self._sessions.forget(name)
        asyncio.get_running_loop().run_in_executor(None, self.sandbox.end_session, name)

    async def drain(self) -> None:
        """Stop the service: refuse waiting calls, so that clients send them elsewhere, and wait for running calls."""
        self.draining = True
        for call in list(self._queue):
            self._refuse(call, "stopping")
        self._queue.clear()
        self._rest()
        try:
            await asyncio.wait_for(self._idle.wait(), self.options.drain_timeout_s)
        except TimeoutError:
            for call in list(self._calls.values()):
                if call.task is not None:
                    call.task.cancel()
            await self._idle.wait()

    # Internals

    def _start_what_fits(self) -> None:
        while self._queue and self.running < self.in_flight_limit:
            call = next(iter(self._queue))
            del self._queue[call]
            self.running += 1
            call.task = asyncio.create_task(self._run(call))
            call.task.add_done_callback(partial(self._ended, call))

    async def _run(self, call: ServedCall) -> Outcome:
        now = asyncio.get_running_loop().time()
        self.metrics.wait.observe(now - call.arrived)
        self.metrics.started.inc()
        call.arrived = now
        assert call.job is not None  # a call keeps its job until it has run
        return await self.sandbox.arun(call.job)

    def _ended(self, call: ServedCall, task: asyncio.Task[Outcome]) -> None:
        assert call.job is not None  # a call keeps its job until it has run
        answer: dict[str, Any] = {"id": call.id}
        session = call.job.session
        if task.cancelled():
            why = "The server stopped before the program ended." if self.draining else _GIVEN_UP
            outcome = lost(why, 1, session)
        elif (error := task.exception()) is None:
            outcome = task.result()
        elif isinstance(error, ConfigurationError):
            outcome = lost(str(error), 0)
            answer["error"] = str(error)
        else:  # the client must receive any error of a provider
            outcome = lost(f"{type(error).__name__}: {error}", 1, session)
        if "error" not in answer:
            answer["outcome"] = outcome_to_json(outcome)
        if call.cut:
            answer["cut"] = call.cut
        now = asyncio.get_running_loop().time()
        self.running -= 1
        took = now - call.arrived
        self._recent_s += 0.05 * (took - self._recent_s)
        self.metrics.service.observe(took)
        self.metrics.calls.labels(outcome.status.value).inc()
        if session is not None and outcome.session is not None:
            self._sessions.note(session, outcome.session)
        call.job, call.task, call.outcome = None, None, outcome
        self._finish(call, answer)
        self._start_what_fits()
        self._rest()

    def _finish(self, call: ServedCall, answer: dict[str, Any]) -> None:
        call.done, call.done_at = True, asyncio.get_running_loop().time()
        call.answer = dump(answer)
        call.size = len(call.answer)
        self._finished.append(call)
        self._answers.append(call)
        self._answer_bytes += call.size
        self._notify(call)
        call.outcome = None
        self._forget()

    def _refuse(self, call: ServedCall, why: str) -> None:
        """Answer that the call did not run, and forget it, so that the client can send it again."""
        del self._calls[call.id]
        call.done, call.job = True, None
        if why != "cancelled":
            self.metrics.rejected.inc()
        call.answer = dump({"id": call.id, "refused": why, "retry_after_s": self.retry_after()})
        self._notify(call)
        self._rest()

    def _notify(self, call: ServedCall) -> None:
        watchers, call.watchers = call.watchers, set()
        for watcher in watchers:
            watcher(call)

    def _forget(self) -> None:
        """Drop the oldest answers beyond ``remember_mb``, and calls older than ``remember_s``."""
        while self._answer_bytes > self.options.remember_mb * (1 << 20) and len(self._answers) > 1:
            oldest = self._answers.popleft()
            self._answer_bytes -= oldest.size
            oldest.answer = None
        horizon = asyncio.get_running_loop().time() - self.options.remember_s
        while self._finished and self._finished[0].done_at < horizon:
            call = self._finished.popleft()
            if self._answers and self._answers[0] is call:
                self._answers.popleft()
                self._answer_bytes -= call.size
            del self._calls[call.id]

    def _rest(self) -> None:
        if not self._queue and not self.running:
            self._idle.set()
