"""``rstar2 demo`` from a shell; ``tests/trainers/demonstration`` tests what it trains."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

from cli_runner import run
from places import ROOT

from rstar2_env.cli.demo import FIGURES


def test_the_last_line_is_the_command_that_shows_the_runs(monkeypatch):
    figures = dict.fromkeys(FIGURES, 0.5)
    folders = [Path("my runs/demo/grpo_roc"), Path("my runs/demo/grpo")]
    runs = {
        folder.name: SimpleNamespace(before=figures, after=figures, output_dir=folder, outcome="finished", verdict=None)
        for folder in folders
    }
    result = SimpleNamespace(runs=runs, comparisons=[], seconds={}, picture="a.png", comparison_picture="b.png")
    known = SimpleNamespace(get=lambda name: name)
    trained = SimpleNamespace(TRAINERS=known, demo=lambda **options: result)
    monkeypatch.setattr("rstar2_env.cli.demo.import_trainers", lambda: trained)
    told = " ".join(run("demo", columns=200).output.split())
    command = told.partition("To see the episodes: ")[2]
    assert shlex.split(command) == ["rstar2", "view", *map(str, folders)]


def test_what_this_command_needs_comes_with_the_extra_that_trains():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "rstar2-env[view]" in extras["train"]
    assert {one.split(">")[0] for one in extras["view"]} == {"starlette", "uvicorn", "textual"}
