"""Writes problems as JSONL that ``load_problems`` can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems.problem import Problem


def problem_record(problem: Problem) -> dict[str, Any]:
    """A problem as one flat record, with its ``meta`` next to its own fields."""
    record: dict[str, Any] = {"id": problem.id, "question": problem.question, "answer": problem.answer}
    if problem.source:
        record["source"] = problem.source
    return record | {name: value for name, value in problem.meta.items() if name not in record}


def write_jsonl(problems: Iterable[Problem], path: Path, *, overwrite: bool = False) -> int:
    """Write a file atomically; return the number of problems.

    Args:
        problems: The problems, in the order of the lines.
        path: The file; its folder is created if needed.
        overwrite: Replace it if it exists.

    Raises:
        ConfigurationError: The file exists already, or cannot be written.
    """
    if path.exists() and not overwrite:
        raise ConfigurationError(f"{path} exists already: choose another file, or replace it.", option="overwrite")
    count = 0
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("w", encoding="utf-8") as file:
                for problem in problems:
                    file.write(json.dumps(problem_record(problem), ensure_ascii=True, default=str) + "\n")
                    count += 1
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}.") from error
    return count
