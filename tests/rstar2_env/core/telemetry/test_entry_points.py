"""Each entry point that plays sends its episodes to the collector that the variables name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

from cli_runner import run
from otlp_receiver import OtlpReceiver, otlp_receiver

from rstar2_env.traces.playing import play_traces

MATH = "rstar2/MathTool-v0"


def agents(receiver: OtlpReceiver) -> list[str]:
    return [one.name for one in receiver.spans if one.name.startswith("invoke_agent")]


def test_traces_that_an_agent_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        play_traces(
            MATH, "oracle", out=tmp_path / "t.jsonl", problems="arithmetic", episodes=2, workers=1, progress=False
        )
    assert agents(receiver) == ["invoke_agent Oracle"] * 2


def test_traces_from_worked_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        done = run("traces", "--problems", "arithmetic", "--episodes", "2", "--out", tmp_path / "traces.jsonl")
    assert done.exit_code == 0, done.output
    assert len(agents(receiver)) == 2


def test_a_person_who_plays_in_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = tmp_path / "problems.jsonl"
    problems.write_text(json.dumps({"id": "p1", "question": "What is 6*7?", "answer": "42"}) + "\n")
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        done = run("play", MATH, "--problems", problems, "-n", "1", stdin=":answer 42\n")
    assert done.exit_code == 0, done.output
    assert agents(receiver) == ["invoke_agent Typist"]
