"""``call_penalty``: turns whose calls did not run or failed get a fixed advantage, as in NeMo-RL.

A fixed number (NeMo-RL's ``invalid_tool_call_advantage``, -5 in its examples) replaces the advantage of the tokens of
such a turn, or is added to it; all other tokens keep the advantage of another estimator. The penalty depends only on
the statuses of the calls, so it works in every environment with tools. Use it if a policy keeps writing calls that do
not parse. rStar2's authors found that a reward penalty for failing programs hurts, so ``failed`` is off by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray
from .tokens import on_tokens
from .wrapped import Wrapped


@dataclass(frozen=True)
class CallPenalty(Wrapped):
    """Advantages of the inner estimator ``of``, changed by a fixed penalty for turns with malformed or failed calls.

    The advantage of a token in such a turn is the penalty $P$ with ``how=set``, and $A + P$ with ``how=add``, where $A$
    is the inner advantage. Injected faults and ``unavailable`` calls are not the policy's errors and are not penalized.
    If a turn has several bad calls, the lowest of their penalties is used. If a selector rejects groups with equal
    rewards, the penalties in these groups have no effect.

    Args:
        of: The inner estimator, written as in a recipe: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
        malformed: Penalty, at most 0, of a turn with a call that did not run: a malformed call, an unknown tool, or
            invalid arguments; ``None`` does not penalize such turns.
        failed: Penalty, at most 0, of a turn with a call that had any other error; ``None`` does not penalize such
            turns.
        how: ``"set"`` replaces the advantage with the penalty, as in NeMo-RL; ``"add"`` adds the penalty to the
            advantage.
    """

    malformed: float | None = option(-5.0, most=0)
    failed: float | None = option(None, most=0)
    how: Literal["set", "add"] = "set"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        return [
            [self._penalized(value, episode) for episode, value in zip(group, own, strict=True)]
            for group, own in zip(groups, self.inner(groups, ranks), strict=True)
        ]

    def _penalized(self, value: float | FloatArray, episode: Episode) -> float | FloatArray:
        found = [(turn, number) for turn in episode.steps if (number := self._number(turn)) is not None]
        if not found:
            return value
        values = on_tokens(value, episode)
        for turn, number in found:
            values[turn.start : turn.stop] = number + (values[turn.start : turn.stop] if self.how == "add" else 0.0)
        return values

    def _number(self, turn: Turn) -> float | None:
        own = [self.malformed if did_not_run(status) else self.failed for status in turn.statuses if status.is_error]
        return min((number for number in own if number is not None), default=None)


def did_not_run(status: ToolStatus) -> bool:
    """Return whether a call was rejected before anything ran, because it was not a valid call."""
    return status in (ToolStatus.MALFORMED, ToolStatus.UNKNOWN_TOOL, ToolStatus.INVALID_ARGUMENTS)


ADVANTAGES.register("call_penalty", CallPenalty)
