"""Claims about progress: lines now and then without a terminal, a bar on one, and nothing on stdout."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from types import SimpleNamespace

import pytest
from cli_runner import run

from rstar2_env.cli import _progress
from rstar2_env.cli._progress import progress, progress_line


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        ((120, 1319, 120, 5.0), "playing: 120/1319 (9 %), 24.0/s, 50 s left"),
        ((120, None, 120, 5.0), "playing: 120, 24.0/s"),
        ((700, 1000, 8, 5.0), "playing: 700/1000 (70 %), 1.6/s, 3 min left"),
        ((1, 1000, 1, 60.0), "playing: 1/1000 (0 %), 1.0/min, 16 h 39 min left"),
    ],
)
def test_a_line_tells_done_total_rate_and_time_left(figures, line):
    assert progress_line("playing", *figures) == line


def test_what_an_earlier_run_did_is_not_counted_as_speed(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with progress("playing") as report:
        for done in range(501, 521):
            now[0] += 1.0
            report(done, 1000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "playing: 505/1000 (50 %), 1.0/s, 8 min left"
    assert len(lines) == 2  # after 5 seconds and 10 more


def test_what_is_over_soon_says_nothing(capsys):
    with progress("playing") as report:
        report(1, 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "rstar2/MathTool-v0", "--agent", "oracle", "--problems", "arithmetic", "-n", "20"),
        ("validate", "rstar2/MathTool-v0", "-n", "20", "--no-contract"),
        ("traces", "--problems", "arithmetic", "-n", "20", "--out", "OUT"),
    ],
)
def test_commands_tell_how_far_they_are_without_a_terminal(command, tmp_path, monkeypatch):
    monkeypatch.setattr(_progress, "FIRST_LINE_S", 0.0)
    monkeypatch.setattr(_progress, "MOST_S", 0.0)
    words = [str(tmp_path / "out.jsonl") if word == "OUT" else word for word in command]
    done = run(*words, "--json")
    assert "20/20 (100 %)" in done.stderr
    json.loads(done.stdout)


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar_that_goes_away_and_tables_fit():
    program = "from rstar2_env.cli import main; main()"
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
