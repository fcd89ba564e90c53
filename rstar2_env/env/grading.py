"""Graders: functions with which an environment decides whether an answer is correct."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rstar2_env.core.options.declare import Seconds, check_option
from rstar2_env.problems import Problem
from rstar2_env.verification import Verdict
from rstar2_env.verification.named import VerifierSpec, make_verifier
from rstar2_env.verification.verifier import Verifier

Grader = Callable[[Problem, str], Verdict]
"""``grader(problem, answer)`` returns whether the answer solves the problem. It is pickled with the environment."""


@dataclass(frozen=True, slots=True)
class GoldGrader:
    """Grades an answer by comparing it with the problem's gold answer.

    Args:
        timeout_s: Seconds that one comparison by rules may take.
        verifier: A verifier, or its name with options: ``"rules"`` (a formula that only repeats the question is not an
            answer), ``"numeric:tolerance=0.02"``, ``"model:url=...,model=..."``, or your own code
            ("./mine.py:MyVerifier"); see docs/verification-rules.md.

    Raises:
        ConfigurationError: The timeout is not positive, or an option of the verifier is not valid.
        UnknownNameError: No verifier has that name.
    """

    timeout_s: float = 5.0
    verifier: VerifierSpec = "rules"

    def __post_init__(self) -> None:
        check_option("verify_timeout_s", self.timeout_s, Seconds)
        object.__setattr__(self, "verifier", make_verifier(self.verifier, timeout_s=self.timeout_s))

    def __call__(self, problem: Problem, answer: str) -> Verdict:
        """Compare the answer with the gold answer."""
        assert isinstance(self.verifier, Verifier)  # __post_init__ has made it from the name
        return self.verifier(problem.answer, answer, problem.question)
