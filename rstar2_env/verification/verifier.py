"""Verifiers as objects that an environment can be given: rules, rules with a tolerance, a model.

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
    """The interface of every verifier: safe to call from any thread, and no text makes it raise."""

    def __call__(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """Say whether ``answer`` is the gold answer to ``question``.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` or blank is ``no_answer``.
            question: The question, where it is known.
        """
        ...

    async def acall(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """The same as ``__call__``, without blocking the event loop.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` or blank is ``no_answer``.
            question: The question, where it is known.
        """
        ...


@dataclass(frozen=True, slots=True)
class RuleVerifier:
    """The rules of docs/verification.md, with chosen options.

    Attributes:
        options: How to verify.
        guard_echo: Whether an expression copied out of the question counts as no answer.
    """

    options: VerifyOptions = field(default_factory=VerifyOptions)
    guard_echo: bool = True

    def __call__(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """Verify by the rules.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` or blank is ``no_answer``.
            question: The question; used only with ``guard_echo``.
        """
        return verify_with(self.options, gold, answer, question if self.guard_echo else None)

    async def acall(self, gold: str, answer: str | None, question: str | None = None) -> Verdict:
        """Verify by the rules, without blocking the event loop.

        Args:
            gold: The gold answer.
            answer: The policy's answer; ``None`` or blank is ``no_answer``.
            question: The question; used only with ``guard_echo``.
        """
        import asyncio  # callers of this have it loaded already; other imports stay fast

        return await asyncio.to_thread(self, gold, answer, question)


def numeric(tolerance: float = 0.01, *, strict: bool = True, timeout: float = TIMEOUT_S) -> RuleVerifier:
    """A verifier for measured or computed numbers, as in physics: right within a relative tolerance.

    Units still count: a missing one is accepted, a different one is converted or refused.

    Args:
        tolerance: Largest error relative to the gold number (absolute where that is zero).
        strict: As in :class:`~rstar2_env.verification.options.VerifyOptions`.
        timeout: Seconds that a worker may compute.

    Raises:
        ConfigurationError: The tolerance or the timeout is out of its range.
    """
    return RuleVerifier(VerifyOptions(tolerance=tolerance, strict=strict, timeout=timeout))
