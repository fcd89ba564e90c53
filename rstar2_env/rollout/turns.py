"""``Turns``: the turns of one episode, policy and environment after one another, until something ends it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.manner import OPEN
from rstar2_env.rollout.asked_turns import AskedTurns
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import SamplingParams
from rstar2_env.rollout.env_pool import LentEnv
from rstar2_env.rollout.reply import OneReply
from rstar2_env.rollout.request import Budget
from rstar2_env.rollout.spent import Spent
from rstar2_env.rollout.written import extend


@dataclass(frozen=True, slots=True)
class Turns:
    """What the turns of an episode are played with.

    Attributes:
        env: The environment, after its ``reset``.
        asked: Asks the policy.
        chat: Renders the conversation as ids.
        budget: Limits of the episode.
        spent: Adds up where the time goes.
    """

    env: LentEnv | OneReply
    asked: AskedTurns
    chat: ChatCodec
    budget: Budget
    spent: Spent

    async def play(self, episode: Episode, sampling: SamplingParams, seed: int | None) -> None:
        """Play until the environment, a budget or the manner ends it.

        Args:
            episode: The record, which has its prompt.
            sampling: How to sample; ``max_tokens`` and ``seed`` are set for each turn.
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
            generation = await self.asked.generate(episode.played_ids + episode.completion_ids, params)
            if episode.turns == 0:
                episode.policy_version = generation.policy_version
            start = len(episode.completion_ids)
            extend(episode, generation.ids, 1, generation.logprobs)
            action = self.chat.text(generation.ids)
            episode.act(action, tokens=(start, len(episode.completion_ids)), version=generation.policy_version)
            self.asked.measure(episode.steps[-1], generation, len(self.chat.tokenizer))
            if generation.finish_reason == "length" and len(episode.completion_ids) >= most:
                episode.end = "tokens"
                return
            if self.asked.cut:
                episode.end = OPEN
                return
            with self.spent.in_environment():
                text, reward, terminated, truncated, info = await self.env.step(action)
            if episode.observe(reward, terminated, truncated, info):
                return
            ended = bool(generation.ids) and generation.ids[-1] in self.chat.stop_ids
            suffix = self.chat.suffix(str(info.get("role", "user")), text, ended=ended)
            # What the environment showed and the policy could not answer any more is left out of the record.
            if len(episode.completion_ids) + len(suffix) >= most:
                episode.end = "tokens"
                return
            if episode.turns >= self.budget.turns:
                episode.end = "turns"
                return
            episode.show(text, info)
            extend(episode, suffix, 0, [0.0] * len(suffix))
            if self.asked.chunk_ended:
                episode.end = OPEN
                return
