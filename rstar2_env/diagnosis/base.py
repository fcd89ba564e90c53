"""``RunCheck``: a check for one fault of a run; ``Evidence``: the data of a run that shows the fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rstar2_env.core.options.registry import Registry
from rstar2_env.core.run_folder.layout import Kind
from rstar2_env.diagnosis.record import RunRecord

FindingSeverity: TypeAlias = Literal["error", "warning", "note"]
"""Severity of a fault. ``error``: the run learns nothing, or something wrong; ``warning``: it learns less than it
could; ``note``: worth knowing."""
SEVERITIES: tuple[FindingSeverity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The data with which a check shows a fault of a run.

    Attributes:
        since: First step at which the check's rule held.
        until: Last step at which the rule held; ``None`` if it still holds at the run's last step.
        says: The observation as a sentence that states numbers.
        figures: The numbers on which the observation is based, by name.
        episodes: Keys of up to three episodes that show the fault, for ``rstar2 view RUN --text --episode KEY``.
        severity: Severity of this observation; ``None`` means the severity of the check.
        effects: Names of the checks whose faults this observation usually causes; ``None`` means the effects of the
            check.
        akin: Names of checks; the usual causes of their faults are also usual causes of this observation.
    """

    since: int
    until: int | None
    says: str
    figures: Mapping[str, float] = field(default_factory=dict)
    episodes: tuple[str, ...] = ()
    severity: FindingSeverity | None = None
    effects: tuple[str, ...] | None = None
    akin: tuple[str, ...] = ()


PLAYED: frozenset[Kind] = frozenset({"training", "evaluation"})
"""Kinds of runs in which a policy plays episodes, so that there are episodes to check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCheck:
    """A check for one fault of a training run.

    Attributes:
        name: Name of the check, unique among all checks.
        title: The fault, as the heading of a finding.
        looks_at: Description of the data that the check reads.
        rule: The condition under which the check reports the fault; after a colon, the reason for its threshold.
        severity: Severity of the fault, unless the evidence has its own.
        cause: The usual cause of the fault.
        change: Remedies: options that can be typed after ``rstar2 train ...``, or commands.
        otherwise: Other explanations of the observation.
        needs: Data without which the check cannot decide: names of metrics, ``episodes``, ``cut_prompt`` (whether
            prompts were cut), ``evaluations``, ``held_out`` (episodes of evaluations), ``resumed`` (the run was resumed
            at least once), or ``option:NAME``; ``a|b`` means that ``a`` or ``b`` is enough.
        finite: Whether a metric counts as recorded only if at least one of its values is finite.
        look: Function that examines a run, and returns the evidence of the fault, or ``None``.
        kinds: Kinds of runs to which the check applies.
        applies: Function that returns whether the check applies to a run, given its options; for example, a rule about
            stale weights does not apply if the engine shares the trainer's weights.
        effects: Names of the checks for faults that this fault usually causes.
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
    finite: bool = True
    kinds: frozenset[Kind] = frozenset({"training"})
    applies: Callable[[RunRecord], bool] = lambda run: True
    effects: tuple[str, ...] = ()

    def lacks(self, run: RunRecord) -> list[str]:
        """Return the names of data in ``needs`` that a run did not record."""
        return [need for need in self.needs if not any(run.has(one, finite=self.finite) for one in need.split("|"))]


CHECKS: Registry[RunCheck] = Registry("check", "rstar2_env.diagnosis.checks")
"""Registry of all checks, by name."""


def register(*checks: RunCheck) -> None:
    """Register checks under their names."""
    for check in checks:
        CHECKS.register(check.name, check)
