"""The pipeline ``expert_iteration`` in miniature: the expert gets better, and the last one begins at the base model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import prepared
import pytest
from places import ROOT

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.pipeline.file import Pipeline, read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.run import run_pipeline
from rstar2_env.trainers.pipeline.state import states_of

pytestmark = pytest.mark.train

ENV = f"{ROOT / 'tests/support/letter_env.py'}:LetterEnv"
KILLED = """
import json, os, signal, sys, threading, time
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[3])
from test_expert_iteration import small
from rstar2_env.trainers.pipeline.run import run_pipeline

def watch(marker):
    while not marker.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

folder = Path(sys.argv[1])
marker = folder / "stages/learn-2/checkpoint-4/complete.json"
threading.Thread(target=watch, args=(marker,), daemon=True).start()
run_pipeline(small(sys.argv[2]), folder, progress=False)
"""


def small(model: str) -> Pipeline:
    """The pipeline on a tiny model, in a world in which a first letter decides; two rounds."""
    plays: dict[str, Any] = {
        "problems": None,
        "episodes": 32,
        "n": 4,
        "env": ENV,
        "model_options": {"max_episode_tokens": 4, "max_turn_tokens": 2},
    }
    learns = {"batch_size": 16, "learning_rate": 0.02, "warmup_ratio": 0.0, "threads": 1, "save_every": 4}
    first = {"episodes": 4, "env_options": {"dialect_options": {"system": "", "instruction": ""}}}
    settings: dict[str, Any] = {
        "data": {"problems": "arithmetic:level=1", "count": 16, "held_out_count": 4},
        "first": first,
        "cold_start": {"model": model, "steps": 1, "options": {**learns, "learning_rate": 1e-5}},
        "expert": {"rounds": 2},
        "play": plays,
        "learn": {"steps": 12, "options": learns},
        "keep": {"per_problem": 4},
        "again": plays,
        "cleaner": {"per_problem": 4},
        "retrain": {"model": model, "steps": 16, "options": learns},
        "after": {**plays, "problems": None},
    }
    return read_pipeline(find_pipeline("expert_iteration"), settings)


@pytest.fixture(scope="module")
def folder(tiny_model, tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("whole")
    run_pipeline(small(str(tiny_model)), found, progress=False)
    return found


def figures(folder: Path) -> dict[str, Any]:
    return {name: state.figures for name, state in states_of(read_run(folder).events).items()}


def test_the_expert_gets_better_and_the_last_one_from_the_base_model_too(folder, tiny_model):
    rates = {name: found["pass_rate"] for name, found in figures(folder).items() if "pass_rate" in found}
    assert list(rates) == ["play-1", "play-2", "again", "after"]
    assert rates["again"] > rates["play-1"] + 0.2, rates
    assert rates["after"] > rates["play-1"] + 0.2, rates
    begun = {
        name: json.loads((folder / "stages" / name / "sft.json").read_text("utf-8"))["model"]
        for name in ("learn-1", "learn-2", "retrain")
    }
    assert begun["retrain"] == str(tiny_model)
    assert Path(begun["learn-1"]).name == "cold_start"
    assert Path(begun["learn-2"]).name == "learn-1"


def test_only_right_episodes_were_learned_and_both_tails_were_left_out(folder):
    for name, play in (("keep-1", "play-1"), ("keep-2", "play-2"), ("cleaner", "again")):
        found = figures(folder)[name]
        assert found["turns_dropped_low"] > 0
        assert found["turns_dropped_high"] > 0
        right = {
            tuple(message.content for message in entry.episode.messages)
            for entry in read_run(folder / "stages" / play).held_out()
            if entry.episode.correct
        }
        lines = (folder / "stages" / name / "traces.jsonl").read_text("utf-8").splitlines()
        new = [record for record in map(json.loads, lines) if "perplexities" in record]
        said = {tuple(message["content"] for message in record["messages"]) for record in new}
        assert said
        assert all(texts[-1][:1].islower() for texts in said)
        if name != "keep-2":  # which has those of the first round too
            assert said <= {texts[: len(next(iter(said)))] for texts in right}
    traces = [figures(folder)[name]["traces"] for name in ("keep-1", "keep-2", "cleaner")]
    assert traces[0] < traces[1]  # what was kept before is learned from again
    assert traces[2] == figures(folder)["cleaner"]["new"]  # the last expert begins without


def test_killed_in_the_second_round_it_goes_on_and_ends_the_same(folder, tiny_model, tmp_path):
    paths = json.dumps([str(Path(__file__).parent), str(ROOT / "tests/support")])
    words = ["-c", KILLED, str(tmp_path), str(tiny_model), paths]
    killed = prepared.run(words, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=800)
    assert killed.returncode == -9, killed.stderr[-2000:]
    states = states_of(read_run(tmp_path).events)
    assert states["keep-2"].ended
    assert not states["learn-2"].ended
    before = (tmp_path / "stages/learn-1/model.safetensors").stat().st_mtime_ns
    run_pipeline(small(str(tiny_model)), tmp_path, progress=False)
    assert (tmp_path / "stages/learn-1/model.safetensors").stat().st_mtime_ns == before
    assert {e["event"] for e in read_run(tmp_path / "stages/learn-2").events} >= {"started", "resumed", "finished"}
    for name in ("learn-2", "retrain"):
        whole, resumed = ((one / "stages" / name / "model.safetensors").read_bytes() for one in (folder, tmp_path))
        assert resumed == whole, name
