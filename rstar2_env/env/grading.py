"""Graders: how an environment decides whether an answer is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rstar2_env.core.options.declare import Seconds, check_option
from rstar2_env.problems import Problem
from rstar2_env.verification import Verdict
from rstar2_env.verification.named import VerifierSpec, make_verifier
from rstar2_env.verification.verifier import Verifier

Grader = Callable[[Problem, str], Verdict]
"""Says whether an answer solves a problem: ``grader(problem, answer)``. Pickled with the environment."""


@dataclass(frozen=True, slots=True)
class GoldGrader:
    """Grades an answer by comparing it with the problem's gold answer.

    Args:
        timeout: Seconds that one comparison by rules may take.
        verifier: A verifier, or how it is written: ``"rules"`` (an echo of the question is no answer),
            ``"numeric:tolerance=0.02"``, ``"model:url=...,model=..."``, or one's own ("./mine.py:MyVerifier"); see
            docs/verification.md.

    Raises:
        ConfigurationError: The timeout is not positive, or an option of the verifier does not fit.
        UnknownNameError: There is no verifier of that name.
    """

    timeout: float = 5.0
    verifier: VerifierSpec = "rules"

    def __post_init__(self) -> None:
        check_option("verify_timeout", self.timeout, Seconds)
        object.__setattr__(self, "verifier", make_verifier(self.verifier, timeout=self.timeout))

    def __call__(self, problem: Problem, answer: str) -> Verdict:
        """Compare with the gold answer."""
        assert isinstance(self.verifier, Verifier)  # made above
        return self.verifier(problem.answer, answer, problem.question)
