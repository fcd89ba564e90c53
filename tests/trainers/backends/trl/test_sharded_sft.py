"""Sharded cold starts on two processes: the losses and weights of one process, resumed checkpoints, exports.

One pair of processes takes all cases.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch_launcher import launch
from transformers import AutoModelForCausalLM

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers import export_model
from rstar2_env.trainers.backends.trl import sft as cold_start
from rstar2_env.trainers.export.source import find_weights

pytestmark = [pytest.mark.train, pytest.mark.slow]

SCRIPT = """
import shutil, sys
from pathlib import Path
import torch
from transformers import TrainerCallback
from transformers.integrations.deepspeed import unset_hf_deepspeed_config
from rstar2_env.trainers.backends.trl.model import processes
from rstar2_env.trainers.backends.trl.sft_trainer import SftTrainer
from test_sharded_sft import CASES, SAVED, STOPPED, cold_started, stopped

torch.set_num_threads(1)
model, folder, parts = sys.argv[1], Path(sys.argv[2]), {}


class Parts(TrainerCallback):
    def on_step_begin(self, args, state, control, model=None, **kwargs):
        kinds = sorted({type(one).__name__ for one in model.parameters()})
        parts[name] = kinds, type(self.trainer.model_wrapped).__name__


train = SftTrainer.train
def watched(self, *args, **kwargs):
    seen = Parts()
    seen.trainer = self
    self.add_callback(seen)
    return train(self, *args, **kwargs)


SftTrainer.train = watched
for name in CASES:
    if name == "resumed":
        if processes().is_main_process:
            stopped(folder / SAVED, folder / name)
        processes().wait_for_everyone()
    cold_started(name, model, folder / name, 2)
    unset_hf_deepspeed_config()
torch.save(parts, folder / f"parts-{processes().process_index}.pt")
"""
SAVED, STOPPED, STEPS = "fsdp2", 2, 4
CASES: dict[str, dict[str, Any]] = {
    SAVED: {"sharding": "fsdp2", "save_every": 2},
    "resumed": {"sharding": "fsdp2", "save_every": 2, "resume": True},
    "fsdp2-lora": {"sharding": "fsdp2", "lora_rank": 4},
    "zero3": {"sharding": "zero3"},
}
if find_spec("deepspeed") is None:
    del CASES["zero3"]
BATCH = 12
MOST_TOKENS = 60
"""Tokens of a pass; the rows of one process then need fewer passes than those of the other."""


def trace(question: str, answer: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


TRACES = [trace(f"say {letter}", letter * (1 + 4 * number)) for number, letter in enumerate("abcdefghijkl")]
"""As many as a step has, so that every number of processes trains each step on the same traces."""


def cold_started(name: str, model: Any, folder: Path, processes: int, **changes: Any) -> Path:
    """Run a cold start of a case, in which each of the processes has its share of the batch."""
    options = {
        "steps": STEPS,
        "learning_rate": 1e-2,
        "batch_size": BATCH // processes,
        "threads": 1,
        "save_every": 0,
        **CASES[name],
        **changes,
    }
    earlier, cold_start.most_tokens = cold_start.most_tokens, lambda *args: MOST_TOKENS
    try:
        return trainers.sft(TRACES, model=str(model), output_dir=str(folder), progress=False, **options)
    finally:
        cold_start.most_tokens = earlier


def stopped(run: Path, folder: Path) -> None:
    """Copy a run as if it had ended at its first checkpoint."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns(f"checkpoint-{STEPS}", "*.safetensors"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """The runs of two processes, a folder for each case."""
    found: Path = tmp_path_factory.mktemp("sharded-sft")
    (found / "script.py").write_text(SCRIPT)
    launch(found / "script.py", str(tiny_model), str(found), beside=Path(__file__).parent)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Any:
    """Runs a case on one process, without sharding, once."""
    seen: dict[str, Path] = {}

    def play(name: str) -> Path:
        lora = str(CASES[name].get("lora_rank", 0))
        if lora not in seen:
            changes = {"sharding": None, "save_every": 2}
            seen[lora] = cold_started(name, tiny_model, tmp_path_factory.mktemp("alone") / "sft", 1, **changes)
        return seen[lora]

    return play


def weights_in(folder: Path) -> dict[str, Tensor]:
    (file,) = folder.glob("*.safetensors")
    return load_file(file)


def apart(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> float:
    """Largest difference of an entry, relative to the largest entry of its tensor."""
    assert found.keys() == wanted.keys()
    return max(float((found[key] - one).abs().max() / one.abs().max().clamp(min=1e-9)) for key, one in wanted.items())


def losses(folder: Path) -> list[float]:
    return [line["loss"] for line in read_run(folder).metrics()]


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_really_sharded(name: str, folder: Path) -> None:
    for rank in (0, 1):
        parts, wrapped = torch.load(folder / f"parts-{rank}.pt")[name]
        assert wrapped == "DeepSpeedEngine" if name == "zero3" else parts == ["DTensor"]


@pytest.mark.parametrize("name", [name for name in CASES if name != "resumed"])
def test_losses_and_final_weights_are_those_of_one_process_without_sharding(
    name: str, folder: Path, alone: Any, tiny_model: Path
) -> None:
    expected = alone(name)
    assert losses(folder / name) == pytest.approx(losses(expected), rel=1e-4)
    found, wanted = weights_in(folder / name), weights_in(expected)
    assert apart(found, wanted) < 1e-3
    if "lora" not in name:
        assert apart(wanted, weights_in(tiny_model)) > 0.05, "the cold start changed the weights"
    AutoModelForCausalLM.from_pretrained(folder / name)


def test_two_processes_resume_and_end_where_an_unstopped_run_does(folder: Path) -> None:
    assert losses(folder / "resumed")[-2:] == pytest.approx(losses(folder / SAVED)[-2:], rel=1e-5)
    assert apart(weights_in(folder / "resumed"), weights_in(folder / SAVED)) < 1e-5


@pytest.mark.parametrize("sharding", ["fsdp2", "none"])
def test_one_process_resumes_where_two_stopped(sharding: str, folder: Path, tiny_model: Path, tmp_path: Path) -> None:
    stopped(folder / SAVED, tmp_path / "sft")
    # The size of the batch of each process may not change, so a step has half of the traces now.
    run = cold_started("resumed", tiny_model, tmp_path / "sft", 2, sharding=sharding, save_every=0)
    lines = read_run(run).metrics()
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert lines[2]["loss"] < 0.9 * lines[0]["loss"], "it begins with the weights of the checkpoint"


def test_a_checkpoint_of_two_processes_is_exported_without_them(folder: Path, alone: Any, tmp_path: Path) -> None:
    name = f"checkpoint-{STOPPED}"
    assert find_weights(folder / SAVED, name).sharded
    out = export_model(folder / SAVED, tmp_path / "out", which=name)
    wanted = weights_in(alone(SAVED) / name)
    assert apart(wanted, weights_in(alone(SAVED))) > 1e-3
    assert apart(weights_in(out), wanted) < 1e-3


def test_a_contradicting_configuration_of_accelerate_is_refused_by_the_options_own_name(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_VERSION", "2")
    with pytest.raises(ConfigurationError, match=r"^sharding is 'zero2'") as raised:
        cold_started("fsdp2", tiny_model, tmp_path / "sft", 1, sharding="zero2")
    assert raised.value.option == "sharding"
