"""A training run of two steps whose policy calls a tool of a foreign MCP server (mcp-server-time)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from recipe_run import train_recipe
from scripted_policy import World

from rstar2_env.core.run_folder import read_run
from rstar2_env.dialects import make_dialect
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

CLOCK = f"mcp:{Path(sys.executable).parent / 'mcp-server-time'}"
DIALECT = make_dialect("rstar2")
AHEAD = {
    "Africa/Maputo": 2,
    "Asia/Riyadh": 3,
    "Asia/Dubai": 4,
    "Asia/Karachi": 5,
    "Asia/Dhaka": 6,
    "Asia/Bangkok": 7,
    "Asia/Singapore": 8,
    "Asia/Tokyo": 9,
}
"""Hours that zones without summer time are ahead of UTC."""


def script(text, rng):
    """Ask the server for most answers, with wrong arguments at times, and guess the others wrong."""
    zone = re.search(r"How many hours is (\S+) ahead", text)
    if zone is None:
        return None
    if "<tool_response>\n" not in text and rng.random() < 0.7:
        source = ["UTC", 7][int(rng.random() < 0.3)]
        arguments = {"source_timezone": source, "time": "00:00", "target_timezone": zone[1]}
        return DIALECT.format_call("convert_time", arguments)
    found = re.search(r'time_difference": "\+(\d+)', text)
    return DIALECT.format_answer(found[1] if found else "1")


def test_two_steps_of_training_with_a_foreign_server(tmp_path):
    problems = [
        {"id": zone, "question": f"How many hours is {zone} ahead of UTC?", "answer": str(hours)}
        for zone, hours in AHEAD.items()
    ]
    options = {"problems": problems, "tools": [f"{CLOCK}:lifetime=shared,only=convert_time"], "max_turns": 3}
    world = World("rstar2/MathTool-v0", options, script, 4000)
    train_recipe("grpo_roc", world, make_tiny_model(tmp_path / "model", hidden=32, layers=1), tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.finished
    assert run.steps == [1, 2]
    episodes = [entry.episode for step in run.steps for entry in run.episodes(step)]
    assert {status for episode in episodes for status in episode.statuses} == {"ok", "invalid_arguments"}
    assert {episode.reward for episode in episodes} == {0.0, 1.0}
    assert all("ok" in episode.statuses for episode in episodes if episode.reward == 1.0)
    assert any(line.get("grad_norm", 0) > 0 for line in run.metrics())
