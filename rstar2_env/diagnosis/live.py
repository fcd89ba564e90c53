"""``LiveDiagnosis``: examines a run in progress after each step, and reports findings that appear or end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rstar2_env.core.run_folder import EpisodeEntry, read_run
from rstar2_env.core.run_folder.layout import Split, episode_key
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.facts import facts_of
from rstar2_env.diagnosis.folder import digests_of, read_folder
from rstar2_env.diagnosis.record import EpisodeDigest, StepData
from rstar2_env.diagnosis.result import Finding

_QUIET = 5
"""Number of consecutive examinations without a finding after which the finding counts as ended: a metric near a
threshold may cross it repeatedly."""
_EXAMINED = 300
"""Number of steps up to which a run is examined after every step; up to twice this number, it is examined after every
second step, and so on, because an examination takes about 50 µs for each step of the run."""
_FIRST = 5
"""Number of steps at the start whose episodes are read when a run resumes, to determine the metrics' initial levels."""
_REMEMBERED = 20
"""Number of latest steps whose episodes are kept, as examples for findings. For older steps, only the values that the
checks have computed are kept (``StepData.once``), so that findings still cover the whole run."""


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that has appeared or ended since the last examination.

    Attributes:
        finding: The finding.
        ended: Whether the finding has ended; otherwise it has appeared.
    """

    finding: Finding
    ended: bool

    @property
    def line(self) -> str:
        """Return the change as one line of text."""
        found = self.finding
        if self.ended:
            return f"Finding ended: {found.title} ({found.check}, {found.when})."
        episodes = f" Episodes: {', '.join(found.episodes)}." if found.episodes else ""
        causes = f" Probably an effect of another finding: {', '.join(found.caused_by)}." if found.caused_by else ""
        change = f" Change: {found.change[0]}" if found.change else ""
        head = f"Finding ({found.severity}): {found.title} ({found.check}, {found.when}). {found.says}"
        return f"{head}{causes}{episodes}{change}"


class LiveDiagnosis:
    """Examines a run in progress after each step.

    A finding that appears has the evidence that ``diagnose(folder, step=...)`` gives for that step. The run's first
    process passes its own episodes to ``wrote``. The episodes of other processes are read from the files of each new
    step, once.

    Args:
        folder: The run's folder. Findings of steps that are already in the folder are not reported as new; of these
            steps, only the episodes of the first 5 and the last 20 are read.

    Attributes:
        record: The data of the run so far.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._run = read_run(folder)
        self.record = read_folder(folder, first=_FIRST, last=_REMEMBERED)
        self._told = False
        self._written: dict[tuple[Split, int], list[EpisodeDigest]] = {}
        self._checks = every_check()
        self._open = {one.check: one for one in examine(self.record, checks=self._checks) if one.until is None}
        self._seen = dict.fromkeys(self._open, self.record.last)
        self._quiet: dict[str, int] = {}
        self._forgotten = 0
        self._forget()

    def wrote(self, split: Split, step: int, line: int, entries: Sequence[EpisodeEntry]) -> None:
        """Add episodes that the first process has just written to the run's folder.

        Args:
            split: ``"train"`` or ``"eval"``.
            step: Step of the episodes.
            line: Number of the first of these episodes in the step's file, from 0.
            entries: The episodes, in the order of their lines.
        """
        self._told = True
        self._written.setdefault((split, step), []).extend(
            facts_of(entry, episode_key(split, step, at, 0)) for at, entry in enumerate(entries, line)
        )

    def evaluated(self, step: int, figures: Mapping[str, float]) -> Sequence[Change]:
        """Add the metrics of an evaluation (their names begin with ``eval/``), and the episodes of the evaluation.

        Returns:
            The findings that appeared or ended. If the step's metrics have not been added yet, the result is empty, and
            ``add`` for this step returns the findings.
        """
        own = {name.removeprefix("eval/"): value for name, value in figures.items()}
        earlier = [one for one in self.record.evaluations if one.number != step]
        for one in earlier:
            one.forget()
        self.record.evaluations = [*earlier, StepData(step, own, self._episodes("eval", step))]
        return self._examined() if self.record.steps and step == self.record.last else ()

    def add(self, step: int, figures: Mapping[str, float]) -> Sequence[Change]:
        """Add the metrics and episodes of a step, and the episodes of skipped steps since the last added step.

        Returns:
            The findings that appeared or ended.
        """
        if step <= self.record.last:
            return ()
        for number in range(self.record.last + 1, step):  # steps whose figures were not logged
            if played := self._episodes("train", number):
                self.record.add(StepData(number, {}, played))
        own = {name: float(value) for name, value in figures.items() if isinstance(value, (int, float))}
        self.record.add(StepData(step, own, self._episodes("train", step)))
        return () if step % (1 + len(self.record.steps) // _EXAMINED) else self._examined()

    def _examined(self) -> Sequence[Change]:
        """Examine the run, and return the findings that appeared or ended since the last examination."""
        every = {one.check: one for one in examine(self.record, checks=self._checks)}
        found = {name: one for name, one in every.items() if one.until is None}
        self._forget()
        self._seen |= dict.fromkeys(found, self.record.last)
        changes = [Change(one, ended=False) for name, one in found.items() if name not in self._open]
        self._open |= found
        self._quiet = {name: 0 if name in found else self._quiet.get(name, 0) + 1 for name in self._open}
        for name in [name for name, quiet in self._quiet.items() if quiet >= _QUIET]:
            last = self._open.pop(name)
            changes.append(Change(every.get(name) or replace(last, until=self._seen[name]), ended=True))
        return changes

    def _forget(self) -> None:
        """Drop the episodes of examined steps, except the latest steps."""
        last = max(self._forgotten, len(self.record.steps) - _REMEMBERED)
        for step in self.record.steps[self._forgotten : last]:
            step.forget()
        self._forgotten = last

    def _episodes(self, split: Split, step: int) -> list[EpisodeDigest]:
        """Return the episodes of a step: those passed to ``wrote``, and those of other processes from the folder."""
        if not self._told:
            return digests_of(self._run, split, step)
        own = self._written.pop((split, step), [])
        if split == "eval" or self.record.processes == 1:
            return own
        return own + digests_of(self._run, split, step, without=0)
