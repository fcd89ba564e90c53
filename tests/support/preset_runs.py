"""Presets of pipelines/, scaled down: which sizes are made smaller, and what stands in for what must be downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guesser import ENV_OPTIONS
from places import ROOT

from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.trainers.options.layers import merged

_ALGORITHMS = ("expert_iteration", "ra3", "relift", "totrl")
"""Pipelines that are an algorithm; tests/trainers/pipeline runs each."""
PRESETS = {
    path.stem: path
    for path in sorted((ROOT / "pipelines").glob("*.yaml"))
    if path.stem.partition("_")[0] != "tiny" and path.stem not in _ALGORITHMS
}
STEPS = 2
_REPLACED: dict[str, Any] = {
    "train": {
        "steps": STEPS,
        "options": {"problems_per_step": 2, "threads": 1, "env": ENV_OPTIONS, "eval": {"every": 1, "episodes": 2}},
    },
    "filter": {"n": 2, "env_options": ENV_OPTIONS, "drop_below": 0.0},
    "evaluate": {"n": 2, "episodes": 2, "env_options": ENV_OPTIONS},
    "sft": {"steps": STEPS, "options": {"batch_size": 4, "threads": 1}},
    "traces": {"episodes": 8, "env_options": ENV_OPTIONS},
}
"""What goes over the options of each kind of stage."""


def scaled(preset: Path, folder: Path, model: Path, problems: Path) -> Path:
    """Write a preset as a pipeline of the same stages that runs on a CPU in seconds.

    Args:
        preset: Its file.
        folder: Where to write it.
        model: Stands in for every model of a hub.
        problems: Stands in for every set of problems of the Hub.
    """
    found = read_mapping(preset)
    defaults = {kind: _on_a_cpu(options, problems) for kind, options in found.get("defaults", {}).items()}
    stages = {}
    for name, written in found["stages"].items():
        stage = _on_a_cpu(merged(defaults.get(written["kind"], {}), written), problems)
        kind = stage["kind"]
        stage = merged(stage, _REPLACED.get(kind, {}))
        if str(stage.get("model", "")).startswith(("Qwen/", "HuggingFaceTB/")):
            stage["model"] = str(model)
        if kind == "prepare":
            stage |= {"sources": _sources(stage["sources"], problems)}
            stage |= {"against": [_benchmark(folder)]} if "against" in stage else {}
        if kind == "conversations":
            stage["sources"] = {_conversations(folder): None}
        if "lock" in stage:
            stage["lock"] = str(folder / stage["lock"])
        stages[name] = {option: value for option, value in stage.items() if option not in ("expect", "total")}
    file = folder / f"{preset.stem}.json"
    file.write_text(json.dumps({"stages": stages}), "utf-8")
    return file


def _on_a_cpu(options: Mapping[str, Any], problems: Path) -> dict[str, Any]:
    devices = ("engine", "engine_options", "launch", "serve", "sharding")
    left = {name: value for name, value in options.items() if name not in devices}
    if isinstance(left.get("options"), Mapping):
        left["options"] = _on_a_cpu(left["options"], problems)
    for name in ("problems", "held_out"):
        if isinstance(left.get(name), str) and "." not in left[name] and "arithmetic" not in left[name]:
            left[name] = str(problems)
    if str(left.get("config", "")).endswith("vllm.toml"):
        left["config"] = left["config"].replace("_vllm", "")
    return left


def _sources(sources: Mapping[str, Any], problems: Path) -> dict[str, Any]:
    """Families stay, with a few problems; sets of the Hub become one file."""
    families = {name: {**one, "take": 60} for name, one in sources.items() if "arithmetic" in one["problems"]}
    return families or {"file": {"problems": str(problems)}}


def _benchmark(folder: Path) -> str:
    file = folder / "benchmark.jsonl"
    file.write_text(json.dumps({"question": "What is 0 mod 4?", "answer": "0"}) + "\n", "utf-8")
    return str(file)


def _conversations(folder: Path) -> str:
    file = folder / "conversations.jsonl"
    turns = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}]
    file.write_text((json.dumps({"messages": turns}) + "\n") * 8, "utf-8")
    return str(file)
