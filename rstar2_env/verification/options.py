"""``VerifyOptions``: the options of a verification, checked when they are created."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypedDict

from rstar2_env.core.options.declare import check_options, option

TIMEOUT_S = 1.0
"""Default deadline of one verification, in seconds of a worker's time."""

KINDS = ("auto", "number", "choice", "words")
"""The allowed values of ``VerifyOptions.kind``."""

UNDONE = ("none", "arithmetic", "any")
"""The allowed values of ``VerifyOptions.undone``."""


class OptionFields(TypedDict, total=False):
    """Types of the fields of ``VerifyOptions``, for functions that take them as keyword arguments."""

    kind: str
    tolerance: float | None
    strict: bool
    undone: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of a verification.

    Attributes:
        kind: How to read both texts: "auto", "number" (plain numbers only), "choice" (a letter) or "words".
        tolerance: Relative tolerance between numbers; ``None`` compares exactly.
        strict: Whether to apply the strict rules of docs/verification-rules.md, or the lenient ones.
        undone: How much uncomputed work an answer may contain if the gold answer contains none: "none", "arithmetic"
            (sums, products, powers and roots of numbers) or "any".
        timeout_s: Seconds that a worker may compute. Exact text and plain numbers need no worker.
    """

    kind: str = option("auto", choices=KINDS)
    tolerance: float | None = option(None, least=0)
    strict: bool = True
    undone: str = option("none", choices=UNDONE)
    timeout_s: float = option(TIMEOUT_S, above=0, unit="seconds")

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: An option is not among its allowed values, or is out of its range.
        """
        check_options(self)

    def request(self, gold: str, answer: str, question: str | None) -> dict[str, Any]:
        """Return a request to a worker, as a JSON object.

        Args:
            gold: The gold answer.
            answer: The answer to grade.
            question: The question, to refuse answers copied from it; ``None`` accepts them.
        """
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"gold": gold, "answer": answer, "question": question, **own}


DEFAULTS = VerifyOptions()
