"""The file of an evaluation: one JSON line per episode, written when it ends and read back to resume.

Covered: protection of existing files, a last line cut short by a crash, the check that a file belongs to the evaluation
that resumes it; a single file, or a file in the folder of a run (docs/run-folder.md). Not covered: figures
(``rstar2_env.evaluation.figures.summary``).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.core import trust
from rstar2_env.core.closing import Closing
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import (
    add_line,
    begin_lines,
    difference,
    lock_file,
    plain,
    read_lines,
    unlock_file,
    write_json,
)
from rstar2_env.core.files.outputs import begin_folder, check_file, check_folder, list_files
from rstar2_env.core.options.renamed import named_as
from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.core.run_folder.layout import EPISODES, EVALUATION_FILE, RUN_FILE, SUMMARY_FILE
from rstar2_env.evaluation.figures.tally import About
from rstar2_env.evaluation.play.plan import EvaluationPlan, Task

_BESIDE = ("start", "sample", "problem_source", "difficulty", "gold", "seconds", "chain", "run")
"""Keys that a line of an evaluation's file has in addition to the keys of ``Episode.record()``."""

Taken: TypeAlias = Callable[[Episode, About], None]
"""Function that is called with each episode that a file already holds, and with further facts about the episode."""


class EvalLog(Closing):
    """Writes episodes to a file, or to the folder of a run.

    If the path is a folder or has no suffix, it is the folder of a run, which holds options, events and figures in
    addition to the episodes. ``read_run`` reads files and folders.

    Each line is ``Episode.record()`` without ``group`` and with these keys: ``index`` (the episode's number in the
    evaluation), ``start`` (the number of its start, a problem and a seed), ``sample`` (its number among the samples of
    the start), ``problem_source`` and ``difficulty``, ``gold`` (the gold answer, if it is known), ``seconds`` (wall
    clock), ``chain`` (the judge's verdict, if the evaluation has a judge) and ``run`` (the settings of the evaluation,
    the same in every line).

    Args:
        path: The file, whose folder is created if needed, or the folder of a run.
        run: Environment, player and options of the evaluation; a file with other values is not resumed.
        plan: The episodes of the evaluation.
        resume: Continue an existing file: keep its episodes that count (``Episode.available``), but not a broken last
            line. A missing file is created.
        overwrite: Replace a file that exists.
        taken: Called for each episode of the plan that the file already holds; the log does not keep it in memory.
        whole: Number of samples of a start that are scored together. If some of them are missing from the file, all are
            played again.

    Attributes:
        path: The file of the episodes.
        folder: The folder of the run; ``None`` if ``path`` is a file.
        done: One byte for each episode of the plan: 1 if the file already holds it, else 0.

    Raises:
        ConfigurationError: The file exists and neither ``resume`` nor ``overwrite`` is set; or it belongs to another
            run, cannot be written, or is written by another process.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        run: Mapping[str, Any],
        plan: EvaluationPlan,
        resume: bool = False,
        overwrite: bool = False,
        taken: Taken | None = None,
        whole: int = 1,
    ) -> None:
        self.path = Path(path)
        self.folder: Path | None = None
        self._writer: RunWriter | None = None
        if (file := _file_in(self.path)) != self.path:
            self.folder, self.path = self.path, file
            self._writer = RunWriter(self.folder, kind="evaluation", episodes=False)
        self.done = bytearray(len(plan))
        self._run = plain(run)
        check_out(path, resume=resume, overwrite=overwrite)
        resumed = resume and self.path.exists()
        self._lock = lock_file(self.path)
        try:
            if self._writer is not None and self.folder is not None and not resumed:
                begin_folder(self.folder, "evaluation")
                self._writer.begin(self._run)
            kept = self._read(plan, taken, whole) if resumed else ()
            self._file = begin_lines(self.path, kept)
            if self._writer is None:
                trust.record(self.path, self._run)
            if self._writer is not None and resumed:
                self._writer.begin(self._run, resumed=0)
        except BaseException:
            unlock_file(self._lock)
            raise

    def write(self, episode: Episode, task: Task, *, about: About | None = None, seconds: float | None = None) -> None:
        """Add an episode and flush the file.

        Args:
            episode: The episode.
            task: The task of the plan that the episode completes.
            about: Source and difficulty of the episode's problem, and the judge's verdict; ``None`` if unknown.
            seconds: Wall-clock seconds of playing the episode; ``None`` if unknown.
        """
        about = About() if about is None else about
        record = episode.record()
        del record["group"]
        line = {
            "index": task.index,
            "start": task.start,
            "sample": task.sample,
            **record,
            "problem_source": about.source,
            "difficulty": about.difficulty,
            "gold": task.problem.answer if task.problem else None,
            "seconds": seconds,
            **({"chain": about.chain} if about.judged else {}),
            "run": self._run,
        }
        add_line(self._file, line)

    def end(self, figures: Mapping[str, float | None], summary: Mapping[str, Any], *, interrupted: bool) -> None:
        """Write the figures of all episodes so far into the run's folder, if there is one.

        Args:
            figures: The figures by name; a figure without data is ``None``.
            summary: Contents of ``summary.json``.
            interrupted: Whether the evaluation stopped before all planned episodes were played.
        """
        if self._writer is not None and self.folder is not None:
            list_files(self.folder, SUMMARY_FILE)
            write_json(self.folder / SUMMARY_FILE, summary)
            self._writer.event("evaluation", 0, figures=figures)
            self._writer.event("interrupted" if interrupted else "finished", 0)

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        finally:
            unlock_file(self._lock)

    def _read(self, plan: EvaluationPlan, taken: Taken | None, whole: int) -> Iterator[str]:
        """Yield the lines that the resumed evaluation keeps from its existing file."""
        run = {**_LATER, **self._run}
        broken = _broken(self.path, whole) if whole > 1 else frozenset()
        for number, line, record in read_lines(self.path, "an episode of an evaluation"):
            try:
                episode = episode_of(record)
            except ValueError as error:
                raise ConfigurationError(
                    f"Line {number} of {self.path} is not an episode of an evaluation ({error}), so this "
                    "evaluation cannot be resumed: choose another file."
                ) from error
            index = episode.group
            task = plan[index] if 0 <= index < len(plan) else None
            _refuse_difference(self.path, number, record, run)
            if task is not None and not _fits(episode, task):
                raise _another(self.path, number, "its problems or seeds differ")
            if not episode.available or (task is not None and (self.done[index] or task.start in broken)):
                continue
            yield line + "\n"
            if task is not None:
                self.done[index] = True
                if taken is not None:
                    taken(episode, About.from_line(index, record))


def check_out(path: str | os.PathLike[str], *, resume: bool, overwrite: bool, inputs: object = ()) -> None:
    """Check that an ``EvalLog`` may write to a path; called before anything slow is loaded.

    Args:
        path: See ``EvalLog``.
        resume: See ``EvalLog``.
        overwrite: See ``EvalLog``.
        inputs: Options of the evaluation; a path that they name is never replaced.

    Raises:
        ConfigurationError: As ``EvalLog``.
    """
    where = Path(path)
    if not where.is_dir() and where.suffix:
        check_file(where, resume=resume, overwrite=overwrite, inputs=inputs, lines=True)
        return
    check_folder(where, "evaluation", resume=resume, overwrite=overwrite, inputs=inputs)
    if (where / RUN_FILE).exists() and (kind := read_run(where).kind) != "evaluation":
        raise ConfigurationError(
            f"{path} is the folder of a run of the kind {kind}, not of an evaluation: choose another folder.",
            option="out",
        )


def check_resumed(path: str | os.PathLike[str], run: Mapping[str, Any]) -> None:
    """Check, before a model is loaded, that the first episode of an existing file belongs to the evaluation ``run``.

    Args:
        path: See ``EvalLog``.
        run: See ``EvalLog``.

    Raises:
        ConfigurationError: The file belongs to another evaluation, or its first line is not JSON.
    """
    file = _file_in(Path(path))
    if file.exists():
        for number, _, record in itertools.islice(read_lines(file, "an episode of an evaluation"), 1):
            if isinstance(record, Mapping):
                _refuse_difference(file, number, record, {**_LATER, **plain(run)})


def read_episodes(path: Path, last: int | None = None) -> Iterator[Episode]:
    """Read the episodes of an evaluation's file, in the order in which they ended.

    Args:
        path: The file.
        last: Number of the last episode of the plan to read; later ones are skipped. ``None`` reads all episodes.
    """
    for _, _, record in read_lines(path, "an episode of an evaluation"):
        episode = episode_of(record)
        if last is None or episode.group <= last:
            yield episode


def episode_of(line: Mapping[str, Any]) -> Episode:
    """Make an episode from a line that ``EvalLog`` wrote; the episode's ``group`` is its number in the evaluation.

    Raises:
        RecordFormatError: A key is missing, is unknown, or has a value of another form.
    """
    if isinstance(line, Mapping) and "index" in line:
        line = {"group": line["index"], **{name: line[name] for name in line if name != "index"}}
    return Episode.from_record(line, extra=_BESIDE)


_LATER = {"n": 1}
"""Options that files of earlier versions of this package lack, with the values that those versions used."""


def _broken(path: Path, whole: int) -> frozenset[int]:
    """Return the numbers of the starts that have samples in a file, but fewer than ``whole`` samples that count."""
    held: dict[int, set[int]] = {}
    for _, _, record in read_lines(path, "an episode of an evaluation"):
        try:
            episode = episode_of(record)
        except ValueError:
            continue  # the next reader reports it
        held.setdefault(episode.group // whole, set()).update([episode.group] if episode.available else [])
    return frozenset(start for start, samples in held.items() if len(samples) < whole)


def _file_in(path: Path) -> Path:
    """Return the file of the episodes: ``path``, or the file in the folder of a run."""
    return path / EPISODES / EVALUATION_FILE if path.is_dir() or not path.suffix else path


def _refuse_difference(path: Path, number: int, record: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    theirs = record.get("run")
    theirs = named_as({**_LATER, **plain(theirs)}, run) if isinstance(theirs, Mapping) else theirs
    if theirs != run:
        raise _another(path, number, difference(theirs, run))


def _another(path: Path, number: int, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"Line {number} of {path} belongs to another evaluation: {why}. Resume with the same environment, "
        "agent, problems, options and seed, or choose another file."
    )


def _fits(episode: Episode, task: Task) -> bool:
    return episode.seed == task.seed and task.problem_id in (None, episode.problem_id)
