"""``Scheduler``: an engine that distributes episodes over several engines, according to their free capacity.

Covered: episodes get places (room in an engine's cache) in the order of their requests, stay on the engine that caches
their prefix, and always free their place; a failing engine is excluded, and its episodes move; there is no polling.
``admission.py`` chooses the places. Not covered: an engine that neither answers nor fails (``Budget.wall_s`` ends its
episodes), and starting or stopping engines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.rollout.engine import (
    Engine,
    Generation,
    SamplingParams,
    Seat,
    TurnTimeoutError,
    UpdatesTogether,
    longest_conversation,
    most_candidates,
    open_episode,
)
from rstar2_env.rollout.scheduling import kv_aware as kv_aware  # importing it registers its policy
from rstar2_env.rollout.scheduling.admission import POLICIES, Admission, Stay

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """The current state of a scheduler.

    Attributes:
        waiting: Number of episodes that wait for an engine.
        episodes: Number of episodes on each engine.
        left_out: Indices of the engines that take no new episodes.
        moved: Number of requests so far that had to move to another engine.
    """

    waiting: int
    episodes: tuple[int, ...]
    left_out: tuple[int, ...]
    moved: int


class Scheduler:
    """An engine that distributes episodes over several engines.

    Args:
        engines: The engines; the scheduler closes them.
        policy: Name of the scheduling policy: ``kv_aware``, ``least_requests`` or ``static``.
        max_strikes: Number of consecutive requests that fail on an engine and succeed elsewhere before the engine is
            excluded. It is included again when it loads new weights, or when all others have failed a request.
        shared_by: Number of schedulers, one in each process of a run, that share the engines. Each uses only its share
            of the engines' caches.
        **policy_options: Options of the policy.

    Raises:
        ConfigurationError: There is no engine, or an option is unknown or out of range.
        UnknownNameError: No policy has that name; the message suggests the closest one.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        policy: str = "kv_aware",
        *,
        max_strikes: int = 3,
        shared_by: int = 1,
        **policy_options: Any,
    ) -> None:
        if not engines or max_strikes < 1 or shared_by < 1:
            raise ConfigurationError(
                "A scheduler needs at least one engine, max_strikes >= 1 and shared_by >= 1; got "
                f"{len(engines)} engines, max_strikes={max_strikes} and shared_by={shared_by}."
            )
        self.engines = list(engines)
        capacities = [max(1, engine.capacity() // shared_by) for engine in self.engines]
        make = POLICIES.get(policy)
        chosen = call_with_options(f"scheduling policy {policy!r}", make, {"capacities": capacities, **policy_options})
        # Episodes may come from several event loops; the lock guards everything below.
        self._lock = threading.Lock()
        self._admission = Admission(capacities, chosen)
        self._places: dict[Stay, Future[None]] = {}
        self._episodes = [0] * len(self.engines)
        self._strikes = [0] * len(self.engines)
        self._max_strikes = max_strikes
        self._outdated: set[int] = set()
        self._moved = 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``, as an episode of one turn."""
        async with self.episode(len(ids), params.max_tokens) as seat:
            return await seat.generate(ids, params)

    @asynccontextmanager
    async def episode(self, prompt_tokens: int, max_tokens: int) -> AsyncIterator[Seat]:
        """Wait until an engine has room for an episode; its turns are generated on that engine unless the engine fails.

        Raises:
            ConfigurationError: The prompt is too long for the cache of any engine.
        """
        with self._lock:
            stay = self._admission.ask(prompt_tokens, max_tokens)
            place = self._places[stay] = Future()
            self._admit()
        seat, ended = _Seat(self, stay), False
        try:
            await asyncio.wrap_future(place)
            yield seat
            ended = True
        finally:
            try:
                await seat.release()
            finally:
                self._leave(stay, ended=ended)

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Send the weights to all engines in parallel; an engine that fails is excluded until it loads weights again.

        Engines that can be updated together (``goes_with``) share one weight sync, so weights are gathered only once.

        Raises:
            Exception: No engine loaded the weights; the exception is that of the first engine in the list.
        """
        first, failed = self.engines[0], dict[int, BaseException]()
        if weights is not None and isinstance(first, UpdatesTogether) and first.goes_with(self.engines):
            first.update_together(self.engines, version, weights)
        else:
            # An iterator can be read only once, and would reach only the first engine.
            shared = list(weights) if isinstance(weights, Iterator) else weights
            with ThreadPoolExecutor(len(self.engines), thread_name_prefix="rstar2-weights") as threads:
                done = [threads.submit(engine.update_weights, version, shared) for engine in self.engines]
            errors = [future.exception() for future in done]
            failed = {number: error for number, error in enumerate(errors) if error is not None}
        if len(failed) == len(self.engines):
            raise failed[0]
        with self._lock:
            self._outdated = set(failed)
            for number in range(len(self.engines)):
                if number not in failed:
                    self._take_back(number)
            for number, error in failed.items():
                self._leave_out(number, error)
            self._admit()

    @property
    def max_model_len(self) -> int | None:
        """Maximum number of tokens of a conversation that every engine accepts; ``None`` if no engine has a limit."""
        known = [longest for engine in self.engines if (longest := longest_conversation(engine)) is not None]
        return min(known, default=None)

    @property
    def most_candidates(self) -> int:
        """Maximum value of ``SamplingParams.candidates`` that every engine accepts."""
        return min(map(most_candidates, self.engines))

    @property
    def takes(self) -> str:
        """The weights that ``update_weights`` needs from a policy with a LoRA adapter: all weights, or the adapter."""
        return str(getattr(self.engines[0], "takes", "weights"))

    def capacity(self) -> int:
        """Total number of tokens that fit into the caches of the engines, including the shares of other processes."""
        return sum(engine.capacity() for engine in self.engines)

    def stats(self) -> SchedulerStats:
        """Return the current state: waiting episodes, episodes on each engine, excluded engines."""
        with self._lock:
            in_use = self._admission.in_use
            left_out = tuple(number for number in range(len(self.engines)) if number not in in_use)
            return SchedulerStats(self._admission.waiting, tuple(self._episodes), left_out, self._moved)

    def close(self) -> None:
        """Close every engine, even if closing one of them fails.

        Raises:
            Exception: The exception of the first engine, in the order of ``engines``, that raised one.
        """
        with ExitStack() as closing:  # it closes the last engine first, and raises the last exception
            for engine in self.engines:
                closing.callback(engine.close)

    def _admit(self) -> None:
        """Assign waiting episodes to engines, and notify these episodes; called with the lock held."""
        for stay in self._admission.admit():
            assert stay.engine is not None
            self._episodes[stay.engine] += 1
            place = self._places.pop(stay)
            with contextlib.suppress(InvalidStateError):  # it was cancelled and will leave
                place.set_result(None)

    def _turn_begins(self, stay: Stay, tokens: int) -> None:
        with self._lock:
            self._admission.turn_begins(stay, tokens)

    def _turn_ends(self, stay: Stay, tokens: int) -> None:
        with self._lock:
            self._admission.turn_ends(stay, tokens)
            self._admit()

    def _leave(self, stay: Stay, *, ended: bool) -> None:
        with self._lock:
            self._places.pop(stay, None)
            if stay.engine is not None:
                self._episodes[stay.engine] -= 1
            self._admission.leave(stay, ended=ended)
            self._admit()

    def _move(self, stay: Stay, failed: set[int]) -> Future[None] | None:
        """Request a place on an engine that has not failed this request; ``None`` if there is no such engine.

        Returns:
            A future that is done when the episode has the place.
        """
        with self._lock:
            untried = set(range(len(self.engines))) - failed - self._outdated
            if not untried:
                return None
            if untried.isdisjoint(self._admission.in_use):
                for number in untried:
                    self._take_back(number)
            assert stay.engine is not None
            self._episodes[stay.engine] -= 1
            self._moved += 1
            place = self._places[stay] = Future()
            self._admission.move(stay)
            self._admit()
            return place

    def _answered(self, engine: int, failed: dict[int, Exception]) -> None:
        """Record that ``engine`` answered a request, and count a failure of each engine in ``failed``."""
        if not failed:
            self._strikes[engine] = 0
            return
        with self._lock:
            self._strikes[engine] = 0
            for number, error in failed.items():
                self._strikes[number] += 1
                if self._strikes[number] >= self._max_strikes:
                    self._leave_out(number, error)
            self._admit()

    def _leave_out(self, number: int, error: BaseException) -> None:
        if number in self._admission.in_use and len(self._admission.in_use) > 1:
            _log.warning("Engine %d failed and gets no new episodes: %s: %s", number, type(error).__name__, error)
            self._admission.leave_out(number)

    def _take_back(self, number: int) -> None:
        self._strikes[number] = 0
        self._admission.take_back(number)


class _Seat:
    """Generates the turns of one episode on one engine; if that engine fails, the episode moves to another one."""

    def __init__(self, scheduler: Scheduler, stay: Stay) -> None:
        self._scheduler, self._stay = scheduler, stay
        self._inner: Seat | None = None
        self._stack = AsyncExitStack()

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``. If an engine fails, other engines with the newest weights are tried.

        Raises:
            ConfigurationError: An engine refuses the request; no other engine is tried.
            TurnTimeoutError: The turn took too long, as it would elsewhere; no other engine is tried.
            Exception: Every engine that was tried failed; the exception is that of the last one.
        """
        scheduler, stay = self._scheduler, self._stay
        failed: dict[int, Exception] = {}
        while True:
            engine = stay.engine
            assert engine is not None
            scheduler._turn_begins(stay, len(ids) - stay.prompt)
            try:
                if self._inner is None:
                    # The engine itself may be an ``EpisodeEngine`` too.
                    place = open_episode(scheduler.engines[engine], stay.prompt, stay.most)
                    self._inner = await self._stack.enter_async_context(place)
                generation = await self._inner.generate(ids, params)
            except (ConfigurationError, TurnTimeoutError):
                raise
            except Exception as error:
                failed[engine] = error
                moved = scheduler._move(stay, set(failed))
                if moved is None:
                    raise
                await self.release()
                await asyncio.wrap_future(moved)
                continue
            stay.avoid.clear()
            scheduler._answered(engine, failed)
            scheduler._turn_ends(stay, len(ids) + len(generation.ids) - stay.prompt)
            return generation

    async def release(self) -> None:
        """Free the episode's place on its engine."""
        self._inner = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
