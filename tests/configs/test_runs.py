"""Every run of configs/ trains as it stands, with a tiny model and fewer groups in fewer steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from guesser import ENV_OPTIONS, make_guesser, write_problems
from places import ROOT
from vllm_serve import needs_vllm

from rstar2_env.core.run_folder import read_run

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytestmark = pytest.mark.slow


def values(table: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Options by their dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from values(value, f"{within}{name}.")
        else:
            yield within + name, value


FILES = sorted((ROOT / "configs").glob("*.toml"))
LAUNCHED = ("vllm_servers",)
"""Those whose servers `rstar2 launch` starts; see test_launched.py."""
SCALED = {
    "run": {"steps": 2},
    "rollout": {"problems_per_step": 2},
    "eval": {"every": 1, "episodes": 4},
}
"""The sizes that are made smaller; all else is as in the file, but for what is each run's own (``OWN``)."""
OWN = {
    *("model.path", "run.output_dir", "run.threads", "run.progress"),
    *(f"rollout.env_options.{name}" for name in ("problems", "holdout", *dict(values(ENV_OPTIONS)))),
}
"""The model, the problems and the folder, which no file names."""
ON_A_CPU = {"one_gpu_vllm": {"sleep": False}}
"""Options of engines that exist on accelerators alone."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_guesser(tmp_path_factory.mktemp("guesser"))


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_problems(tmp_path_factory.mktemp("problems") / "problems.jsonl")


@pytest.mark.parametrize("file", [file for file in FILES if file.stem not in LAUNCHED], ids=lambda file: file.stem)
def test_it_trains(file: Path, model: Path, problems: Path, tmp_path: Path) -> None:
    from rstar2_env.trainers import api

    if "vllm" in file.stem:
        needs_vllm()
    name, layers = api.layers_of(None, file)
    own = {
        "model": str(model),
        "output_dir": str(tmp_path / "run"),
        "threads": 1,
        "progress": False,
        "env": {"problems": str(problems), "holdout": 0.25, **ENV_OPTIONS},
        "engine_options": ON_A_CPU.get(file.stem, {}),
    }
    trainer = api.make_trainer(name, *layers, SCALED, own)
    try:
        trainer.train()
    finally:
        trainer.close()
    check(file, tmp_path / "run", trainer.config.record())


def check(file: Path, folder: Path, record: Mapping[str, Any]) -> None:
    """What holds of a run of a file: it had the file's options but for the scaled ones, and its steps trained."""
    from rstar2_env.trainers import api

    recipe, of_file = api.find_recipe(str(file))
    said, had = (dict(values(one)) for one in (recipe.configure(of_file, {"model": "any"}).record(), record))
    scaled = {name for name, _ in values(SCALED)} | {
        f"rollout.engine_options.{name}" for name in ON_A_CPU.get(file.stem, {})
    }
    changed = {name for name in said.keys() | had.keys() if said.get(name) != had.get(name)}
    # The correction "auto" is read as the one that suits the engine.
    assert {name for name in changed - scaled - OWN if not name.startswith("parts.correction.")} == set()
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
