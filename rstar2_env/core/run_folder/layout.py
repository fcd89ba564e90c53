"""Names of the files in a run's folder, and the version of the folder's format."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

FORMAT = "rstar2-env/run"
VERSION = 1
"""Version of the folder's format. It increases when an older reader would misread the folder, not when keys or files
are added."""

RUN_FILE = "run.json"
CONFIG_FILE = "config.json"
METRICS_FILE = "metrics.jsonl"
EVENTS_FILE = "events.jsonl"
CARD_FILE = "README.md"
SUMMARY_FILE = "summary.json"
"""File with the metrics of a standalone evaluation and their confidence intervals."""
VERDICT_FILE = "verdict.json"
"""File with the summary of a finished training run: its training data, its result and commands to run next."""
EPISODES = "episodes"
EVALUATION_FILE = "eval-000000.jsonl"
"""File with the episodes of a standalone evaluation, one line per episode, not compressed."""
TOKENS = "tokens"

Kind: TypeAlias = Literal["training", "sft", "evaluation", "pipeline"]
"""Kind of a run."""
Split: TypeAlias = Literal["train", "eval"]
"""Whether episodes are for training (``train``) or on held-out problems (``eval``)."""

_STEP_FILE = re.compile(r"(train|eval)-(\d+)(?:-rank(\d+))?\.jsonl(?:\.gz)?")


@dataclass(frozen=True, slots=True)
class StepFile:
    """A file with the episodes or the tokens of one step.

    Attributes:
        path: The file.
        split: ``"train"`` or ``"eval"``.
        step: The step.
        rank: Number of the process that wrote the file.
    """

    path: Path
    split: str
    step: int
    rank: int


def step_file(split: Split, step: int, rank: int) -> str:
    """Return the file name for a step: ``train-000012.jsonl.gz``, or ``train-000012-rank1.jsonl.gz`` for process 1."""
    return f"{split}-{step:06d}{f'-rank{rank}' if rank else ''}.jsonl.gz"


def step_files(folder: Path, split: str | None = None, step: int | None = None) -> list[StepFile]:
    """Return the step files in a folder, sorted by split, step and process; other files are left out.

    Args:
        folder: The folder; a missing one has no files.
        split: The split whose files are returned; ``None`` for both.
        step: The step whose files are returned; ``None`` for all.
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    found = []
    for name in names:
        match = _STEP_FILE.fullmatch(name)
        if match and split in (None, match[1]) and step in (None, int(match[2])):
            found.append(StepFile(folder / name, match[1], int(match[2]), int(match[3] or 0)))
    return sorted(found, key=lambda file: (file.split, file.step, file.rank))


def episode_key(split: str, step: int, line: int, rank: int) -> str:
    """Return the key of an episode, such as ``train-3-17``.

    Args:
        split: ``"train"`` or ``"eval"``.
        step: Step of the episode.
        line: Number of its line in the file of the step, from 0.
        rank: Number of the process that wrote the episode; the key omits it if it is 0.
    """
    return f"{split}-{step}-{line}" + (f"-rank{rank}" if rank else "")
