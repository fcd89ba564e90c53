"""The file of an evaluation: one JSON line an episode, written as it ends, and read back to resume.

Covered: refusing to overwrite, a last line cut short by a crash, checking that a file belongs to the evaluation that
resumes it; the file alone, or in the folder of a run (docs/run-folder.md). Not covered: figures
(``rstar2_env.evaluation.summary``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.folders import check_folder
from rstar2_env.core.lines import add_line, begin_lines, difference, plain, read_lines, refuse_existing
from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.core.run_folder.layout import EPISODES, EVALUATION_FILE, RUN_FILE

_BESIDE = ("gold", "seconds", "run")
"""What a line has beside the episode's record."""


class EvalLog:
    """Writes episodes to a file, or to the folder of a run.

    A path without a suffix, or of a folder, is a run's folder, which has options, events and figures beside the
    episodes; ``read_run`` reads both.

    Each line is ``Episode.record()`` with ``index`` (its number in the evaluation) in place of ``group``, ``gold`` (the
    gold answer, when known), ``seconds`` (wall clock) and ``run`` (what was evaluated, the same in every line).

    Args:
        path: The file, whose folder is made, or the folder.
        run: What is evaluated; a file of another run is not resumed.
        plan: Seed and problem id of each episode, by its index; a problem id of ``None`` is not checked.
        resume: Take up a file that exists: keep its episodes, except ``unavailable`` ones and a broken last line. One
            that does not exist is begun.
        overwrite: Replace a file that exists.

    Attributes:
        finished: The episodes of the plan that the file held already, by index.

    Raises:
        ConfigurationError: The file exists and neither was asked for, it is of another run, or cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        run: Mapping[str, Any],
        plan: Mapping[int, tuple[int, str | None]],
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        self._folder: RunWriter | None = None
        if self.path.is_dir() or not self.path.suffix:
            self._folder = _folder(self.path, resume=resume, overwrite=overwrite)
            self.path = self.path / EPISODES / EVALUATION_FILE
        self.finished: dict[int, Episode] = {}
        self._run = plain(run)
        refuse_existing(self.path, resume=resume, overwrite=overwrite)
        resumed = resume and self.path.exists()
        kept = self._read(plan) if resumed else []
        if self._folder is not None:
            self._folder.begin(self._run, resumed=0 if resumed else None)
        self._file = begin_lines(self.path, kept)

    def write(self, episode: Episode, *, gold: str | None = None, seconds: float | None = None) -> None:
        """Add an episode and flush the file.

        Args:
            episode: The episode; its ``group`` is its number in the evaluation.
            gold: The gold answer, if known.
            seconds: Wall-clock seconds of playing it.
        """
        record = episode.record()
        line = {"index": record.pop("group"), **record, "gold": gold, "seconds": seconds, "run": self._run}
        add_line(self._file, line)

    def end(self, figures: Mapping[str, float | None], *, interrupted: bool) -> None:
        """Note the figures of all episodes so far in the run's folder, if there is one.

        Args:
            figures: By name; ``None`` where there was no data.
            interrupted: Whether episodes are missing.
        """
        if self._folder is not None:
            self._folder.event("evaluation", 0, figures=figures)
            self._folder.event("interrupted" if interrupted else "finished", 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, plan: Mapping[int, tuple[int, str | None]]) -> list[str]:
        kept: list[str] = []
        for number, line, record in read_lines(self.path, "an episode of an evaluation"):
            try:
                episode = episode_of(record)
            except ValueError as error:
                raise ConfigurationError(
                    f"{self.path}:{number} is not an episode of an evaluation ({error}); it cannot be resumed."
                ) from error
            planned = plan.get(episode.group)
            if record.get("run") != self._run or (planned is not None and not _fits(episode, *planned)):
                other = difference(record.get("run"), self._run) or "its problems or seeds are others"
                raise ConfigurationError(
                    f"{self.path}:{number} belongs to another evaluation: {other}. Resume with the same "
                    "environment, agent, problems, options and seed, or choose another file."
                )
            if episode.available:
                kept.append(line + "\n")
                if planned is not None:
                    self.finished[episode.group] = episode
        return kept


def episode_of(line: Mapping[str, Any]) -> Episode:
    """The episode of a line that ``EvalLog`` wrote; ``group`` is its number in the evaluation.

    Raises:
        RecordFormatError: A key is missing, is unknown, or has a value of another form.
    """
    if isinstance(line, Mapping) and "index" in line:
        line = {"group": line["index"], **{name: line[name] for name in line if name != "index"}}
    return Episode.from_record(line, beside=_BESIDE)


def _folder(path: Path, *, resume: bool, overwrite: bool) -> RunWriter:
    check_folder(path, "out")
    if (path / RUN_FILE).exists():
        refuse_existing(path, resume=resume, overwrite=overwrite)
        if (kind := read_run(path).kind) != "evaluation":
            raise ConfigurationError(
                f"{path} is the folder of a run of {kind}: choose another one for the evaluation.", option="out"
            )
    return RunWriter(path, kind="evaluation", episodes=False)


def _fits(episode: Episode, seed: int, problem_id: str | None) -> bool:
    return episode.seed == seed and problem_id in (None, episode.problem_id)
