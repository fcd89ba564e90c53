"""The outcome of a turn without a tool call: the episode ends or continues.

``ToolEnv.answer_turn`` returns one of the two; an environment of one's own overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Step: TypeAlias = "tuple[str, float, bool, bool, dict[str, Any]]"
"""What ``step`` returns: text, reward, ``terminated``, ``truncated``, ``info``."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn ends the episode.

    Attributes:
        answer: The answer that was graded, or ``None``.
        reward: What it earns.
        correct: Whether it counts as solved.
        end: ``"answered"`` or ``"no_answer"`` (``terminated``), or ``"unavailable"`` where grading failed for reasons
            outside the policy (``truncated``).
        info: What ``info`` says beside the keys of the contract.
    """

    answer: str | None
    reward: float = 0.0
    correct: bool = False
    end: Literal["answered", "no_answer", "unavailable"] = "answered"
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GoesOn:
    """The episode goes on, unless a budget is spent.

    Attributes:
        text: What the policy is shown next.
        info: What ``info`` says beside the keys of the contract.
    """

    text: str
    info: Mapping[str, Any] = field(default_factory=dict)
