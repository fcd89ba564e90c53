"""Exports in the precision of the computation: rounded once, declared, and never in checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from row_trainer import row_trainer
from safetensors.torch import load_file
from training_rows import few_rows
from transformers import AutoModelForCausalLM

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.model import export_dtype_of
from rstar2_env.trainers.pipeline.stages.train import Train

pytestmark = pytest.mark.train


def weights_in(folder: Path) -> dict[str, torch.Tensor]:
    (file,) = folder.glob("*.safetensors")
    return load_file(file)


@pytest.mark.parametrize("sharding", ["none", "fsdp2"])
def test_an_export_is_rounded_and_a_checkpoint_is_not(tiny_model: Path, tmp_path: Path, sharding: Any) -> None:
    saved = {"save_strategy": "steps", "save_steps": 1}
    trainer, _ = row_trainer(
        tiny_model, tmp_path, [few_rows()], sharding=sharding, export_dtype=torch.bfloat16, **saved
    )
    trainer.train()
    trainer.save_model(str(tmp_path / "final"))
    exact = {name: value.detach() for name, value in trainer.model.named_parameters()}
    assert any(bool((value != value.bfloat16()).any()) for value in exact.values())
    for name, value in weights_in(tmp_path / "final").items():
        assert value.dtype is torch.bfloat16
        assert torch.equal(value, exact[name].bfloat16())
    assert json.loads((tmp_path / "final" / "config.json").read_text())["dtype"] == "bfloat16"
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "final", dtype="auto").dtype is torch.bfloat16
    if sharding == "none":
        checkpoint = weights_in(tmp_path / "checkpoint-1")
        assert {value.dtype for value in checkpoint.values()} == {torch.float32}
        assert all(torch.equal(value, exact[name]) for name, value in checkpoint.items())


def test_without_a_precision_an_export_has_the_weights_of_training(tiny_model: Path, tmp_path: Path) -> None:
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()])
    trainer.train()
    trainer.save_model(str(tmp_path / "final"))
    exact = dict(trainer.model.named_parameters())
    assert all(torch.equal(value, exact[name]) for name, value in weights_in(tmp_path / "final").items())


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({"dtype": "bfloat16"}, torch.bfloat16),
        ({"dtype": "float32"}, None),
        ({"dtype": "float16"}, None),
        ({"dtype": "bfloat16", "lora_rank": 4}, None),
        ({"dtype": "bfloat16", "export_dtype": "float32"}, torch.float32),
        ({"dtype": "float32", "export_dtype": "float16"}, torch.float16),
    ],
)
def test_the_precision_of_exports_is_that_of_the_computation(options: dict[str, Any], dtype: torch.dtype) -> None:
    assert export_dtype_of(TRAINERS.get("grpo").configure({"model": "m", **options})) is dtype


def test_a_stage_of_a_pipeline_exports_in_float32_unless_its_options_or_its_file_differ(tmp_path: Path) -> None:
    def exported(**given: Any) -> str:
        stage = Train(model="m", **given)
        return str(stage._configured[1].run.export_dtype)

    assert exported(recipe="grpo", options={"dtype": "bfloat16"}) == "float32"
    assert exported(recipe="grpo", options={"export_dtype": "auto"}) == "auto"
    file = tmp_path / "mine.toml"
    file.write_text('trainer = "grpo"\ndtype = "bfloat16"\n')
    assert exported(config=str(file)) == "float32"
    file.write_text('trainer = "grpo"\nexport_dtype = "auto"\n')
    assert exported(config=str(file)) == "auto"
