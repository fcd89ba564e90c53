"""The options of a verification, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypedDict

from rstar2_env.core.errors import ConfigurationError

TIMEOUT_S = 1.0
"""Default deadline of one verification, in seconds of a worker's time."""

KINDS = ("auto", "number", "choice", "words")
"""The values of ``kind``."""

UNDONE = ("none", "arithmetic", "any")
"""The values of ``undone``."""


class OptionFields(TypedDict, total=False):
    """The fields of ``Options`` as arguments by name, for functions that take them all."""

    kind: str
    tolerance: float | None
    strict: bool
    undone: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify.

    Attributes:
        kind: How to read both texts: "auto", "number" (plain numbers only), "choice" (a letter) or "words".
        tolerance: Relative tolerance between numbers; ``None`` compares exactly.
        strict: Apply the default rules of docs/verification.md; ``False`` applies the lenient ones.
        undone: How much work an answer may leave undone: "none", "arithmetic" (sums, products, powers and roots of
            numbers) or "any".
        timeout: Seconds that a worker may compute. Exact text and plain numbers need no worker.
    """

    kind: str = "auto"
    tolerance: float | None = None
    strict: bool = True
    undone: str = "arithmetic"
    timeout: float = TIMEOUT_S

    def __post_init__(self) -> None:
        """Refuse options that mean nothing.

        Raises:
            ConfigurationError: An option is not one of its values, or out of its range.
        """
        if self.kind not in KINDS:
            raise ConfigurationError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {self.kind!r}.")
        if self.undone not in UNDONE:
            raise ConfigurationError(f"undone must be one of {', '.join(map(repr, UNDONE))}, not {self.undone!r}.")
        if self.tolerance is not None and not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ConfigurationError(f"tolerance must be a number of at least 0, or None, not {self.tolerance!r}.")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ConfigurationError(f"timeout must be a positive number of seconds, not {self.timeout!r}.")

    def request(self, gold: str, answer: str, question: str | None) -> dict[str, Any]:
        """The request that a worker reads, as a JSON object.

        Args:
            gold: The gold answer.
            answer: The answer to grade.
            question: The question, if echoes of it are to be refused.
        """
        return {
            "gold": gold,
            "answer": answer,
            "question": question,
            "kind": self.kind,
            "tolerance": self.tolerance,
            "strict": self.strict,
            "undone": self.undone,
            "timeout": self.timeout,
        }


DEFAULTS = Options()
