"""``cosine_length``: short correct answers earn most, short wrong answers cost most (open-rs, arXiv 2503.16219).

    r = end + (start - end) (1 + cos(pi min(L / longest, 1))) / 2

with start 1 and end 0.5 for a correct answer, and start -1 and end -0.5 for a wrong one. L is the number of policy
tokens, as in open-rs. A wrapper has no policy tokens, so set ``of="text"`` there to count characters, or ``tokenizer``
to tokenize the text again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import Count, check_options
from rstar2_env.rewards.base import REWARDS, Need, RewardContext
from rstar2_env.tools.cut import Tokenizer, make_tokenizer


@dataclass(frozen=True, slots=True)
class CosineLength:
    """A score that follows half a cosine as the policy's turns become longer (open-rs, arXiv 2503.16219).

    Correct: from ``1`` at length 0 down to ``0.5`` at ``longest``; wrong: from ``-1`` up to ``-0.5``.

    Attributes:
        longest: The length at which the cosine ends, in tokens or characters; beyond it, the score is constant.
        of: ``"tokens"`` counts policy tokens, as open-rs does, and works only in training and in an evaluation of a
            model; ``"text"`` counts the characters of the policy's turns.
        tokenizer: A tokenizer, or its folder or hub name. If it is set, it counts the tokens of the policy's turns, and
            ``of`` is ignored.
    """

    longest: Count
    of: Literal["text", "tokens"] = "tokens"
    tokenizer: Tokenizer | str | None = None

    @property
    def needs(self) -> frozenset[Need]:
        """The needed inputs: ``tokens`` if the length is counted in policy tokens; otherwise none."""
        return frozenset({"tokens"}) if self._counts_tokens else frozenset()

    @property
    def _counts_tokens(self) -> bool:
        return self.of == "tokens" and self.tokenizer is None

    def __post_init__(self) -> None:
        """Load a tokenizer given by name.

        Raises:
            ConfigurationError: The tokenizer does not exist, or ``longest`` is not positive.
        """
        check_options(self)
        object.__setattr__(self, "tokenizer", make_tokenizer(self.tokenizer))

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the score; recipes use this component instead of ``return``."""
        texts = [message.content for message in episode.messages if message.role == "assistant"]
        if self._counts_tokens:
            length = episode.policy_tokens
        elif self.tokenizer is None or isinstance(self.tokenizer, str):
            length = sum(map(len, texts))
        else:
            length = sum(len(self.tokenizer.encode(text, add_special_tokens=False)) for text in texts)
        start, end = (1.0, 0.5) if episode.correct else (-1.0, -0.5)
        share = min(length / self.longest, 1.0)
        return end + 0.5 * (start - end) * (1 + math.cos(math.pi * share))


REWARDS.register("cosine_length", CosineLength)
