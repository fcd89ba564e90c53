"""A pretrained model through the chain of ``make train-real``, cut down to two steps of each kind of training."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="this trains: the extra 'train'")

from real_model import smollm2
from safetensors.torch import load_file

from rstar2_env.core.run_folder import read_run

pytestmark = [pytest.mark.train, pytest.mark.slow]

STEPS, EPISODES, GROUP, GROUPS = 2, 2, 2, 2
SHORT = {"max_turn_tokens": 24, "max_episode_tokens": 48}
EVALUATED = {"episodes": EPISODES, **{f"model_options.{name}": value for name, value in SHORT.items()}}
ONE_CHECKPOINT = {"options.save_every": 0}
"""A checkpoint of this model with its optimizer takes 1.5 GB."""
SMALLER = {
    "data": {"count": 32, "held_out_count": 8},
    "traces": {"episodes": 16},
    "cold_start": {
        "steps": STEPS,
        **{"options.batch_size": 4, "options.rows_per_device": 4, "options.warmup_ratio": 0},
        **ONE_CHECKPOINT,
    },
    "train": {
        "steps": STEPS,
        **{f"options.{name}": value for name, value in SHORT.items()},
        **{"options.problems_per_step": GROUPS, "options.group_size": GROUP, "options.warmup_steps": 0},
        **ONE_CHECKPOINT,
    },
    **dict.fromkeys(("before", "after_start", "after"), EVALUATED),
}
REWARD = """\
def letters(completions, **kwargs):
    return [len(set(text)) / 100 for text in completions]
"""
"""A reward in which the episodes of a group differ: two steps do not teach a model to solve a problem."""


def largest_change(before: Path, after: Path) -> float:
    """The largest change of a weight."""
    old, new = (load_file(folder / "model.safetensors") for folder in (before, after))
    return max(float((old[name].float() - weights.float()).abs().max()) for name, weights in new.items())


def test_two_steps_of_each_training_change_a_real_model(tmp_path):
    base, out, reward = smollm2(), tmp_path / "run", tmp_path / "reward.py"
    reward.write_text(REWARD)
    options = {f"{stage}.{name}": value for stage, given in SMALLER.items() for name, value in given.items()}
    options |= {"before.model": base, "cold_start.model": base, "train.options.reward": f"{reward}:letters"}
    command = [sys.executable, "-m", "rstar2_env.cli", "run", "smollm2_cpu", "-o", str(out)]
    command += [f"--set={name}={value}" for name, value in options.items()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = out / "stages"
    for name in ("before", "after_start", "after"):
        summary = json.loads((stages / name / "summary.json").read_text())
        assert (summary["episodes"], summary["unavailable"]) == (EPISODES, 0)
    trained = {name: read_run(stages / name) for name in ("cold_start", "train")}
    for run in trained.values():
        losses = [line["loss"] for line in run.metrics() if "loss" in line]
        assert len(losses) == STEPS
        assert all(map(math.isfinite, losses))
    assert all(len(trained["train"].episodes(step)) >= GROUPS * GROUP for step in (1, STEPS))
    start, last = stages / "cold_start", stages / "train" / "final"
    assert 0 < largest_change(base, start) < 0.1
    assert 0 < largest_change(start, last) < 0.01
