"""The demonstration runs from nothing, and does not do again what is done."""

import json
import os
import signal

import pytest
from demo_files import DEMO_MAKES

from rstar2_env import trainers
from rstar2_env.core.progress import activities, screens
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.backends.trl.run.callbacks import Console
from rstar2_env.trainers.demonstration.options import DemoOptions
from rstar2_env.trainers.demonstration.run import _write_traces

pytestmark = pytest.mark.train


def test_the_demonstration_goes_from_nothing_to_a_table_and_a_picture(tmp_path):
    options = {
        "output_dir": str(tmp_path / "demo"),
        "trainers": ("grpo_roc", "grpo_clip_higher"),
        "traces": 96,
        "sft_steps": 4,
        "steps": 2,
        "eval_episodes": 16,
        "eval_problems": 3,
        "eval_samples": 4,
        "threads": 2,
        "progress": False,
    }
    first = trainers.demo(**options)
    assert set(first.runs) == {"grpo_roc", "grpo_clip_higher"}
    evaluated = {"eval-cold-start", "eval-grpo_roc", "eval-grpo_clip_higher"}
    assert set(first.seconds) == {"traces", "cold start", "grpo_roc", "grpo_clip_higher", *evaluated}
    assert first.picture.read_bytes().startswith(b"\x89PNG")
    # The same cold start and the same held-out problems.
    assert json.dumps(first.runs["grpo_roc"].before) == json.dumps(first.runs["grpo_clip_higher"].before)

    # What each trainer made of the cold start, against it, on the same problems, several times each.
    for comparison, name in zip(first.comparisons, ("grpo_roc", "grpo_clip_higher"), strict=True):
        assert comparison.problems == 3
        assert (comparison.baseline.name, comparison.other.name) == (
            str(tmp_path / "demo" / "eval-cold-start"),
            str(tmp_path / "demo" / f"eval-{name}"),
        )
        assert {"pass@1", "pass@4", "maj@4"} <= set(comparison.figures)
    assert first.comparison_picture.read_bytes().startswith(b"\x89PNG")

    assert all((tmp_path / "demo" / name).exists() for name in DEMO_MAKES if not name.endswith("best"))

    traces = [json.loads(line) for line in (tmp_path / "demo" / "traces.jsonl").read_text().splitlines()]
    assert len(traces) == 96
    assert 0.1 < sum(t["call_mistake"] is not None for t in traces) / 96 < 0.6

    again = trainers.demo(**options)
    assert "cold start" not in again.seconds
    # As text, in which one NaN equals another.
    assert json.dumps(again.runs["grpo_roc"].after) == json.dumps(first.runs["grpo_roc"].after)
    assert [one.record() for one in again.comparisons] == [one.record() for one in first.comparisons]
    assert json.dumps(again.runs["grpo_roc"].history) == json.dumps(first.runs["grpo_roc"].history)


def test_the_traces_are_counted_while_they_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(activities, "TICK_S", 0.0)
    monkeypatch.setattr(screens, "FIRST_LINE_S", 0.0)
    _write_traces(tmp_path / "traces.jsonl", DemoOptions(traces=3), {})
    assert "writing traces: 3/3 (100 %)" in capsys.readouterr().err


def test_a_cold_start_that_was_stopped_goes_on_by_the_same_call(tmp_path, monkeypatch):
    options = {
        "output_dir": str(tmp_path / "demo"),
        "traces": 64,
        "sft_steps": 12,
        "steps": 1,
        "eval_episodes": 8,
        "eval_problems": 2,
        "eval_samples": 2,
        "threads": 1,
        "progress": False,
    }
    logged = Console.on_log

    def stopped(self, args, state, control, **kwargs):
        if state.global_step == 3:  # once, since a second signal ends the run without a checkpoint
            os.kill(os.getpid(), signal.SIGINT)
        return logged(self, args, state, control, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Console, "on_log", stopped)
        with pytest.raises(KeyboardInterrupt):
            trainers.demo(**options)
    start = tmp_path / "demo" / "cold-start"
    assert not read_run(start).finished
    result = trainers.demo(**options)
    assert "cold start" in result.seconds
    assert "traces" not in result.seconds, "they were whole"
    assert "resumed" in [event["event"] for event in read_run(start).events]
    assert read_run(start).finished
