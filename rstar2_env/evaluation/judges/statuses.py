"""``statuses``: a chain is wrong if too many of its tool calls failed. The judge needs no model and reads no text."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.evaluation.judges.base import JUDGES, JudgedChain


@dataclass(frozen=True)
class StatusesJudge(CheckedOptions):
    """A judge that treats a call with an error status as a wrong step.

    Attributes:
        errors: Maximum number of errors in a right chain.
        last: Judge only the last call, which must not be an error; earlier errors, and ``errors``, are ignored.

    Raises:
        ConfigurationError: A number is out of its range.
    """

    errors: int = option(0, least=0)
    last: bool = False

    def __call__(self, chain: JudgedChain) -> bool:
        """Return whether at most ``errors`` calls failed or, with ``last``, whether the last call did not fail."""
        wrong = [status.is_error for status in chain.episode.statuses if status.counts]
        if self.last:
            return not wrong or not wrong[-1]
        return sum(wrong) <= self.errors


JUDGES.register("statuses", StatusesJudge)
