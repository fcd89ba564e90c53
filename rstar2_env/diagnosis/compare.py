"""``compare_runs``: finds the options, data, versions or seeds that can explain why the curves of two runs differ.

A difference can explain only curves that diverge after it takes effect. The model, the data and the sampling take
effect from the first episodes on; the optimizer, the loss and the selection from the first update on. Not covered:
causes that neither folder records, and combined effects of several differences.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.run_folder import read_run
from rstar2_env.core.run_folder.layout import RUN_FILE
from rstar2_env.core.run_folder.named_files import file_names
from rstar2_env.diagnosis.examination import examine, read
from rstar2_env.diagnosis.record import FigurePoint, RunRecord
from rstar2_env.diagnosis.spells import rolling, spell

Acts: TypeAlias = Literal["start", "updates", "chance", "never"]
"""How a difference between two runs affects their curves: from the first episode on, from the first update on, only by
chance, or not at all."""

CURVES = (
    "rollout/reward",
    "rollout/pass_rate",
    "rollout/tokens",
    "rollout/tool_calls",
    "policy/entropy",
    "grad_norm",
    "kl",
)
_WINDOW, _ERRORS, _LEAST = 5, 3.0, 3
_START = ("model", "rollout", "eval", "parts.rollout", "parts.sampler")
"""Options that take effect from the first episode on."""
_NEVER = (
    "run.output_dir",
    "run.resume",
    "run.overwrite",
    "run.progress",
    "run.report_to",
    "run.save_every",
    "run.keep_checkpoints",
    "run.keep_episodes",
    "run.keep_tokens",
    "run.log_every",
    "run.process_timeout_s",
    "parts.hook.diagnosis",
)
"""Options that change which data is recorded, but not any curve."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """An option, file, version or other setting in which two runs differ.

    Attributes:
        kind: ``option``, ``seed``, ``data``, ``file``, ``version`` or ``processes``.
        name: Name of the item that differs, such as ``optim.learning_rate``.
        first: Value in the first run.
        second: Value in the second run.
        acts: Effect of the difference on the curves; see ``Acts``.
    """

    kind: str
    name: str
    first: Any
    second: Any
    acts: Acts


@dataclass(frozen=True, slots=True)
class PartedCurve:
    """A metric whose curves in two runs differ by more than their noise from some step on.

    Attributes:
        figure: Name of the metric.
        since: First step from which on the means over 5 steps differ by more than 3 standard errors.
        first: Mean of the metric in the first run from that step on.
        second: Mean of the metric in the second run from that step on.
    """

    figure: str
    since: int
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class RunsCompared:
    """The comparison of two runs.

    Attributes:
        first: Name of the first run.
        second: Name of the second run.
        curves: Metrics whose curves differ, in the order in which they diverge.
        differences: Differences of the runs; differences that can explain the curves come first.
        only_first: Names of the checks with a finding in the first run only.
        only_second: Names of the checks with a finding in the second run only.
        sentences: The comparison in words.
    """

    first: str
    second: str
    curves: Sequence[PartedCurve]
    differences: Sequence[RunDifference]
    only_first: Sequence[str]
    only_second: Sequence[str]
    sentences: Sequence[str]

    def record(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        record: dict[str, Any] = jsonable(asdict(self))
        return record

    def __str__(self) -> str:
        """The comparison as text."""
        lines = [*self.sentences]
        for one in self.curves:
            lines.append(f"  {one.figure}: {one.first:.4g} and {one.second:.4g} on average since step {one.since}")
        lines += [f"  {one.name}: {one.first!r} and {one.second!r} ({_WHEN[one.acts]})" for one in self.differences]
        for run, names in ((self.first, self.only_first), (self.second, self.only_second)):
            if names:
                lines.append(f"Findings that only {run} has: {', '.join(names)}.")
        return "\n".join(lines)


_WHEN: Mapping[Acts, str] = {
    "start": "has an effect from the first episode on",
    "updates": "has an effect from the first update on",
    "chance": "has an effect only by chance",
    "never": "has no effect on any curve",
}


def compare_runs(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> RunsCompared:
    """Return the differences of two runs that can explain why their curves differ.

    Args:
        first: Folder of a run, or the log of another trainer.
        second: Folder of another run, or another log.

    Raises:
        ConfigurationError: A path is not a run, or the runs have no step in common.
    """
    one, other = read(Path(first)), read(Path(second))
    if not {step.number for step in one.steps} & {step.number for step in other.steps}:
        raise ConfigurationError(
            f"The runs {one.name} and {other.name} do not have a step in common, so their curves cannot be compared."
        )
    curves = sorted(filter(None, (_parted(name, one, other) for name in CURVES)), key=lambda curve: curve.since)
    known = (_began(Path(first)), _began(Path(second)))
    differences = [*_options(one, other), *_data(one, other), *_files(one, known), *_versions(known)]
    at_start = _apart_at_start(one, other)
    candidates = [each for each in differences if _explains(each, at_start=at_start)]
    ordered = [*candidates, *(each for each in differences if each not in candidates)]
    found, also = (set(examine(each).names) for each in (one, other))
    sentences = _sentences(one, other, curves, differences, candidates, at_start=at_start)
    sentences += [words for run, began in zip((one, other), known, strict=True) for words in _unrecorded(run, began)]
    return RunsCompared(one.name, other.name, curves, ordered, sorted(found - also), sorted(also - found), sentences)


def _parted(name: str, one: RunRecord, other: RunRecord) -> PartedCurve | None:
    left, right = dict(one.series(name)), dict(other.series(name))
    shared = sorted(left.keys() & right.keys())
    if len(shared) < _WINDOW + _LEAST:
        return None
    differences: list[FigurePoint] = [(step, left[step] - right[step]) for step in shared]
    # Noise of single steps, estimated from differences of neighbouring steps, so that a slow drift hardly counts.
    steps = [later[1] - earlier[1] for earlier, later in pairwise(differences)]
    noise = math.sqrt(fmean(step * step for step in steps) / 2)
    error = max(noise / math.sqrt(_WINDOW), 1e-9 * max(map(abs, left.values())))
    apart = spell(rolling(differences, _WINDOW), lambda value: abs(value) > _ERRORS * error, _LEAST)
    if apart is None or apart.until is not None:
        return None
    later = [step for step in shared if step >= apart.since]
    return PartedCurve(name, apart.since, fmean(left[step] for step in later), fmean(right[step] for step in later))


def _apart_at_start(one: RunRecord, other: RunRecord) -> bool | None:
    """Whether the runs' pass rates already differ before the first update; ``None`` if a run did not record them."""
    begun = []
    for run in (one, other):
        first = next((each for each in run.evaluations if each.number == 0), None) or (
            run.steps[0] if run.steps else None
        )
        counted = [each.correct for each in first.episodes if each.available] if first is not None else []
        if not counted:
            return None
        begun.append((sum(map(bool, counted)) / len(counted), len(counted)))
    (left, many), (right, also) = begun
    pooled = (left * many + right * also) / (many + also)
    error = math.sqrt(pooled * (1 - pooled) * (1 / many + 1 / also))
    return abs(left - right) > _ERRORS * error


