"""The loop of one episode: ``Turns`` alternates between policy and environment until the episode ends or hits a limit.

Also here: ``Timing``, the time that episodes spend in environments and engines; ``SingleReply``, a stand-in for the
environment; and functions that measure a turn or change a recorded episode.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import OPEN, PLAIN, Manner
from rstar2_env.core.telemetry import chat_span
from rstar2_env.core.turn import Turn
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Generation, SamplingParams, Seat
from rstar2_env.rollout.env_pool import LentEnv
from rstar2_env.rollout.replay import Replay
from rstar2_env.rollout.request import Budget
from rstar2_env.rollout.seats import TwoPolicies


@dataclass(slots=True)
class Timing:
    """Wall-clock seconds spent in environments and engines, summed over episodes; divide by ``episodes`` for the mean.

    Attributes:
        episodes: Number of episodes that were started.
        environment: Seconds in calls of environments (tools and graders included).
        engine: Seconds until the engine returned the turns, its queue included.
    """

    episodes: int = 0
    environment: float = 0.0
    engine: float = 0.0

    @contextmanager
    def measure(self, where: Literal["environment", "engine"]) -> Iterator[None]:
        """Add the duration of the ``with`` block to ``environment`` or ``engine``."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, where, getattr(self, where) + time.perf_counter() - begun)


