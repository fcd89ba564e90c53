"""``LiveDiagnosis``: examine a run after each step while it is in progress, and report findings that appear or end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rstar2_env.core.run_folder import read_run
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.folder import held_out_of, played_in, read_folder
from rstar2_env.diagnosis.record import StepData
from rstar2_env.diagnosis.result import Finding

_QUIET = 5
"""Steps without a finding after which it has ended: a figure near its threshold crosses it again and again."""
_REMEMBERED = 20
"""Number of latest steps whose episodes are kept, to show some of them. Of older steps, the checks keep what they read
(``StepData.once``), so that they judge the whole run."""


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that appeared or ended."""

    finding: Finding
    ended: bool

    @property
    def line(self) -> str:
        """The change as one line of text."""
        found = self.finding
        if self.ended:
            return f"Finding ended: {found.title} ({found.check}, {found.when})."
        change = f" Change: {found.change[0]}" if found.change else ""
        return f"Finding ({found.severity}): {found.title} ({found.check}, {found.when}). {found.says}{change}"


class LiveDiagnosis:
    """Examines a run in progress; it reads the files of each new step once.

    Args:
        folder: The run's folder. Findings of steps that are already in the folder are not reported as new.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._run = read_run(folder)
        self._record = read_folder(folder)
        self._checks = every_check()
        self._open = {one.check: one for one in examine(self._record, checks=self._checks) if one.until is None}
        self._seen = dict.fromkeys(self._open, self._record.last)
        for step in self._record.steps[:-_REMEMBERED]:
            step.forget()

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        """Add the figures of an evaluation, named ``eval/...``, and its episodes."""
        own = {name.removeprefix("eval/"): value for name, value in figures.items()}
        later = [one for one in self._record.evaluations if one.number != step]
        self._record.evaluations = [*later, StepData(step, own, held_out_of(self._run, step))]

    def add(self, step: int, figures: Mapping[str, float]) -> Sequence[Change]:
        """Add a step's figures and the episodes since the last step; return the findings that appeared or ended."""
        if step <= self._record.last:
            return ()
        played = [one for number in range(self._record.last + 1, step + 1) for one in played_in(self._run, number)]
        own = {name: float(value) for name, value in figures.items() if isinstance(value, (int, float))}
        self._record.add(StepData(step, own, played))
        if len(self._record.steps) > _REMEMBERED:
            self._record.steps[-_REMEMBERED - 1].forget()
        found = {one.check: one for one in examine(self._record, checks=self._checks) if one.until is None}
        self._seen |= dict.fromkeys(found, step)
        changes = [Change(one, ended=False) for name, one in found.items() if name not in self._open]
        self._open |= {name: one for name, one in found.items() if name not in self._open}
        for name in [name for name in self._open if step - self._seen[name] >= _QUIET]:
            changes.append(Change(replace(self._open.pop(name), until=self._seen[name]), ended=True))
        return changes
