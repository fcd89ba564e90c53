"""The interface of verifiers, and verifiers that apply the rules, with or without a numeric tolerance.

A verifier is called with a gold answer, an answer and optionally the question, from any thread, and returns a
:class:`~rstar2_env.verification.verdict.Verdict`. The model judge is in ``model``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from rstar2_env.verification.api import verify_with
from rstar2_env.verification.options import TIMEOUT_S, VerifyOptions
from rstar2_env.verification.verdict import Verdict


@runtime_checkable
class Verifier(Protocol):
    """Interface of every verifier. It may be called from any thread; no text makes it raise an exception."""

    def __call__(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """Compare ``answer`` with the gold answer to ``question``.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` and blank text give the reason ``no_answer``.
            question: The question, if it is known.
        """
        ...

    async def acall(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """Compare an answer as ``__call__`` does, without blocking the event loop; by default, in a thread.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` and blank text give the reason ``no_answer``.
            question: The question, if it is known.
        """
        import asyncio  # callers of this have it loaded already; other imports stay fast

        return await asyncio.to_thread(self, gold, answer, question)


@dataclass(frozen=True, slots=True)
class RuleVerifier(Verifier):
    """A verifier that applies the rules of docs/verification-rules.md, with chosen options.

    Attributes:
        options: The options of the comparison.
        guard_echo: Whether an expression copied from the question gets the reason ``no_answer``.
    """

    options: VerifyOptions = field(default_factory=VerifyOptions)
    guard_echo: bool = True

    def __call__(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """Verify by the rules.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` and blank text give the reason ``no_answer``.
            question: The question; used only with ``guard_echo``.
        """
        return verify_with(self.options, gold, answer, question if self.guard_echo else None)


def numeric(tolerance: float = 0.01, *, strict: bool = True, timeout_s: float = TIMEOUT_S) -> RuleVerifier:
    """Create a verifier for measured or computed numbers, as in physics, with a relative tolerance.

    An answer with a different unit than the gold answer is converted or refused; an answer without a unit is accepted.

    Args:
        tolerance: Largest error relative to the gold number (absolute if the gold number is zero).
        strict: Whether to apply the strict rules, or the lenient ones.
        timeout_s: Seconds that a worker may compute.

    Raises:
        ConfigurationError: The tolerance or the timeout is out of its range.
    """
    return RuleVerifier(VerifyOptions(tolerance=tolerance, strict=strict, timeout_s=timeout_s))