def _explains(difference: RunDifference, *, at_start: bool | None) -> bool:
    if difference.acts == "never":
        return False
    return difference.acts == "start" if at_start else True


def _options(one: RunRecord, other: RunRecord) -> list[RunDifference]:
    left, right = flat(one.config), flat(other.config)
    found = []
    for name in sorted(left.keys() | right.keys()):
        first, second = left.get(name), right.get(name)
        if first == second:
            continue
        if name.endswith("seed"):
            found.append(RunDifference("seed", name, first, second, "chance"))
            continue
        found.append(RunDifference("option", name, first, second, _acts(name)))
    return found


def _acts(option: str) -> Acts:
    """Return the effect (``Acts``) of a difference in an option that is not a seed."""
    if option.startswith(_NEVER):
        return "never"
    return "start" if option.startswith(tuple(f"{each}." for each in _START)) else "updates"


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested options as one dict with dotted names; in a list of parts, each part's ``name`` is its key."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        full = f"{prefix}{name}"
        if isinstance(value, list) and value and all(isinstance(part, Mapping) and "name" in part for part in value):
            value = {str(part["name"]): {k: v for k, v in part.items() if k != "name"} or True for part in value}
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{full}.")
        else:
            found[full] = value
    return found


def _data(one: RunRecord, other: RunRecord) -> list[RunDifference]:
    left, right = (
        {each.question for step in run.steps for each in step.episodes if each.question} for run in (one, other)
    )
    if not left or not right:
        return []
    shared = len(left & right) / min(len(left), len(right))
    if shared > 0:
        # Runs that draw from the same problems soon have some in common, so only disjoint problems are a difference.
        return []
    return [RunDifference("data", "problems", f"{len(left)} problems", f"{len(right)} other problems", "start")]


