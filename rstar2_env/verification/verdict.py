"""``Verdict``: the result of a verification; ``Reason``: the closed list of its reasons."""

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
    """No worker or judge was available: a failure of the infrastructure, never the policy's fault."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification: whether an answer is right, why, and which method decided.

    Attributes:
        correct: Whether the answer equals the gold answer.
        reason: The reason for ``correct``.
        method: Name of the method that decided ("exact", "number", "symbolic", ...).
        seconds: Wall-clock seconds of the verification.
    """

    correct: bool
    reason: Reason
    method: str
    seconds: float = 0.0

    def record(self) -> dict[str, str]:
        """Return the verdict as stored in a step's ``info``: without the seconds, which differ from run to run."""
        return {"reason": str(self.reason), "method": self.method}
