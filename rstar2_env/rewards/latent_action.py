"""``latent_action``: rewards a thought for raising the likelihood of the expert's next line (RA3, arXiv 2509.25810).

    r = log p(a | s, z) - log p(a | s, <act>) - cost * 1[z is a thought]

The state s is the problem as shown: the question and the expert's lines so far. The policy writes a latent z:
``<act>``, to continue directly, or ``<think>`` and one line of thought, which states the purpose of the next lines. The
gold answer a is the expert's next line; log p(a | ...) is summed over its tokens, under the policy being trained. The
second term is equal for a whole group and removes the difficulty of the state, so that ``<act>`` earns 0. Each thought
costs ``cost``. The paper uses 0.05; with 0.01 the policy always thinks, with 0.2 almost never. A large cost reduces the
method to next-token prediction. Example: if p(a) is 0.5 after ``<act>`` and 0.8 after the thought, the thought earns
log 1.6 - 0.05 = 0.42; a thought without effect earns -0.05. Not covered: a separate prior distribution of latents.

The module computes the log-probability of the expert's line twice: after the policy's latent, and after ``<act>``.
"""

# This module is longer than most parts because it computes two likelihoods of the same line.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rewards.base import REWARDS, Need, RewardContext, problem_of
from rstar2_env.rewards.texts import last_turn, split_ids

ACT, THINK = "<act>", "<think>"


class TokenScorer(Protocol):
    """Computes log-probabilities of token ids; see ``LanguageModel``."""

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each id in ``ids``, given ``prompt_ids`` and the preceding ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        ...


@dataclass(frozen=True)
class LatentAction(CheckedOptions):
    """Gain in likelihood of the expert's next line due to a thought, minus a cost (RA3, arXiv 2509.25810).

    Attributes:
        cost: Amount that is subtracted for a thought, in nats.
    """

    cost: float = option(0.05, least=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"lm", "problem", "tokens"})

    async def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the score; 0 if the policy does not think."""
        line = problem_of(ctx, "latent_action").answer
        assert ctx.lm is not None  # guaranteed by ``needs``
        latent = latent_of(last_turn(episode))
        if latent == ACT:
            return 0.0
        thought = await log_likelihood(ctx.lm, episode.prompt_ids, latent, line)
        return thought - await log_likelihood(ctx.lm, episode.prompt_ids, ACT, line) - self.cost


def latent_of(text: str) -> str:
    """Return the latent of a turn: its first line if that is ``<think>`` with a thought after it, else ``<act>``."""
    first = text.strip().partition("\n")[0].strip()
    return first if first.startswith(THINK) and first != THINK else ACT


async def log_likelihood(lm: TokenScorer, prompt_ids: Sequence[int], latent: str, line: str) -> float:
    """Return the log-probability, in nats, of the expert's next line after a latent (``<act>`` or a thought).

    Args:
        lm: The policy.
        prompt_ids: The state s: all token ids before the policy's turn.
        latent: The latent, from ``latent_of``.
        line: The expert's next line; the result is the sum over its tokens.
    """
    before, own = split_ids(lm.encode, f"{latent}\n", line)
    return sum(await lm.score([*prompt_ids, *before], own))


REWARDS.register("latent_action", LatentAction)
