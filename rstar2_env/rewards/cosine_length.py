"""``cosine_length``: right and short earns most, wrong and short costs most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options import Count, check_options
from rstar2_env.rewards.base import REWARDS, Need, RewardContext
from rstar2_env.tools.cut import Tokenizer, make_tokenizer


@dataclass(frozen=True, slots=True)
class CosineLength:
    """Half a cosine over the length of the policy's turns (open-rs): short and right earns most.

    Correct: from ``1`` at length 0 down to ``0.5`` at ``longest``; wrong: from ``-1`` up to ``-0.5``.

    Attributes:
        longest: The length at which the cosine ends, in characters or tokens; beyond it nothing changes.
        tokenizer: Count in its tokens instead of in characters; a tokenizer, or the folder or hub name of one.
        of: ``"text"``, or ``"tokens"`` for those that the policy wrote, as open-rs does; a trainer has them.
    """

    longest: Count
    tokenizer: Tokenizer | str | None = None
    of: Literal["text", "tokens"] = "text"

    @property
    def needs(self) -> frozenset[Need]:
        """The tokens, where they are counted."""
        return frozenset({"tokens"}) if self.of == "tokens" else frozenset()

    def __post_init__(self) -> None:
        """Load a tokenizer given by name.

        Raises:
            ConfigurationError: There is none of that name, or ``longest`` is not positive.
        """
        check_options(self)
        object.__setattr__(self, "tokenizer", make_tokenizer(self.tokenizer))

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """The score; it includes the verdict, so leave out the environment's own reward beside it."""
        texts = [message.content for message in episode.messages if message.role == "assistant"]
        if self.of == "tokens":
            length = episode.policy_tokens
        elif self.tokenizer is None or isinstance(self.tokenizer, str):
            length = sum(map(len, texts))
        else:
            length = sum(len(self.tokenizer.encode(text, add_special_tokens=False)) for text in texts)
        start, end = (1.0, 0.5) if episode.correct else (-1.0, -0.5)
        share = min(length / self.longest, 1.0)
        return end + 0.5 * (start - end) * (1 + math.cos(math.pi * share))


REWARDS.register("cosine_length", CosineLength)
