"""A program: how much memory optimizer steps take, as the kernel counts it: ``training_memory.py CASE...``.

Each case is JSON: ``config`` (fields of ``Qwen3Config``), ``tokens`` of the one row, and ``checkpointing``. Prints
one line of JSON: bytes above what the process had before it made the model, for each case. ``MALLOC_MMAP_THRESHOLD_``
should be small, so that memory which is freed goes back to the kernel at once.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from row_trainer import Given
from training_rows import row
from transformers import PrinterCallback, Qwen3Config, Qwen3ForCausalLM

from rstar2_env.trainers.backends.trl.arguments import arguments
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.demonstration.tiny import tiny_tokenizer
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.ppo_clip import PpoClip

SMALL = {"vocab_size": 160, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
SMALL |= {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 32}


def status(field: str) -> int:
    """A field of what the kernel says of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{field}:"))) * 1024


def step(case: dict[str, Any]) -> int:
    """Take two optimizer steps on one row; bytes at the highest, above what there was before."""
    gc.collect()
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    model = Qwen3ForCausalLM(Qwen3Config(**case["config"], tie_word_embeddings=True, max_position_embeddings=1 << 20))
    given = Given([[row(0, 16, case["tokens"] - 16, 1.0)]])
    with tempfile.TemporaryDirectory() as folder:
        trainer = CollectorTrainer(
            collector=given,
            objective=Objective([PpoClip()], TokenMean(), NoCorrection()),
            shape=BatchLayout(case["tokens"]),
            model=model,
            processing_class=tiny_tokenizer(),
            args=arguments(
                folder,
                max_steps=2,  # in the second, the optimizer has its state
                report_to=[],
                save_strategy="no",
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=case["checkpointing"],
                logging_strategy="no",
            ),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return status("VmHWM") - before


def alone(case: str) -> int:
    """``step`` in a process of its own, after a small one that loads what is loaded late."""
    step({"config": SMALL, "tokens": 64, "checkpointing": True})
    return step(json.loads(case))


if __name__ == "__main__":
    torch.set_num_threads(1)
    # A fork for each: what one left behind would be there for the next, and the imports are made once.
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        print(json.dumps(pool.map(alone, sys.argv[1:], chunksize=1)))
