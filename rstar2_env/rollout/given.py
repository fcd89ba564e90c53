"""``Given``: turns that somebody else wrote stand in for the engine's, so that an environment plays and grades them."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Generation, SamplingParams


class Given:
    """Gives one turn after the other, as tokens with their end-of-turn token and without log-probabilities.

    Args:
        turns: The turns as text.
        chat: Turns them into ids.
    """

    def __init__(self, turns: Sequence[str], chat: ChatCodec) -> None:
        self._turns, self._chat, self._next = list(turns), chat, 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """See ``Seat``.

        Raises:
            ConfigurationError: There is no turn left, or no room for it.
        """
        if self._next == len(self._turns):
            raise ConfigurationError(
                f"An episode of {len(self._turns)} given turns goes on after the last of them: the environment answers "
                "it instead of ending. Give the turns of a whole episode, the answer in the environment's own form."
            )
        own = self._chat.turn(self._turns[self._next])
        if len(own) > params.max_tokens:
            raise ConfigurationError(
                f"Turn {self._next + 1} of an episode that is given has {len(own)} tokens, and there is room for "
                f"{params.max_tokens}: raise max_turn_tokens or max_episode_tokens, or leave the episode out."
            )
        self._next += 1
        return Generation(own, [0.0] * len(own), "stop", 0)
