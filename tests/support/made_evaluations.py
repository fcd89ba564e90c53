"""Evaluations as files, with as many right samples of each problem as a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core.episode import Episode


def sample(
    problem: str, correct: bool, *, answer: str = "", calls: Sequence[str] = (), end: str = "answered"
) -> Episode:
    """An episode of one turn."""
    made = Episode(seed=0).begin("Question?", {"problem_id": problem})
    info: dict[str, Any] = {"end": "answered", "answer": "1" if correct else "2", "correct": correct}
    info |= {"answer_tags": 1, "tool_calls": [{"status": status} for status in calls]}
    made.step("so", ("", float(correct), True, False, info))
    return made


def write_evaluation(path: Path, episodes: Sequence[Episode], *, golds: Mapping[str, str] | None = None) -> Path:
    """The file of an evaluation that played these episodes."""
    with path.open("w", encoding="utf-8") as file:
        for index, episode in enumerate(episodes):
            record = episode.record()
            del record["group"]
            line = {"index": index, **record, "gold": (golds or {}).get(episode.problem_id), "run": {"env": "x"}}
            file.write(json.dumps(line) + "\n")
    return path


def write_counts(path: Path, counts: Mapping[str, tuple[int, int]], **options: Any) -> Path:
    """The file of an evaluation with so many right samples, of so many, of each problem."""
    episodes = [
        sample(problem, number < right) for problem, (right, samples) in counts.items() for number in range(samples)
    ]
    return write_evaluation(path, episodes, **options)
