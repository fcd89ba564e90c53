"""``overlong``: a soft punishment for answers close to the limit of tokens (DAPO, arXiv 2503.14476, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, check_options, option
from rstar2_env.core.options.rules import FromRun
from rstar2_env.rewards.base import REWARDS, Need, RewardContext
from rstar2_env.rewards.texts import need_tokens


@dataclass(frozen=True, slots=True)
class Overlong:
    r"""Penalty on length: 0 up to $\text{limit} - \text{buffer}$ tokens, then linear to $-\text{factor}$ at ``limit``.

    The length counts all tokens after the prompt, including the environment's, as the limit does. DAPO uses a
    limit of 20,480 and a buffer of 4,096.

    Attributes:
        limit: Number of tokens at which the penalty is largest; a trainer fills in ``max_episode_tokens``.
        buffer: Number of tokens before the limit over which the penalty grows; ``None`` for ``share`` times the limit.
        share: The buffer as a share of the limit, if ``buffer`` is not set.
        factor: The largest penalty.
    """

    limit: Annotated[Count, FromRun("rollout.max_episode_tokens")]
    buffer: int | None = option(None, least=1)
    factor: float = option(1.0, least=0)
    share: float = option(0.2, above=0, most=1)

    needs: ClassVar[frozenset[Need]] = frozenset({"tokens"})

    def __post_init__(self) -> None:
        """Check that the options are valid and that the buffer is not longer than the limit.

        Raises:
            ConfigurationError: An option is out of its range, or the buffer is longer than the limit.
        """
        check_options(self)
        if self.buffer is not None and self.buffer > self.limit:
            raise ConfigurationError(
                f"In the reward component 'overlong', the buffer ({self.buffer} tokens) must not exceed the "
                f"limit ({self.limit} tokens). If `buffer` is not set, it is `share` times the limit."
            )

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return a number from -factor to 0.

        Raises:
            ConfigurationError: The episode has no token ids, for example because a wrapper of an environment scores it.
        """
        need_tokens(episode, "overlong")
        buffer = self.buffer or max(1, int(self.share * self.limit))
        over = len(episode.completion_ids) - (self.limit - buffer)
        return max(-self.factor, min(-over / buffer * self.factor, 0.0))


REWARDS.register("overlong", Overlong)
