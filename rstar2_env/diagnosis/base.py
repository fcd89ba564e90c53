"""``RunCheck``: one thing that may be wrong with a run, and ``Evidence``: the observation of a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rstar2_env.core.options.registry import Registry
from rstar2_env.core.run_folder.layout import Kind
from rstar2_env.diagnosis.record import RunRecord

FindingSeverity: TypeAlias = Literal["error", "warning", "note"]
"""``error``: the run learns nothing, or something false; ``warning``: it learns less than it could; ``note``: worth
knowing."""
SEVERITIES: tuple[FindingSeverity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observation of a check.

    Attributes:
        since: First step at which the rule of the check held.
        until: Last step at which it held; ``None`` if it still holds at the last step.
        says: The observation, a sentence with its figures.
        figures: The figures behind it, by name.
        episodes: Keys of up to three episodes that show it, as ``rstar2 view RUN --text --episode KEY`` takes them.
        severity: FindingSeverity of this observation; ``None`` for the check's own.
    """

    since: int
    until: int | None
    says: str
    figures: Mapping[str, float] = field(default_factory=dict)
    episodes: tuple[str, ...] = ()
    severity: FindingSeverity | None = None


PLAYED: frozenset[Kind] = frozenset({"training", "evaluation"})
"""Kinds of runs in which a policy plays episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCheck:
    """One thing that may be wrong with a run.

    Attributes:
        name: Its name, unique among all checks.
        title: The fault, as the heading of a finding.
        looks_at: The data that the check reads.
        rule: When the fault counts as found, with the reason for the threshold.
        severity: How much the fault matters.
        cause: Its usual cause.
        change: Remedies: options that can be typed after ``rstar2 train ...``, or commands.
        otherwise: Other explanations of the same observation.
        needs: Data without which the check cannot decide: figures by name, ``episodes``, ``evaluations``,
            ``held_out`` (episodes of evaluations), or ``option:NAME``; ``a|b`` means that one of them is enough.
        look: Looks at a run; returns ``None`` if it finds nothing.
        kinds: Kinds of runs that the check applies to.
        applies: Whether the check applies to a run with these options; for example, a rule about lag does not apply to
            a run whose engine shares the trainer's weights.
    """

    name: str
    title: str
    looks_at: str
    rule: str
    severity: FindingSeverity
    cause: str
    change: tuple[str, ...]
    otherwise: str
    needs: tuple[str, ...]
    look: Callable[[RunRecord], Evidence | None]
    kinds: frozenset[Kind] = frozenset({"training"})
    applies: Callable[[RunRecord], bool] = lambda run: True

    def lacks(self, run: RunRecord) -> list[str]:
        """Return the needed data that a run did not record."""
        return [need for need in self.needs if not any(run.has(one) for one in need.split("|"))]


CHECKS: Registry[RunCheck] = Registry("check", "rstar2_env.diagnosis.checks")
"""All checks by name."""


def register(*checks: RunCheck) -> None:
    """Register checks under their names."""
    for check in checks:
        CHECKS.register(check.name, check)
