"""Graders: how an environment decides whether an answer is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem
from rstar2_env.verification import Verdict, verify

Grader = Callable[[Problem, str], Verdict]
"""Says whether an answer solves a problem: ``grader(problem, answer)``. Pickled with the environment."""


@dataclass(frozen=True, slots=True)
class GoldGrader:
    """Right is what equals the problem's gold answer, as ``verify`` sees it; an echo of the question is no answer.

    Args:
        timeout: Seconds that one comparison may take.

    Raises:
        ConfigurationError: The timeout is not positive.
    """

    timeout: float = 5.0

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ConfigurationError(f"verify_timeout must be a positive number of seconds, not {self.timeout!r}.")

    def __call__(self, problem: Problem, answer: str) -> Verdict:
        """Compare with the gold answer."""
        return verify(problem.answer, answer, question=problem.question, timeout=self.timeout)
