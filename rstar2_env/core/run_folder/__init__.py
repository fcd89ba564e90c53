"""The folder of a run: one format for training, evaluation and pipelines, with a writer and a reader.

docs/run-folder.md describes the files for readers that do not use this package.
"""

from __future__ import annotations

from rstar2_env.core.run_folder.entries import Decision, EpisodeEntry, TokensEntry
from rstar2_env.core.run_folder.layout import Kind
from rstar2_env.core.run_folder.reader import Checkpoint, EvaluationFigures, Run, read_run
from rstar2_env.core.run_folder.writer import ExtraKeys, RunWriter

__all__ = [
    "Checkpoint",
    "Decision",
    "EpisodeEntry",
    "EvaluationFigures",
    "ExtraKeys",
    "Kind",
    "Run",
    "RunWriter",
    "TokensEntry",
    "read_run",
]
