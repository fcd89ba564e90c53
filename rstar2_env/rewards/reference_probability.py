"""``reference_probability``: rewards reasoning that raises the gold answer's probability (RLPR, arXiv 2506.18254).

    r = max(0, PR(gold after the policy's own reasoning) - PR(gold directly after the prompt))

PR is the mean of the probabilities of the gold answer's tokens, not their product, which a single token could dominate.
The gold answer replaces the answer in the policy's last turn; an episode without an answer earns 0. The second term is
the probability without reasoning. No verifier is needed, so the reward also works for answers that are texts. The paper
trains on 0.9 r + 0.1 format, and drops groups whose rewards deviate too little (``selector=deviation``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.rewards.base import REWARDS, LanguageModel, Need, RewardContext, problem_of
from rstar2_env.rewards.texts import last_turn, split_ids


@dataclass(frozen=True)
class ReferenceProbability(CheckedOptions):
    """Increase of the mean probability of the gold answer's tokens due to the reasoning (RLPR, arXiv 2506.18254).

    Attributes:
        lead: Text before the answer; the default fits the ``rstar2`` dialect.
        debias: Subtract the probability without reasoning, as the paper does.
    """

    lead: str = "<answer>\\boxed{"
    debias: bool = True

    needs: ClassVar[frozenset[Need]] = frozenset({"lm", "problem", "tokens"})

    async def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return a number from 0 to 1: the increase of the gold answer's probability due to the reasoning.

        Without ``debias``, return the probability after the reasoning. An episode without the text ``lead`` in its
        last turn earns 0.
        """
        gold = problem_of(ctx, "reference_probability").answer
        assert ctx.lm is not None  # guaranteed by ``needs``
        reasoning, found, _ = last_turn(episode).rpartition(self.lead)
        if not found or not episode.steps:
            return 0.0
        history = [*episode.prompt_ids, *episode.completion_ids[: episode.steps[-1].start]]
        thought = await self._probability(ctx.lm, history, f"{reasoning}{self.lead}", gold)
        if not self.debias:
            return thought
        return max(0.0, thought - await self._probability(ctx.lm, episode.prompt_ids, self.lead, gold))

    async def _probability(self, lm: LanguageModel, ids: Sequence[int], lead: str, gold: str) -> float:
        """Return the mean probability of the gold answer's tokens after the token ids and the text ``lead``."""
        before, own = split_ids(lm.encode, lead, gold)
        logps = await lm.score([*ids, *before], own)
        return sum(map(math.exp, logps)) / max(len(logps), 1)


REWARDS.register("reference_probability", ReferenceProbability)
