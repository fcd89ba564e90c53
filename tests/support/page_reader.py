"""The reader that docs/run-folder.md shows, and what it must find in a run: the same as ``read_run``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from places import DOCS

from rstar2_env.core.run_folder import read_run

PAGE = DOCS / "run-folder.md"
SOMETIMES = {"weighed", "copies", "problem_source", "difficulty", "gold"}
"""Keys of an episode that a line has only where there is something to tell."""


def page_reader() -> Callable[[Path], tuple[Any, ...]]:
    """``read`` of the page."""
    scope: dict[str, Any] = {}
    code = re.findall(r"## A reader\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]
    exec(compile(code, str(PAGE), "exec"), scope)
    read: Callable[[Path], tuple[Any, ...]] = scope["read"]
    return read


def keys_of(section: str) -> set[str]:
    """The words in code in the first column of a section's tables."""
    text = PAGE.read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return {key for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}


def check_page_reader(folder: Path) -> None:
    """Assert that the page's reader finds what ``read_run`` finds, and that the page names every key."""
    config, figures, events, episodes = page_reader()(folder)
    run = read_run(folder)
    assert config == run.config
    assert [figures[step] for step in sorted(figures)] == [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in line.items()}
        for line in run.metrics()
    ]
    for name, found in (("checkpoint", run._lasting("checkpoint")), ("evaluation", run._lasting("evaluation"))):
        assert [event for event in events if event["event"] == name] == found
    assert {event["event"] for event in events} <= keys_of("`events.jsonl`")
    assert sorted(step for split, step in episodes if split == "eval") == run.evaluated_steps
    assert {step for split, step in episodes if split == "train"} <= set(run.steps)
    named = keys_of("Episodes")
    evaluated = {"start", "sample", "chain"}
    assert all(f"`{key}`" in PAGE.read_text("utf-8") for key in evaluated)
    for (split, step), lines in episodes.items():
        entries = run.episodes(step) if split == "train" else run.held_out(step)
        assert len(lines) == len(entries)
        said = {"step", "group", "member", "round", "kept", "reason", "advantage"} | SOMETIMES
        beside = said if split == "train" else {"index", "seconds", "run", *evaluated}
        for line in lines:
            assert set(line) <= named | beside
            assert set(line) >= named - (SOMETIMES if split == "train" else said)
        number = "group" if split == "train" else "index"
        order = sorted(lines, key=lambda line: (line.get("round", 0), line[number], line.get("member", 0)))
        assert [line["messages"] for line in order] == [entry.episode.record()["messages"] for entry in entries]
        assert [line.get("kept", False) for line in order] == [entry.kept for entry in entries]
