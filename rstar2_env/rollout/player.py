"""Plays episodes: an engine on one side, Gymnasium environments on the other, every episode its own coroutine.

Covered: any environment with text in and text out, through ``reset`` and ``step`` alone; generation and tool calls of
different episodes overlap; an exception ends its own episode as ``unavailable`` and no other. Not covered: admission by
the engine's memory (an engine queues what it cannot take).
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np

from rstar2_env.episode import Episode, Message
from rstar2_env.errors import Rstar2Error
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Engine, SamplingParams

EnvFactory = Callable[[], "gym.Env[str, str]"]


class RolloutError(Rstar2Error, RuntimeError):
    """More episodes failed by our own fault than a run may lose."""


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """One episode to play.

    Attributes:
        group: Number of its group.
        seed: Seed of the environment's ``reset``; the same for a whole group.
        options: Options of ``reset``.
        sampling_seed: Seeds the policy's draws; different for each episode of a group. ``None`` leaves it to the
            engine.
    """

    group: int = 0
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one episode may use; the environment's own budgets come on top.

    Attributes:
        tokens: Tokens after the prompt, the policy's and the environment's together.
        turn_tokens: Tokens of one turn; ``None`` for what is left of the episode's.
        turns: A guard against an environment without a budget of its own.
    """

    tokens: int = 4096
    turn_tokens: int | None = None
    turns: int = 256


class Player:
    """Keeps a pool of environments and plays episodes in them.

    Args:
        make_env: Makes one environment; it is called as often as episodes are in flight.
        engine: Generates the turns.
        chat: Renders the conversation as ids.
        sampling: How to sample; ``max_tokens``, ``stop_ids`` and ``seed`` are filled in.
        budget: What one episode may use.
        max_in_flight: Episodes that play at once.
        max_failed: Share of a batch that may end ``unavailable`` before ``play`` raises.
    """

    def __init__(
        self,
        make_env: EnvFactory,
        engine: Engine,
        chat: ChatCodec,
        *,
        sampling: SamplingParams,
        budget: Budget | None = None,
        max_in_flight: int = 1024,
        max_failed: float = 0.5,
    ) -> None:
        self.engine, self.chat = engine, chat
        self._make_env = make_env
        self.sampling, self.budget = sampling, budget or Budget()
        self._max_in_flight, self._max_failed = max_in_flight, max_failed
        self._idle: list[gym.Env[str, str]] = []
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def play(self, requests: Sequence[EpisodeRequest], *, sampling: SamplingParams | None = None) -> list[Episode]:
        """Play every request; episodes come in the order of the requests. See ``aplay``."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.aplay(requests, sampling=sampling))
        # A notebook has a running loop already: play in a thread with a loop of its own.
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(asyncio.run, self.aplay(requests, sampling=sampling)).result()

    async def aplay(
        self, requests: Sequence[EpisodeRequest], *, sampling: SamplingParams | None = None
    ) -> list[Episode]:
        """Play every request.

        Raises:
            RolloutError: More than ``max_failed`` of the episodes ended ``unavailable``; the message holds one cause.
        """
        room = asyncio.Semaphore(self._max_in_flight)
        chosen = sampling or self.sampling

        async def play_one(request: EpisodeRequest) -> Episode:
            async with room:
                return await self._play(request, chosen)

        tasks = [asyncio.create_task(play_one(request)) for request in requests]
        try:
            episodes = list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
        failed = [episode for episode in episodes if not episode.available]
        if len(failed) > self._max_failed * len(episodes):
            cause = next(
                (episode.error for episode in failed if episode.error), "the tool or the grader did not answer"
            )
            raise RolloutError(
                f"{len(failed)} of {len(episodes)} episodes failed by our own fault, for example:\n{cause}"
            )
        return episodes

    def close(self) -> None:
        """Close every environment and end the threads."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)
            self._threads = None
        while self._idle:
            self._idle.pop().close()

    async def _play(self, request: EpisodeRequest, sampling: SamplingParams) -> Episode:
        episode = Episode(group=request.group, seed=request.seed)
        env: gym.Env[str, str] | None = None
        sound = False
        try:
            env = await self._call(self._borrow)
            await self._turns(env, episode, request, sampling)
            sound = True
        except Exception:
            episode.end, episode.reward, episode.correct = "unavailable", 0.0, False
            episode.error = traceback.format_exc()
        finally:
            # After a failure or a cancellation a thread may still be inside the environment: never lend it again.
            if env is not None and sound:
                self._idle.append(env)
            elif env is not None:
                env.close()
        return episode

    async def _turns(
        self, env: gym.Env[str, str], episode: Episode, request: EpisodeRequest, sampling: SamplingParams
    ) -> None:
        text, info = await self._call(env.reset, seed=request.seed, options=dict(request.options))
        system = str(info.get("system", ""))
        episode.problem_id = str(info.get("problem_id", ""))
        if system:
            episode.messages.append(Message("system", system))
        episode.messages.append(Message("user", text))
        episode.prompt_ids = self.chat.prompt(system, text)
        draws = np.random.SeedSequence(request.sampling_seed) if request.sampling_seed is not None else None
        while True:
            left = self.budget.tokens - len(episode.completion_ids)
            params = replace(
                sampling,
                max_tokens=min(left, self.budget.turn_tokens or left),
                stop_ids=self.chat.stop_ids,
                seed=None if draws is None else int(draws.spawn(1)[0].generate_state(1, np.uint64)[0]),
            )
            generation = await self.engine.generate(episode.prompt_ids + episode.completion_ids, params)
            if episode.turns == 0:
                episode.policy_version = generation.policy_version
            _extend(episode, generation.ids, 1, generation.logprobs)
            action = self.chat.text(generation.ids)
            episode.messages.append(Message("assistant", action))
            episode.turns += 1
            if generation.finish_reason == "length" and len(episode.completion_ids) >= self.budget.tokens:
                episode.end = "tokens"
                return
            text, reward, terminated, truncated, info = await self._call(env.step, action)
            episode.reward += float(reward)
            episode.note(info)
            if terminated or truncated:
                episode.end = str(info.get("end", "terminated" if terminated else "truncated"))
                episode.correct = bool(info.get("correct", episode.reward > 0))
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
            episode.messages.append(Message(str(info.get("role", "user")), text))
            _extend(episode, suffix, 0, [0.0] * len(suffix))

    def _borrow(self) -> gym.Env[str, str]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._make_env()

    async def _call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        # asyncio's own pool is far too small: a step waits for a tool, and every episode may be waiting.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._max_in_flight, thread_name_prefix="rstar2-env")
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **kwargs))


def _extend(episode: Episode, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    episode.completion_ids += ids
    episode.mask += [mask] * len(ids)
    episode.logprobs += logprobs
