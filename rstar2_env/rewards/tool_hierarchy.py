"""``tool_hierarchy``: format first, then the answer, then the use of several tools (Tool-Star, arXiv 2505.16410).

A broken format earns -1. Otherwise, the reward is the answer's score s, plus 0.1 if s > 0 and two different tools were
called. The format is broken unless exactly one answer was marked and every call could be parsed. ARPO uses the same
reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, Count
from rstar2_env.core.status import ToolStatus
from rstar2_env.rewards.base import REWARDS, Need, RewardContext, problem_of
from rstar2_env.rewards.text_metrics import word_f1

_NOT_CALLED = (ToolStatus.MALFORMED, ToolStatus.UNKNOWN_TOOL)


@dataclass(frozen=True)
class ToolHierarchy(CheckedOptions):
    """-1 for a broken format, else the answer's score and a bonus for several tools (Tool-Star, arXiv 2505.16410).

    Attributes:
        score: The answer's score: ``"exact"`` is the environment's verdict (1 or 0), for problems such as mathematics;
            ``"f1"`` is the overlap of words with the gold answer, for questions whose answer is a text.
        broken: Reward of an episode with a broken format.
        bonus: Bonus for an answer with a positive score in an episode that called ``tools`` different tools.
        tools: Number of different tools that an episode must call to earn the bonus.
    """

    score: Literal["exact", "f1"] = "exact"
    broken: float = -1.0
    bonus: float = 0.1
    tools: Count = 2

    @property
    def needs(self) -> frozenset[Need]:
        """The needed inputs: ``problem`` if ``score`` is ``"f1"``; otherwise none."""
        return frozenset() if self.score == "exact" else frozenset({"problem"})

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the reward; recipes use this component instead of ``return``."""
        if episode.answer_tags != 1 or ToolStatus.MALFORMED in episode.statuses:
            return self.broken
        if self.score == "exact":
            score = float(episode.correct)
        else:
            score = word_f1(episode.answer or "", problem_of(ctx, "tool_hierarchy").answer)
        return score + self.bonus * (score > 0 and len(_called(episode)) >= self.tools)


def _called(episode: Episode) -> set[str]:
    calls = [call for turn in episode.steps for call in turn.info.get("tool_calls", ())]
    return {str(call.get("name")) for call in calls if ToolStatus(call["status"]) not in _NOT_CALLED}


REWARDS.register("tool_hierarchy", ToolHierarchy)
