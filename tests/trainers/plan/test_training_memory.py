"""What training keeps is what a plan says: counted tensor by tensor, and as the kernel counts a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from places import SUPPORT

from rstar2_env.trainers.plan.architecture import MODELS, Architecture, architecture_of
from rstar2_env.trainers.plan.training_memory import Training, lora_parameters, saved, total, training_memory

torch = pytest.importorskip("torch", reason="models are made by torch")
transformers = pytest.importorskip("transformers", reason="models are made by transformers")

SIZES = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 320,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
TOKENS = 512


def kept_bytes(model: Any, autocast: bool) -> int:
    """Bytes of all tensors that a forward pass keeps for its backward pass, parameters aside."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Any] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage
        return tensor

    context = torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), context:
        model(input_ids=torch.zeros(1, TOKENS, dtype=torch.long), use_cache=False)
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.parametrize("kind", ["Qwen3", "Qwen2", "Llama"])
@pytest.mark.parametrize("precision", ["float32", "autocast", "bfloat16"])
def test_a_forward_pass_keeps_the_bytes_that_are_said(kind: str, precision: str, tmp_path: Path) -> None:
    config = getattr(transformers, f"{kind}Config")(**SIZES)
    config.save_pretrained(tmp_path)
    model = architecture_of(str(tmp_path))
    made = getattr(transformers, f"{kind}Model")(config).train()
    low = precision != "float32"
    # Weights in bfloat16 are what a layer sees under FSDP2.
    how = Training(TOKENS, 2, "fsdp2" if precision == "bfloat16" else "none", bfloat16=low, recompute=False)
    if precision == "bfloat16":
        made.to(torch.bfloat16)
    kept = kept_bytes(made, precision == "autocast")
    # Autocast's copies of the weights are counted apart, and the head keeps the result of the last normalization.
    copies = 2 * (model.matrix_parameters - model.embedding_parameters) if precision == "autocast" else 0
    head = how.stream * model.hidden * TOKENS
    assert kept == pytest.approx(saved(model, how) + copies - head, rel=0.02)


def test_a_forward_pass_that_is_recomputed_keeps_the_input_of_each_layer(tmp_path: Path) -> None:
    config = transformers.Qwen3Config(**SIZES)
    config.save_pretrained(tmp_path)
    model, how = architecture_of(str(tmp_path)), Training(TOKENS, bfloat16=False)
    made = transformers.Qwen3Model(config).train()
    made.gradient_checkpointing_enable({"use_reentrant": False})
    # The rotary angles are there, and no operation keeps them.
    others = (model.hidden + 2 * model.head_dim) * how.stream * TOKENS
    assert kept_bytes(made, False) == pytest.approx(saved(model, how) - others, rel=0.02)


NARROW = {**SIZES, "vocab_size": 2048, "hidden_size": 64, "intermediate_size": 192, "num_attention_heads": 1}
NARROW |= {"num_key_value_heads": 1}
WIDE = {**SIZES, "vocab_size": 8192, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8}
WIDE |= {"num_attention_heads": 8, "num_key_value_heads": 4}
CASES = [
    {"config": NARROW, "tokens": 12_288, "checkpointing": False},
    {"config": NARROW, "tokens": 12_288, "checkpointing": True},
    {"config": WIDE, "tokens": 256, "checkpointing": False},
]


@pytest.mark.slow
def test_a_process_takes_the_memory_that_is_said_within_a_tenth() -> None:
    """Rows of 12K tokens; and weights with their optimizer, which rows hardly matter to."""
    command = [sys.executable, str(SUPPORT / "training_memory.py"), *map(json.dumps, CASES)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    took = json.loads(done.stdout.splitlines()[-1])
    for case, measured in zip(CASES, took, strict=True):
        config: Any = case["config"]
        model = Architecture(
            "made",
            config["num_hidden_layers"],
            config["hidden_size"],
            config["intermediate_size"],
            config["num_attention_heads"],
            config["num_key_value_heads"],
            config["head_dim"],
            config["vocab_size"],
            tied=True,
            qk_norm=True,
        )
        how = Training(
            case["tokens"],  # type: ignore[arg-type]
            bfloat16=False,
            recompute=bool(case["checkpointing"]),
            fused=False,
            passes=1,
        )
        assert total(training_memory(model, how)) == pytest.approx(measured, rel=0.1), case


class TestSharding:
    MODEL = MODELS["qwen3-14b"]

    def states(self, how: Training) -> float:
        memory = training_memory(self.MODEL, how)
        return (memory["weights"] + memory["gradients"] + memory["optimizer"]) / self.MODEL.parameters

    def test_without_it_a_trained_weight_takes_sixteen_bytes(self) -> None:
        assert self.states(Training(16_384)) == 16

    def test_fsdp2_divides_all_of_them(self) -> None:
        assert self.states(Training(16_384, 64, "fsdp2")) == pytest.approx(16 / 64)

    def test_zero2_keeps_the_weights_whole_and_zero3_does_not(self) -> None:
        # A weight and its gradient in bfloat16; a gradient, a master copy and two moments in float32.
        assert self.states(Training(16_384, 8, "zero2")) == pytest.approx(2 + (2 + 4 + 12) / 8)
        assert self.states(Training(16_384, 8, "zero3")) == pytest.approx((2 + 2 + 4 + 12) / 8)

    def test_of_adapters_the_weights_below_take_two_bytes(self) -> None:
        trained = lora_parameters(self.MODEL, 16)
        assert trained == 40 * 16 * (4 * 5120 + 2 * 5120 + 2 * 1024 + 3 * (5120 + 17_408))
        expected = 2 + 16 * trained / self.MODEL.parameters
        assert self.states(Training(16_384, lora_rank=16)) == pytest.approx(expected)

    def test_qwen3_14b_needs_it_on_any_device(self) -> None:
        alone = Training(12_988)
        assert total(training_memory(self.MODEL, alone)) > 237e9
        assert total(training_memory(self.MODEL, replace(alone, processes=8, sharding="fsdp2"))) < 60 * 2**30


def test_the_logits_of_long_rows_are_never_there_at_once() -> None:
    narrow = Architecture("narrow", 3, 64, 192, 1, 1, 64, 151_936, tied=True, qk_norm=True)
    for how in (Training(12_288), Training(12_288, fused=False)):
        logits = how.tokens * narrow.vocabulary * how.width
        once, twice = (
            training_memory(narrow, replace(how, tokens=tokens))["temporaries"]
            for tokens in (how.tokens, 2 * how.tokens)
        )
        assert twice - once < logits / 100
