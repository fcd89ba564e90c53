"""``call_penalty``: turns whose calls did not run, or failed, get an advantage of their own, as in NeMo-RL.

The tokens of a turn with such a call get the number that is set for it (NeMo-RL's ``invalid_tool_call_advantage``, -5
in its examples), or it is added to what another estimator gives them; all other tokens keep their advantage. It goes by
the statuses of the calls, so it works in every environment with tools. Choose it where a policy keeps writing calls
that do not parse. rStar2's authors found that a penalty for failing programs in the reward hurts, so that is off.
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
    """Another estimator's advantages, but for turns with malformed or failed calls, which get one of their own.

    Injected faults are not the policy's and ``unavailable`` calls are nobody's: neither is penalized. Of several calls
    in a turn, the lowest number counts. A selector that rejects groups of equal rewards leaves their penalties out.

    Args:
        of: The other estimator, as a recipe names it: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
        malformed: For calls that did not run: malformed ones, unknown tools, arguments that do not fit; ``None`` leaves
            them alone.
        failed: For calls that ran into any other error; ``None`` leaves them alone.
        how: Whether the number is ``"set"``, as in NeMo-RL, or ``"add"``-ed.
    """

    malformed: float | None = option(-5.0, most=0)
    failed: float | None = option(None, most=0)
    how: Literal["set", "add"] = "set"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
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
    """Whether a call was refused before anything ran: the policy wrote no valid call."""
    return status in (ToolStatus.MALFORMED, ToolStatus.UNKNOWN_TOOL, ToolStatus.INVALID_ARGUMENTS)


ADVANTAGES.register("call_penalty", CallPenalty)
