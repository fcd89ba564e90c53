"""Writes problems as JSONL that ``load_problems`` can read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rstar2_env.core.files.json_lines import begin_lines
from rstar2_env.core.files.outputs import check_file
from rstar2_env.problems.problem import Problem


def problem_record(problem: Problem) -> dict[str, Any]:
    """A problem as one flat record, in which the fields of ``meta`` are at the same level as ``question``."""
    record: dict[str, Any] = {"id": problem.id, "question": problem.question, "answer": problem.answer}
    if problem.source:
        record["source"] = problem.source
    return record | {name: value for name, value in problem.meta.items() if name not in record}


def write_jsonl(problems: Iterable[Problem], path: Path, *, overwrite: bool = False) -> int:
    """Write problems to a JSONL file, atomically; return the number of problems.

    Args:
        problems: The problems, in the order of the lines.
        path: The file; its folder is created if needed.
        overwrite: Replace it if it exists.

    Raises:
        ConfigurationError: The file exists already, or cannot be written.
    """
    check_file(path, overwrite=overwrite, lines=True)
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for count, problem in enumerate(problems, 1):  # noqa: B007  # the number of the last one
            yield json.dumps(problem_record(problem), ensure_ascii=True, default=str) + "\n"

    begin_lines(path, lines()).close()
    return count
