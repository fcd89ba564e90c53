"""``linear_length``: a penalty that grows with the length of an episode and with the pass rate of its group.

    r = -(pass rate) (output L_out / max L_out + input L_in / max L_in + turns T / max T)

as in prime-rl. L_out is the number of the policy's tokens, L_in the number of all other tokens, and T the number of
turns; each maximum is over the group, and ``output``, ``input`` and ``turns`` are weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rewards.base import REWARDS, Need, RewardContext


@dataclass(frozen=True)
class LinearLength(CheckedOptions):
    """-(pass rate of the group) times a weighted sum of lengths, each as a share of the group's maximum (prime-rl).

    Correct and wrong episodes get the same penalty. A group without a correct episode gets no penalty: attempts at
    unsolved problems may have any length.

    Attributes:
        output: Weight of the policy's tokens.
        input: Weight of all other tokens: the prompt and the observations.
        turns: Weight of the number of policy turns.
    """

    output: float = option(0.25, least=0)
    input: float = option(0.1, least=0)
    turns: float = option(0.1, least=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"group", "tokens"})

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return a penalty from -(``output`` + ``input`` + ``turns``) to 0.

        Raises:
            ConfigurationError: The episode has no token ids, and ``output`` or ``input`` is above 0.
        """
        if not episode.completion_ids and (self.output or self.input):
            raise ConfigurationError(
                "The reward component 'linear_length' counts tokens, but this episode has no token ids: set "
                "output=0 and input=0, or use the component in a trainer."
            )
        rate = sum(one.correct for one in ctx.group) / max(len(ctx.group), 1)
        shares = (
            self.output * _share(episode.policy_tokens, (one.policy_tokens for one in ctx.group)),
            self.input * _share(_read(episode), map(_read, ctx.group)),
            self.turns * _share(episode.turns, (one.turns for one in ctx.group)),
        )
        return -rate * sum(shares)


def _read(episode: Episode) -> int:
    return len(episode.prompt_ids) + len(episode.completion_ids) - episode.policy_tokens


def _share(own: int, every: Iterable[int]) -> float:
    longest = max(every, default=0)
    return own / longest if longest else 0.0


REWARDS.register("linear_length", LinearLength)