class SingleReply:
    """A stand-in for the environment if the policy generates one turn without an environment. The reward is 0.

    Args:
        text: The user's message.
        system: The system message; empty for none.
    """

    env_id = ""

    def __init__(self, text: str, system: str = "") -> None:
        self._text, self._system = text, system

    async def reset(self, *, seed: int | None, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the user's message, and ``info`` with the system message."""
        return self._text, {"system": self._system}

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """End the episode after the policy's turn."""
        return "", 0.0, True, False, {"end": "answered"}

    def release(self) -> None:
        """Do nothing: there is no environment to return to a pool."""


@dataclass(slots=True)
class Turns:
    """Plays the turns of one episode.

    Attributes:
        env: The environment, after its ``reset``.
        seat: Generates turns.
        chat: Renders the conversation as ids.
        budget: Limits of the episode.
        timing: Sums the time that episodes spend in environments and engines.
        manner: How the episode is played.
        replay: Returns the turns that the episode shares with another one, before ``seat`` generates turns; or
            ``None``.
        two: ``seat``, if it is a ``TwoPolicies``, which uses two versions of the weights; otherwise ``None``.
        served: Names of the model and of the engine, for telemetry.
    """

    env: LentEnv | SingleReply
    seat: Seat
    chat: ChatCodec
    budget: Budget
    timing: Timing
    manner: Manner = PLAIN
    replay: Replay | None = None
    two: TwoPolicies | None = None
    served: tuple[str, str] = ("", "")

    async def play(self, episode: Episode, sampling: SamplingParams, seed: int | None) -> None:
        """Play the episode until the environment or a budget ends it, or until ``Manner.chunk`` tokens were played.

        Args:
            episode: The episode, with its prompt set; receives the turns.
            sampling: Sampling parameters; ``max_tokens`` and ``seed`` are set for each turn.
            seed: Seeds the policy's draws.
        """
        draws = None if seed is None else np.random.SeedSequence(seed)
        most = self.budget.tokens
        while True:
            left = most - len(episode.completion_ids)
            params = replace(
                sampling,
                max_tokens=min(left, self.budget.turn_tokens or left),
                seed=None if draws is None else int(draws.spawn(1)[0].generate_state(1, np.uint64)[0]),
            )
            given, whole = (0, False) if self.replay is None else self.replay.next_given()
            shared = self.replay.next_turn() if self.replay is not None and given else None
            last = self.manner.chunk is not None and not whole  # the chunk ends within this turn or right after it
            played = episode.played_ids + episode.completion_ids
            with chat_span(*self.served, params) as span:
                generation, cut = await self._generate(
                    played, params, given + (self.manner.chunk or 0) if last else None
                )
                span.generation(len(played), len(generation.ids), generation.finish_reason)
                if span.content:
                    shown = ((message.role, message.content) for message in episode.messages)
                    span.texts(shown, self.chat.text(generation.ids), generation.finish_reason)
            action = self._record(episode, generation, shared)
            if generation.finish_reason == "length" and len(episode.completion_ids) >= most:
                episode.end = "tokens"
                return
            if cut:
                episode.end = OPEN
                return
            with self.timing.measure("environment"):
                text, reward, terminated, truncated, info = await self.env.step(action)
            if episode.observe(reward, terminated, truncated, info):
                return
            ended = bool(generation.ids) and generation.ids[-1] in self.chat.stop_ids
            suffix = self.chat.suffix(str(info.get("role", "user")), text, ended=ended)
            # Environment text that the policy can no longer answer is left out of the record.
            if len(episode.completion_ids) + len(suffix) >= most:
                episode.end = "tokens"
                return
            if episode.turns >= self.budget.turns:
                episode.end = "turns"
                return
            episode.show(text, info)
            _append(episode, suffix, 0, [0.0] * len(suffix))
            if last:
                episode.end = OPEN
                return

    async def _generate(self, ids: Sequence[int], params: SamplingParams, chunk: int | None) -> tuple[Generation, bool]:
        """Return the next turn, and whether it was cut off at ``chunk`` tokens; ``None`` never cuts it off."""
        most = params.max_tokens if chunk is None else min(params.max_tokens, chunk)
        asked = params if most == params.max_tokens else replace(params, max_tokens=most)
        if self.manner.candidates:
            asked = replace(asked, candidates=self.manner.candidates, measured_tokens=self.manner.measured_tokens)
        with self.timing.measure("engine"):
            if self.replay is None:
                generation = await self.seat.generate(ids, asked)
            else:
                generation = await self.replay.generate(self.seat, ids, asked)
        full = generation.finish_reason == "length" and len(generation.ids) >= most
        return generation, full and most < params.max_tokens

    def _record(self, episode: Episode, generation: Generation, shared: Turn | None) -> str:
        """Add a turn to the record and return its text. If ``shared`` is set, copy its ``entropy`` and ``stale``.

        Args:
            episode: The record.
            generation: The turn.
            shared: The parent episode's turn, if this turn replays it completely or in part; otherwise ``None``.
        """
        if episode.turns == 0:
            episode.policy_version = generation.policy_version
        start = len(episode.completion_ids)
        _append(episode, generation.ids, 1, generation.logprobs)
        action = self.chat.text(generation.ids)
        episode.act(action, tokens=(start, len(episode.completion_ids)), version=generation.policy_version)
        turn = episode.steps[-1]
        if shared is not None:
            turn.entropy, turn.stale = shared.entropy, shared.stale
        else:
            turn.entropy = turn_entropy(generation, len(self.chat.tokenizer))
            turn.stale = self.two is not None and self.two.was_stale
        return action


def turn_entropy(generation: Generation, vocabulary: int) -> float | None:
    """Return the sum of -p ln p over the candidates of all measured tokens, divided by ln |V|.

    p is a candidate's probability, and |V| the number of tokens in the vocabulary. This is ARPO's measure (arXiv
    2507.19849, section 3.1, and its code). It is a sum, not a mean: 20 tokens of a uniform policy over 10 candidates
    give 20 ln 10 / ln |V|.

    Args:
        generation: A turn.
        vocabulary: Number of tokens in the vocabulary.

    Returns:
        The entropy; ``None`` if no candidates were reported.
    """
    if not generation.candidates:
        return None
    total = -sum(logp * math.exp(logp) for each in generation.candidates for logp in each if math.isfinite(logp))
    return total / math.log(max(2, vocabulary))


def _append(episode: Episode, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    episode.completion_ids += ids
    episode.mask += [mask] * len(ids)
    episode.logprobs += logprobs


def drop_unanswered(episode: Episode) -> None:
    """Remove trailing environment text that the policy did not answer."""
    while episode.mask and not episode.mask[-1]:
        for entries in (episode.completion_ids, episode.mask, episode.logprobs):
            entries.pop()
    if episode.turns and episode.messages[-1].role != "assistant":
        episode.messages.pop()
