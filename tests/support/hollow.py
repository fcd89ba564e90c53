"""Models for a process that is to leave the weights to another: whoever reads these computes something else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM


def hollow(model: Any, folder: Path) -> Path:
    """A copy of a model whose weights are zeros, which whoever loads them would compute with."""
    shutil.copytree(model, folder / "hollow")
    (file,) = (folder / "hollow").glob("*.safetensors")
    # Not by ``save_pretrained``, which writes nothing in any process of a run but the first.
    save_file({name: torch.zeros_like(one) for name, one in load_file(file).items()}, file, metadata={"format": "pt"})
    return folder / "hollow"


def with_adapter(model: Any, folder: Path, *, empty: bool = False) -> Path:
    """An adapter that changes a model; an empty one, which changes nothing, is there for its shapes."""
    torch.manual_seed(1)
    adapters = LoraConfig(r=4, lora_alpha=4, target_modules="all-linear", init_lora_weights=empty)
    get_peft_model(AutoModelForCausalLM.from_pretrained(model), adapters).save_pretrained(folder)
    return folder
