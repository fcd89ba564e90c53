"""Claims about progress: lines now and then without a terminal, a bar on one, and nothing on stdout."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest
from cli_runner import run

from rstar2_env.core.progress import activities, screens


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "rstar2/MathTool-v0", "--agent", "oracle", "--problems", "arithmetic", "-n", "20"),
        ("validate", "rstar2/MathTool-v0", "-n", "20", "--no-contract"),
        ("traces", "--problems", "arithmetic", "-n", "20", "--out", "OUT"),
        ("problems", "stats", "arithmetic", "-n", "20"),
    ],
)
def test_commands_tell_how_far_they_are_without_a_terminal(command, tmp_path, monkeypatch):
    monkeypatch.setattr(activities, "TICK_S", 0.0)
    monkeypatch.setattr(screens, "FIRST_LINE_S", 0.0)
    words = [str(tmp_path / "out.jsonl") if word == "OUT" else word for word in command]
    done = run(*words, "--json")
    assert "20/20 (100 %)" in done.stderr
    json.loads(done.stdout)


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar_that_goes_away_and_tables_fit():
    # The bar of "playing" is not waited for, so that a fast machine shows it too.
    program = (
        "from rstar2_env.core.progress import activities, screens; "
        "activities.TICK_S, screens.FIRST_BAR_S = 0.02, 0.0; "
        "from rstar2_env.cli import main; main()"
    )
    words = ("eval", "rstar2/MathTool-v0", "--agent", "oracle", "--problems", "arithmetic", "-n", "30")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    assert process.wait() == 0
    os.close(ours)
    text = shown.decode()
    assert "playing" in text
    table = text[text.index("┌") :].splitlines()
    assert all(len(line) <= 80 for line in table)
    assert "pass rate" in "".join(table)