def _began(path: Path) -> dict[str, Any]:
    """Return the last start or resume that the run's folder records; {} for the log of another trainer."""
    events = read_run(path).events if (path / RUN_FILE).is_file() else []
    return next((event for event in reversed(events) if event["event"] in ("started", "resumed")), {})


def _files(one: RunRecord, known: Sequence[Mapping[str, Any]]) -> list[RunDifference]:
    """Return a difference for each file that both runs name, such as an environment's code, if its content differs."""
    left, right = (event.get("files", {}) for event in known)
    return [
        RunDifference("file", f"content of {name}", left[name], right[name], _acts_of_file(name, one))
        for name in sorted(left.keys() & right.keys())
        if left[name] != right[name]
    ]


def _acts_of_file(name: str, run: RunRecord) -> Acts:
    """Return the effect (``Acts``) of a difference in a file: the earliest effect of the options that name the file."""
    acts: set[Acts] = {_acts(option) for option, value in flat(run.config).items() if name in file_names(value)}
    order: tuple[Acts, ...] = ("start", "updates", "never")
    return next((each for each in order if each in acts), "start")


def _unrecorded(run: RunRecord, began: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence if the files that the run names were not recorded, as in earlier versions of this package."""
    names = sorted(file_names(run.config)) if began and "files" not in began else []
    if names:
        yield f"Not recorded by {run.name}: the content of {', '.join(names)}; it may have changed between the runs."


def _versions(known: Sequence[Mapping[str, Any]]) -> list[RunDifference]:
    left, right = (dict(event.get("versions", {})) for event in known)
    found = [
        RunDifference("version", name, left.get(name), right.get(name), "start")
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]
    first_count, second_count = (event.get("processes") for event in known)
    if first_count != second_count:
        found.append(RunDifference("processes", "processes", first_count, second_count, "chance"))
    return found


def _sentences(
    one: RunRecord,
    other: RunRecord,
    curves: Sequence[PartedCurve],
    differences: Sequence[RunDifference],
    candidates: Sequence[RunDifference],
    *,
    at_start: bool | None,
) -> list[str]:
    if not curves:
        return [f"The curves of {one.name} and {other.name} do not differ by more than chance."]
    words = [f"The curves begin to differ in {curves[0].figure}, at step {curves[0].since}."]
    if at_start:
        words.append(
            "The runs already differ before the first update, so the optimizer and the loss cannot be the cause."
        )
    elif at_start is False:
        words.append("Before the first update, the runs do not differ by more than chance.")
    real = [each for each in candidates if each.acts != "chance"]
    if len(real) == 1:
        words.append(f"Only one recorded difference can be the cause: {real[0].name}.")
    elif real:
        words.append(
            f"{len(real)} recorded differences can be the cause: "
            f"{', '.join(each.name for each in real)}. Change one at a time."
        )
    elif any(each.acts == "chance" for each in differences):
        words.append(
            "Only the seeds or the number of processes differ, so the difference is chance. Repeat both runs "
            "with more seeds."
        )
    else:
        words.append("The folders of the runs do not record a difference that can be the cause.")
    return words
