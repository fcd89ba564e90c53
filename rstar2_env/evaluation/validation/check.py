"""Checks of ``rstar2 validate --level``: their types and the table of all checks.

    @check(1, demands="The requirement.", remedy="How to meet it.")
    def its_name(bench: Bench) -> CheckFinding: ...

A check returns its finding, or raises ``NotApplicableError`` with the reason. A check that is also in RFC 008 of
OpenEnv has the same name there. Not covered: how checks are run (``levels``), and the checks themselves (``static``,
``runtime``, ``containment``, ``semantic``, ``leakage``, ``grading_again``, ``statistical``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.evaluation.validation.bench import Bench, BenchEpisode

Level: TypeAlias = Literal[1, 2, 3, 4]
LEVELS: Mapping[int, str] = MappingProxyType({1: "static", 2: "runtime", 3: "semantic", 4: "statistical"})
"""The four levels of checks, with their names in OpenEnv's RFC 008."""

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"
MOST_EVIDENCE = 3
"""Maximum number of episodes that a result keeps as evidence."""


class NotApplicableError(Rstar2Error):
    """A check does not apply to this environment; the message is the reason."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The finding of a check.

    Attributes:
        ok: Whether the environment meets the check's requirement.
        said: Sentence that states the finding.
        figures: Numbers by name.
        evidence: Episodes that show the finding.
    """

    ok: bool
    said: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    evidence: Sequence[BenchEpisode] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One check of an environment; the decorator ``check`` creates and registers it.

    Attributes:
        name: Name of the check.
        level: From 1 to 4.
        demands: The requirement, in a sentence.
        remedy: How to meet the requirement.
        run: Function that performs the check.
    """

    name: str
    level: int
    demands: str
    remedy: str
    run: Callable[[Bench], CheckFinding]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one check.

    Attributes:
        check: The check that was performed.
        outcome: ``PASSED``, ``FAILED`` or ``NOT_APPLICABLE``.
        said: The finding, or why the check does not apply.
        figures: Numbers by name.
        evidence: Episodes that show why a check failed.
    """

    check: Check
    outcome: str
    said: str
    figures: Mapping[str, Any]
    evidence: tuple[BenchEpisode, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the check and its result as JSON values, as ``Report.to_dict`` lists them."""
        return {
            "name": self.check.name,
            "level": self.check.level,
            "demands": self.check.demands,
            "outcome": self.outcome,
            "said": self.said,
            "figures": dict(self.figures),
            "evidence": [played.to_dict() for played in self.evidence],
            "remedy": self.check.remedy if self.outcome == FAILED else "",
        }


CHECKS: dict[str, Check] = {}
"""Every check by its name, in the order in which they are performed."""


def check(
    level: Level, *, demands: str, remedy: str
) -> Callable[[Callable[[Bench], CheckFinding]], Callable[[Bench], CheckFinding]]:
    """Return a decorator that registers a function as a check, under the function's name.

    Args:
        level: From 1 to 4.
        demands: The requirement, in a sentence.
        remedy: How to meet the requirement.
    """

    def register(run: Callable[[Bench], CheckFinding]) -> Callable[[Bench], CheckFinding]:
        CHECKS[run.__name__] = Check(run.__name__, level, demands, remedy, run)
        return run

    return register


def make_check(one: Check, bench: Bench) -> Result:
    """Perform one check; an error that the check raises counts as a failure.

    Args:
        one: The check to perform.
        bench: The environment under test.
    """
    try:
        found = one.run(bench)
    except NotApplicableError as error:
        return Result(one, NOT_APPLICABLE, str(error), {}, ())
    except Exception as error:
        return Result(one, FAILED, f"the check ended with {type(error).__name__}: {str(error)[:500]}", {}, ())
    evidence = () if found.ok else tuple(found.evidence[:MOST_EVIDENCE])
    return Result(one, PASSED if found.ok else FAILED, found.said, found.figures, evidence)
