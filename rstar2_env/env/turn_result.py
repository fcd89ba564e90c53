"""The outcome of a turn without a tool call: the episode ends or continues.

``ToolEnv.answer_turn`` returns ``Ended`` or ``GoesOn``; a user's environment may override this method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import gymnasium as gym

from rstar2_env.core.status import ToolStatus

TextEnv: TypeAlias = gym.Env[str, str]
"""An environment whose observations and actions are texts."""

StepReturn: TypeAlias = "tuple[str, float, bool, bool, dict[str, Any]]"
"""The result of ``step``: text, reward, ``terminated``, ``truncated``, ``info``."""


def call_counts(statuses: Iterable[ToolStatus]) -> dict[str, int]:
    """Return two keys of ``info``: ``tool_errors`` (failed calls) and ``tool_calls_total`` (see ``ToolStatus.counts``).

    Args:
        statuses: Statuses of the calls, without injected faults.
    """
    own = list(statuses)
    errors, calls = sum(status.is_error for status in own), sum(status.counts for status in own)
    return {"tool_errors": errors, "tool_calls_total": calls}


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a turn that ends the episode.

    Attributes:
        answer: The answer that was graded, or ``None``.
        reward: The reward of the episode.
        correct: Whether the episode counts as solved.
        end: ``"answered"`` or ``"no_answer"`` (``terminated``), or ``"unavailable"`` if grading failed for reasons
            outside the policy (``truncated``).
        info: Keys to add to ``info``, in addition to the keys that ``ToolEnv`` sets.
    """

    answer: str | None
    reward: float = 0.0
    correct: bool = False
    end: Literal["answered", "no_answer", "unavailable"] = "answered"
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Result of a turn after which the episode continues, unless a budget is exhausted.

    Attributes:
        text: The next observation.
        info: Keys to add to ``info``, in addition to the keys that ``ToolEnv`` sets.
    """

    text: str
    info: Mapping[str, Any] = field(default_factory=dict)
