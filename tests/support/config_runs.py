"""Runs of the files of configs/, scaled down: what is made smaller, and what holds of a run all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from guesser import ENV_OPTIONS
from places import ROOT

from rstar2_env.core.run_folder import read_run

FILES = sorted((ROOT / "configs").glob("*.toml"))


def values(table: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Options by their dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from values(value, f"{within}{name}.")
        else:
            yield within + name, value


SCALED = {
    "run": {"steps": 2},
    "rollout": {"problems_per_step": 2},
    "eval": {"every": 1, "episodes": 4},
}
"""The sizes that are made smaller; all else is as in the file, but for what is each run's own (``OWN``)."""
OWN = {
    *("trainer", "model.path", "run.output_dir", "run.threads", "run.progress"),
    "rollout.engine_options.base_urls",  # where the servers of this launch are
    *(f"rollout.env_options.{name}" for name in ("problems", "holdout", *dict(values(ENV_OPTIONS)))),
}
"""The model, the problems and the folder, which no file names."""
ON_A_CPU = {"one_gpu_vllm": {"sleep": False}}
"""Options of engines that exist on accelerators alone."""


def train_run(file: Path, own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Train a run of a file, scaled down, and return the record of its options."""
    from rstar2_env.trainers import api

    name, layers = api.layers_of(None, file)
    trainer = api.make_trainer(name, *layers, SCALED, dict(own))
    try:
        trainer.train()
    finally:
        trainer.close()
    return dict(trainer.config.record())


def check_run(file: Path, folder: Path, record: Mapping[str, Any]) -> None:
    """What holds of a run of a file: it had the file's options but for the scaled ones, and its steps trained."""
    from rstar2_env.trainers import api

    recipe, of_file = api.find_recipe(str(file))
    said, had = (dict(values(one)) for one in (recipe.configure(of_file, {"model": "any"}).record(), record))
    scaled = {name for name, _ in values(SCALED)} | {
        f"rollout.engine_options.{name}" for name in ON_A_CPU.get(file.stem, {})
    }
    changed = {name for name in said.keys() | had.keys() if said.get(name) != had.get(name)}
    # The correction "auto" is read as the one that suits the engine.
    odd = {name for name in changed - scaled - OWN if not name.startswith("parts.correction.")}
    assert odd == set(), f"the run and its file differ in {sorted(odd)}"
    run = read_run(folder)
    assert run.finished
    lines = list(run.metrics())
    trained = [line for line in lines if "loss" in line]
    assert [line["step"] for line in trained] == [1, 2]
    assert any(line["grad_norm"] > 0 for line in trained)
    groups = SCALED["rollout"]["problems_per_step"]
    episodes = groups * said["rollout.group_size"] * said["rollout.oversample"]
    assert {line["rollout/episodes"] for line in trained} == {episodes}
    assert {line["rollout/unavailable"] for line in trained} == {0.0}
    assert sum("eval/pass_rate" in line for line in lines) >= 2
