"""Plays episodes with an engine and Gymnasium environments; every episode is a coroutine of its own.

Covered: any environment with text observations and text actions, through ``reset`` and ``step`` alone; generation and
tool calls of different episodes overlap; an exception ends its own episode as ``unavailable`` and no other; budgets of
tokens, turns and time; cancelling the rest of a group that needs no more episodes. Not covered: admission by the
engine's memory, which engines do themselves (``scheduler.py`` does it for several).
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Annotated, Any, Self

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.options import Count, Rule, check_options, checked, option
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Engine, SamplingParams, Seat, open_episode
from rstar2_env.rollout.env_pool import EnvFactory, EnvPool, LentEnv


class RolloutError(Rstar2Error, RuntimeError):
    """More episodes ended ``unavailable`` than ``max_failed`` allows.

    Attributes:
        episodes: All episodes, the failed ones with their tracebacks.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = list(episodes)
        failed = [episode for episode in episodes if episode.failed]
        causes = (episode.error for episode in failed if episode.error)
        cause = next(causes, "the tool or the grader did not answer")
        super().__init__(f"{len(failed)} of {len(episodes)} episodes ended as unavailable, for example:\n{cause}")


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """One episode to play.

    Attributes:
        group: Index of its group.
        seed: Seed of the environment's ``reset``; the same for a whole group.
        options: Options of ``reset``.
        sampling_seed: Seeds the policy's draws; different for each episode of a group. ``None`` leaves the seed to the
            engine.
    """

    group: int = 0
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one episode, in addition to the environment's own budgets.

    Attributes:
        tokens: Maximum number of tokens after the prompt, the policy's and the environment's together.
        turn_tokens: Maximum number of tokens of one turn; ``None`` means the rest of ``tokens``.
        turns: Maximum number of turns, for environments without a budget of their own.
        wall_s: Wall-clock seconds from the ``reset`` on, without the wait for a place on the engine; ``None`` for no
            limit. Its effect depends on the machine's load, so a run with this limit is not exactly reproducible.
    """

    tokens: int = option(4096, least=1)
    turn_tokens: int | None = option(None, least=1)
    turns: int = option(256, least=1)
    wall_s: float | None = option(None, above=0, unit="seconds")

    def __post_init__(self) -> None:
        """Check that every limit is positive.

        Raises:
            ConfigurationError: A limit is not positive.
        """
        check_options(self, "Budget.")


Settled = Callable[[Sequence[Episode | None]], bool]
"""Whether a group needs no more episodes, given those in the order of their requests (``None``: still running)."""


class Player:
    """Keeps a pool of environments and plays episodes in them; close it, or use it in a ``with`` statement.

    Args:
        make_env: Creates one environment; called at most once for each episode in flight.
        engine: Generates the turns.
        chat: Renders the conversation as ids.
        sampling: How to sample; ``max_tokens`` and ``seed`` are set for each turn, and the chat's ``stop_ids`` added.
        budget: Limits of one episode.
        max_in_flight: Maximum number of episodes played at the same time.
        max_failed: Fraction of a batch, 0 to 1, that may end ``unavailable`` before ``play`` raises.

    Raises:
        ConfigurationError: ``max_in_flight`` is not positive.
    """

    @checked
    def __init__(
        self,
        make_env: EnvFactory,
        engine: Engine,
        chat: ChatCodec,
        *,
        sampling: SamplingParams,
        budget: Budget | None = None,
        max_in_flight: Count = 1024,
        max_failed: Annotated[float, Rule(least=0, most=1)] = 0.5,
    ) -> None:
        self.engine, self.chat = engine, chat
        self.sampling, self.budget = sampling, budget or Budget()
        self._max_in_flight, self._max_failed = max_in_flight, max_failed
        self._envs = EnvPool(make_env)

    def play(
        self,
        requests: Sequence[EpisodeRequest],
        *,
        sampling: SamplingParams | None = None,
        settled: Settled | None = None,
    ) -> list[Episode]:
        """Play every request and wait for the end. See ``aplay``, of which this is the blocking form.

        Args:
            requests: The episodes to play.
            sampling: Overrides the player's sampling parameters.
            settled: Called about a group whenever an episode of it has ended; if it returns ``True``, the rest of the
                group ends as ``cancelled``.

        Returns:
            The episodes, in the order of the requests.

        Raises:
            RolloutError: More than ``max_failed`` of the episodes ended ``unavailable``; the message contains one
                cause.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.aplay(requests, sampling=sampling, settled=settled))
        # A notebook already has a running loop: play in a thread with a loop of its own.
        tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[list[Episode]]]] = []

        async def in_own_loop() -> list[Episode]:
            task = asyncio.ensure_future(self.aplay(requests, sampling=sampling, settled=settled))
            tasks.append((asyncio.get_running_loop(), task))
            return await task

        with ThreadPoolExecutor(max_workers=1) as thread:
            playing = thread.submit(asyncio.run, in_own_loop())
            try:
                return playing.result()
            except KeyboardInterrupt:
                for loop, task in tasks:
                    with contextlib.suppress(RuntimeError):  # the loop has just closed: everything has ended
                        loop.call_soon_threadsafe(task.cancel)
                raise

    async def aplay(
        self,
        requests: Sequence[EpisodeRequest],
        *,
        sampling: SamplingParams | None = None,
        settled: Settled | None = None,
    ) -> list[Episode]:
        """Play every request. Cancelling this coroutine cancels every request to the engine.

        Args:
            requests: The episodes to play.
            sampling: Overrides the player's sampling parameters.
            settled: Called about a group whenever an episode of it has ended; if it returns ``True``, the rest of the
                group ends as ``cancelled``.

        Returns:
            The episodes, in the order of the requests.

        Raises:
            RolloutError: More than ``max_failed`` of the episodes ended ``unavailable``; the message contains one
                cause.
        """
        room = asyncio.Semaphore(self._max_in_flight)
        chosen = sampling or self.sampling
        groups: dict[int, list[int]] = {}
        for at, request in enumerate(requests):
            groups.setdefault(request.group, []).append(at)
        ended: list[Episode | None] = [None] * len(requests)
        stopped: set[int] = set()

        async def play_one(at: int, request: EpisodeRequest) -> Episode:
            episode = Episode(group=request.group, seed=request.seed)
            try:
                async with room:
                    await self._play(episode, request, chosen)
            except asyncio.CancelledError:
                if request.group not in stopped:
                    raise
                episode.end, episode.reward, episode.correct = "cancelled", 0.0, False
                return episode
            ended[at] = episode
            others = groups[request.group]
            if settled and request.group not in stopped and settled([ended[other] for other in others]):
                stopped.add(request.group)
                for other in others:
                    if ended[other] is None:
                        tasks[other].cancel()
            return episode

        tasks = [asyncio.create_task(play_one(at, request)) for at, request in enumerate(requests)]
        try:
            episodes = list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        counted = sum(not episode.cancelled for episode in episodes)
        if sum(episode.failed for episode in episodes) > self._max_failed * counted:
            raise RolloutError(episodes)
        return episodes

    def close(self) -> None:
        """Close every environment and end the threads, once the calls in them have ended."""
        self._envs.close()

    def __enter__(self) -> Self:
        """Return the player itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close the player."""
        self.close()

    async def _play(self, episode: Episode, request: EpisodeRequest, sampling: SamplingParams) -> None:
        env = self._envs.lend()
        clock = asyncio.timeout(self.budget.wall_s)
        try:
            async with clock:
                await self._episode(env, episode, request, sampling, clock)
        except Exception as error:
            if not (isinstance(error, TimeoutError) and clock.expired()):
                _fail(episode, traceback.format_exc())
            elif not episode.prompt_ids:
                _fail(episode, f"The environment's reset took more than Budget.wall_s={self.budget.wall_s} seconds.")
            else:
                episode.end = "time"
                _drop_unanswered(episode)
        finally:
            env.release()

    async def _episode(
        self, env: LentEnv, episode: Episode, request: EpisodeRequest, sampling: SamplingParams, clock: asyncio.Timeout
    ) -> None:
        text, info = await env.reset(seed=request.seed, options=request.options)
        episode.begin(text, info)
        episode.prompt_ids = self.chat.prompt(str(info.get("system") or ""), text)
        sampling = replace(
            sampling,
            stop_ids=tuple({*sampling.stop_ids, *self.chat.stop_ids}),
            stop=tuple(dict.fromkeys([*sampling.stop, *info.get("stop", ())])),
        )
        until, now = clock.when(), asyncio.get_running_loop().time
        left = None if until is None else until - now()
        # The time spent waiting for a place does not count as anybody's turn.
        clock.reschedule(None)
        async with open_episode(self.engine, len(episode.prompt_ids), self.budget.tokens) as seat:
            clock.reschedule(None if left is None else now() + left)
            await self._turns(env, seat, episode, request, sampling)

    async def _turns(
        self, env: LentEnv, seat: Seat, episode: Episode, request: EpisodeRequest, sampling: SamplingParams
    ) -> None:
        draws = np.random.SeedSequence(request.sampling_seed) if request.sampling_seed is not None else None
        while True:
            left = self.budget.tokens - len(episode.completion_ids)
            params = replace(
                sampling,
                max_tokens=min(left, self.budget.turn_tokens or left),
                seed=None if draws is None else int(draws.spawn(1)[0].generate_state(1, np.uint64)[0]),
            )
            generation = await seat.generate(episode.prompt_ids + episode.completion_ids, params)
            if episode.turns == 0:
                episode.policy_version = generation.policy_version
            _extend(episode, generation.ids, 1, generation.logprobs)
            action = self.chat.text(generation.ids)
            episode.act(action)
            if generation.finish_reason == "length" and len(episode.completion_ids) >= self.budget.tokens:
                episode.end = "tokens"
                return
            text, reward, terminated, truncated, info = await env.step(action)
            if episode.observe(reward, terminated, truncated, info):
                return
            ended = bool(generation.ids) and generation.ids[-1] in self.chat.stop_ids
            suffix = self.chat.suffix(str(info.get("role", "user")), text, ended=ended)
            # What the environment showed and the policy could not answer any more is left out of the record.
            if len(episode.completion_ids) + len(suffix) >= self.budget.tokens:
                episode.end = "tokens"
                return
            if episode.turns >= self.budget.turns:
                episode.end = "turns"
                return
            episode.show(text, info)
            _extend(episode, suffix, 0, [0.0] * len(suffix))


def _extend(episode: Episode, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    episode.completion_ids += ids
    episode.mask += [mask] * len(ids)
    episode.logprobs += logprobs


def _fail(episode: Episode, error: str) -> None:
    episode.end, episode.reward, episode.correct, episode.error = "unavailable", 0.0, False, error


def _drop_unanswered(episode: Episode) -> None:
    """Leave out what the environment showed and the policy could not answer any more."""
    while episode.mask and not episode.mask[-1]:
        for entries in (episode.completion_ids, episode.mask, episode.logprobs):
            entries.pop()
    if episode.turns and episode.messages[-1].role != "assistant":
        episode.messages.pop()
