"""The result of a verification: ``Verdict`` and its closed list of reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why an answer counts as right or wrong."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NO_ANSWER = "no_answer"
    UNPARSABLE_ANSWER = "unparsable_answer"
    UNPARSABLE_GOLD = "unparsable_gold"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    """A failure of this library: no worker or judge was available. Never the policy's fault."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, why, and which layer decided.

    Attributes:
        correct: Whether the answer equals the gold answer.
        reason: The reason for ``correct``.
        method: The layer that decided ("exact", "number", "symbolic", ...).
        seconds: Wall-clock seconds of the verification.
    """

    correct: bool
    reason: Reason
    method: str
    seconds: float = 0.0

    def record(self) -> dict[str, str]:
        """Return the record for ``info``: ``reason`` and ``method``, without seconds, which differ from run to run."""
        return {"reason": str(self.reason), "method": self.method}
