"""A checkpoint of another person: no reader unpickles it, and the error of a resumed run names the checkpoint."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_runner import run
from hostile_runs import Payload
from letter_env import LetterEnv

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.trl.run import process_states
from rstar2_env.trainers.backends.trl.sharding import shards
from rstar2_env.trainers.backends.trl.sharding.earlier_optimizer import OptimizerLayout, whole_state
from rstar2_env.trainers.record.checkpoints import mark_whole

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def began(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> dict[str, Any]:
    """The options of a run that has a checkpoint after its only step."""
    options = {
        "model": str(tiny_model),
        "env": LetterEnv,
        "dtype": "float32",
        "output_dir": str(tmp_path_factory.mktemp("began") / "run"),
        "problems_per_step": 2,
        "group_size": 4,
        "max_episode_tokens": 16,
        "max_turn_tokens": 2,
        "learning_rate": 3e-3,
        "threads": 2,
        "progress": False,
    }
    train({**options, "steps": 1})
    return options


def train(options: dict[str, Any]) -> None:
    trainer = trainers.make("grpo_clip_higher", **options)
    try:
        trainer.train()
    finally:
        trainer.close()


def copied(options: dict[str, Any], to: Path) -> tuple[dict[str, Any], Path]:
    """The options that resume a copy of the run, and the checkpoint of the copy."""
    shutil.copytree(options["output_dir"], to)
    return {**options, "output_dir": str(to), "steps": 2, "resume": True}, to / "checkpoint-1"


def payload(file: Path, mark: Path) -> None:
    file.write_bytes(pickle.dumps(Payload(f"touch {mark}")))


def acts(file: Path, mark: Path) -> bool:
    """Whether no reader has unpickled the payload, and the payload acts once something does."""
    refused = not mark.exists()
    pickle.loads(file.read_bytes())
    return refused and mark.exists()


@pytest.mark.parametrize(
    "name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "run_state_0.pt", "pytorch_model.bin"]
)
def test_a_run_does_not_resume_from_a_pickle(name: str, began: dict[str, Any], tmp_path: Path) -> None:
    options, checkpoint = copied(began, tmp_path / "run")
    assert (checkpoint / name).exists() is (name != "pytorch_model.bin")
    if name == "pytorch_model.bin":
        (checkpoint / "model.safetensors").unlink()
    payload(checkpoint / name, tmp_path / "mark")
    with pytest.raises(ConfigurationError, match="checkpoint-1 cannot be read: a file contains something other than"):
        train(options)
    assert acts(checkpoint / name, tmp_path / "mark")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"\xff" * 20),
        ("trainer_state.json", b"["),
        ("trainer_state.json", b'{"global_step": 1}'),
        ("complete.json", b"{}"),
        ("optimizer.pt", b""),
    ],
)
def test_a_damaged_file_of_a_checkpoint_is_an_error_that_names_the_checkpoint(
    name: str, content: bytes, began: dict[str, Any], tmp_path: Path
) -> None:
    options, checkpoint = copied(began, tmp_path / "run")
    (checkpoint / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"checkpoint-1 cannot be read: .* delete this one to resume"):
        train(options)


def test_an_optimizer_is_not_carried_over_from_a_pickle(began: dict[str, Any], tmp_path: Path) -> None:
    _, checkpoint = copied(began, tmp_path / "run")
    payload(checkpoint / "optimizer.pt", tmp_path / "mark")
    with pytest.raises(ConfigurationError, match="checkpoint-1 cannot be read"):
        train({**began, "output_dir": str(tmp_path / "new"), "steps": 1, "begin_from": str(checkpoint)})
    assert acts(checkpoint / "optimizer.pt", tmp_path / "mark")


def test_the_readers_of_states_unpickle_nothing(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint-1"
    checkpoint.mkdir()
    mark_whole(checkpoint, 1)
    OptimizerLayout("AdamW", [{"a": [2]}]).write(checkpoint)
    for name in ("run_state_0.pt", "optimizer.pt"):
        payload(checkpoint / name, tmp_path / name)
    with pytest.raises(pickle.UnpicklingError):
        process_states.read(checkpoint, 0, 1)
    with pytest.raises(pickle.UnpicklingError):
        process_states.read(checkpoint, 0, 2)
    with pytest.raises(pickle.UnpicklingError):
        whole_state(checkpoint)
    assert all(acts(checkpoint / name, tmp_path / name) for name in ("run_state_0.pt", "optimizer.pt"))


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp"])
def test_the_reader_of_shards_unpickles_nothing(name: str, tmp_path: Path) -> None:
    shards.write(tmp_path, {"weights/a": torch.ones(64)})
    file = tmp_path / "shards" / name
    size = file.stat().st_size
    payload(file, tmp_path / "mark")
    with file.open("ab") as rest:  # torch reads the stored number of bytes
        rest.write(b" " * max(0, size - file.stat().st_size))
    with pytest.raises(ConfigurationError, match=r"The weights in the checkpoint .* cannot be read: "):
        shards.read(tmp_path, lambda held: {"weights/a": torch.zeros(64)})
    assert acts(file, tmp_path / "mark")


def test_a_run_with_own_code_resumes_until_it_is_moved(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def half(groups, ranks):\n    return [[0.5 for _ in group] for group in groups]\n")
    begin = f"train grpo --model {tiny_model} --problems arithmetic --out run --steps 1 --save-every 1 --group-size 2"
    more = "--problems-per-step 1 --max-tokens 8 --set advantage=./mine.py:half --set dtype=float32 --set threads=2"
    assert run(*begin.split(), *more.split()).exit_code == 0
    resumed = run("train", "./run", "--out", "run", "--resume", "--steps", "2")
    assert resumed.exit_code == 0, resumed.output
    shutil.copytree("run", "moved")
    again = ("train", "./moved", "--out", "moved", "--resume", "--steps", "3")
    refused = run(*again)
    assert refused.exit_code == 2
    assert "names the Python code ./mine.py:half" in refused.stderr
    assert "(--trust)" in refused.stderr
    assert run(*again, "--trust").exit_code == 0
