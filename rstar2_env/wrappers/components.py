"""Scores for ``RewardShaping`` from the literature; each is opt-in, and none is part of an environment's own reward.

Covered: rewards that one episode decides (lengths, tool use). Not covered: those that compare a group's episodes
(Kimi's length reward, LASER's adaptive targets). rStar2's authors found that penalising tool errors in the reward
hurts; no score here does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.options import Count, check_options
from rstar2_env.core.own_code import Shape, is_class_with
from rstar2_env.core.registry import Registry
from rstar2_env.tools.cut import Tokenizer, make_tokenizer

Score: TypeAlias = Callable[[Episode, Mapping[str, Any]], float]
"""Scores the episode so far; the mapping is the ``info`` of its last step. ``episode.reward`` is the environment's own
return. Must be a function of a module, or a frozen dataclass with ``__call__``, for the environment to be pickled."""

COMPONENTS: Registry[Callable[..., Score]] = Registry(
    "reward component",
    entry_points="rstar2_env.rewards",
    shape=Shape(is_class_with("__call__"), "a class whose objects are called with (episode, info)"),
)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A bonus for each tool call, up to a maximum: ``min(most, base + each * calls)`` (AgentMath; gate it "correct").

    Attributes:
        each: For one call that counts.
        base: In any case.
        most: The highest bonus.
    """

    each: float = 0.02
    base: float = 0.0
    most: float = 0.1

    def __call__(self, episode: Episode, info: Mapping[str, Any]) -> float:
        """The bonus."""
        return min(self.most, self.base + self.each * episode.tool_calls)


@dataclass(frozen=True, slots=True)
class WrongByTurns:
    """What a wrong answer costs, less the more turns were tried (GRPO-TCR; use it gated "wrong").

    ``min(-0.6, -1 + 0.1 * (turns - 2) / 2)``, where turns are those of both sides: -1 at 2, -0.8 at 6, -0.6 from 10 on.
    """

    def __call__(self, episode: Episode, info: Mapping[str, Any]) -> float:
        """From -1 to -0.6."""
        turns = max(2, 2 * episode.turns)
        return min(-0.6, -1 + 0.1 * (turns - 2) / 2)


@dataclass(frozen=True, slots=True)
class CosineLength:
    """Half a cosine over the length of the policy's turns (open-rs): short and right earns most.

    Correct: from ``1`` at length 0 down to ``0.5`` at ``longest``; wrong: from ``-1`` up to ``-0.5``.

    Attributes:
        longest: The length at which the cosine ends, in characters or tokens; beyond it nothing changes.
        tokenizer: Count in its tokens instead of in characters; a tokenizer, or the folder or hub name of one.
    """

    longest: Count
    tokenizer: Tokenizer | str | None = None

    def __post_init__(self) -> None:
        """Load a tokenizer given by name.

        Raises:
            ConfigurationError: There is none of that name, or ``longest`` is not positive.
        """
        check_options(self)
        object.__setattr__(self, "tokenizer", make_tokenizer(self.tokenizer))

    def __call__(self, episode: Episode, info: Mapping[str, Any]) -> float:
        """The score; it includes the verdict, so set ``task_weight=0`` beside it."""
        texts = [message.content for message in episode.messages if message.role == "assistant"]
        if self.tokenizer is None or isinstance(self.tokenizer, str):
            length = sum(map(len, texts))
        else:
            length = sum(len(self.tokenizer.encode(text, add_special_tokens=False)) for text in texts)
        start, end = (1.0, 0.5) if episode.correct else (-1.0, -0.5)
        share = min(length / self.longest, 1.0)
        return end + 0.5 * (start - end) * (1 + math.cos(math.pi * share))


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """1 when exactly one answer was marked, else 0."""

    def __call__(self, episode: Episode, info: Mapping[str, Any]) -> float:
        """1 or 0."""
        return float(episode.answer_tags == 1)


COMPONENTS.register("answer_format", AnswerFormat)
COMPONENTS.register("cosine_length", CosineLength)
COMPONENTS.register("tool_use", ToolUse)
COMPONENTS.register("wrong_by_turns", WrongByTurns)
