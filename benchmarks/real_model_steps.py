"""The processes of ``benchmarks/real_model_speed.py``: optimizer steps of one side, each when it is asked for."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHAPE = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
"""The sizes of SmolLM2-135M."""
LEARNING_RATE = 1e-4


@dataclass(frozen=True)
class Asked:
    """The steps that one process computes.

    Attributes:
        side: ``ours`` or ``plain``.
        part: ``sft`` or ``train``.
        model: Folder of the model.
        dtype: Precision of the products.
        threads: Threads of torch; ``None`` lets each side choose its own.
        steps: Number of optimizer steps.
        rows: Rows of a step.
        prompt: Tokens of a row that are read.
        own: Tokens of a row that are learnt.
        separate: Whether shared prompts are computed for each row.
        lora_rank: Rank of the adapters that this package trains; 0 trains all weights, as plain torch does.
    """

    side: str
    part: str
    model: str
    dtype: str
    threads: int | None
    steps: int
    rows: int
    prompt: int
    own: int
    separate: bool
    lora_rank: int


def make_model(folder: Path, shape: Mapping[str, Any] = SHAPE) -> Path:
    """Make a model with random weights, and the tokenizer of the tiny model; return its folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from rstar2_env.trainers.demonstration.tiny import make_tiny_model

    make_tiny_model(folder, hidden=32, layers=1)
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    torch.manual_seed(0)
    tokens = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
    LlamaForCausalLM(LlamaConfig(**shape, **tokens)).save_pretrained(folder)
    return folder


class Gate:
    """Waits for the other process before each step, and says what the step took."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._began: tuple[float, float] | None = None
        _say(ready=True)

    def begin(self) -> None:
        """Wait until the step may begin."""
        if self._began is None:
            sys.stdin.readline()
            self._began = time.perf_counter(), time.process_time()

    def end(self) -> None:
        """Report the step."""
        assert self._began is not None
        wall, cpu = self._began
        _say(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, tokens=self._tokens)
        self._began = None


def _say(**figures: Any) -> None:
    sys.__stdout__.write(json.dumps(figures) + "\n")  # type: ignore[union-attr]  # a process of its own
    sys.__stdout__.flush()  # type: ignore[union-attr]


def _run(asked: Asked) -> None:
    """Compute the steps of one side, in a process of its own."""
    import torch

    from rstar2_env.trainers.backends.trl.loss.flops import peak_memory

    if asked.threads is not None:
        torch.set_num_threads(asked.threads)
    {("ours", "sft"): _our_sft, ("ours", "train"): _our_train}.get((asked.side, asked.part), _plain)(asked)
    _say(peak_gib=peak_memory() / 2**30, threads=torch.get_num_threads())


def _gated(gate: Gate) -> None:
    """Put the gate into every trainer that is made from now on."""
    from transformers import TrainerCallback
    from transformers import trainer as module

    class Gated(TrainerCallback):
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            gate.begin()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            gate.end()

    module.DEFAULT_CALLBACKS.append(Gated)


def traces_of(asked: Asked, count: int) -> list[dict[str, Any]]:
    """Traces of about the asked lengths, in words that the tokenizer of the model knows."""
    import numpy as np
    from transformers import AutoTokenizer

    rng, words = np.random.default_rng(0), ("one", "two", "the", "sum", "of", "4", "17", "is", "+", "print", "(", ")")
    tokenizer = AutoTokenizer.from_pretrained(asked.model)
    share = len(tokenizer(" ".join(words * 20), add_special_tokens=False)["input_ids"]) / (20 * len(words))

    def text(tokens: int) -> str:
        length = max(1, round(tokens * rng.uniform(0.8, 1.2) / share))
        return " ".join(words[int(at)] for at in rng.integers(len(words), size=length))

    return [
        {
            "messages": [
                {"role": "user", "content": text(asked.prompt)},
                {"role": "assistant", "content": text(asked.own)},
            ]
        }
        for _ in range(count)
    ]


def sft_rows(asked: Asked) -> list[dict[str, Any]]:
    """The rows that the cold start makes of the traces."""
    from transformers import AutoModelForCausalLM

    from rstar2_env.trainers.backends.trl.model import codec, load_tokenizer
    from rstar2_env.trainers.backends.trl.sft import encode_traces
    from rstar2_env.trainers.options.config import ModelOptions

    options = ModelOptions(path=asked.model)
    model = AutoModelForCausalLM.from_pretrained(asked.model, device_map="meta")
    chat = codec(options, load_tokenizer(asked.model, options), model)
    return encode_traces(traces_of(asked, asked.rows), chat, 1 << 14)


def _our_sft(asked: Asked) -> None:
    from rstar2_env import trainers

    _gated(Gate(sum(len(row["input_ids"]) for row in sft_rows(asked))))
    with tempfile.TemporaryDirectory() as folder:
        trainers.sft(
            traces_of(asked, asked.rows),
            model=asked.model,
            output_dir=f"{folder}/sft",
            steps=asked.steps,
            batch_size=asked.rows,
            rows_per_device=asked.rows,
            learning_rate=LEARNING_RATE,
            dtype=asked.dtype,
            lora_rank=asked.lora_rank,
            threads=asked.threads,
            save_every=0,
            progress=False,
        )


def train_rows(asked: Asked) -> list[Any]:
    """Groups of 8 rows that share their prompt."""
    from step_rows import group_rows
    from transformers import AutoConfig

    words = AutoConfig.from_pretrained(asked.model).vocab_size
    return group_rows(max(1, asked.rows // 8), min(8, asked.rows), asked.prompt, asked.own, words)


def _our_train(asked: Asked) -> None:
    from train_step import Given
    from transformers import PrinterCallback

    from rstar2_env.trainers.backends.trl.arguments import arguments
    from rstar2_env.trainers.backends.trl.cpu_speed import most_tokens
    from rstar2_env.trainers.backends.trl.loss.objective import Objective
    from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
    from rstar2_env.trainers.backends.trl.model import load_policy, precision_options
    from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
    from rstar2_env.trainers.losses.aggregations import TokenMean
    from rstar2_env.trainers.losses.corrections import NoCorrection
    from rstar2_env.trainers.losses.ppo_clip import PpoClip
    from rstar2_env.trainers.options.config import ModelOptions

    rows, options = train_rows(asked), ModelOptions(path=asked.model, dtype=asked.dtype, lora_rank=asked.lora_rank)
    _gated(Gate(sum(row.tokens for row in rows)))
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = load_policy(options, Path(folder))
        trainer = CollectorTrainer(
            collector=Given(rows),
            objective=Objective([PpoClip()], TokenMean(), NoCorrection()),
            shape=BatchLayout(most_tokens(model, options) or 16_384, share_prefixes=not asked.separate),
            model=model,
            processing_class=tokenizer,
            args=arguments(
                folder,
                max_steps=asked.steps,
                learning_rate=LEARNING_RATE,
                save_strategy="no",
                report_to=[],
                **precision_options(options),
            ),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()


def _plain(asked: Asked) -> None:
    """Plain torch on the same rows."""
    import torch
    from transformers import AutoModelForCausalLM

    if asked.part == "sft":
        given = [(row["input_ids"], row["assistant_masks"], 1.0) for row in sft_rows(asked)]
    else:
        given = [
            ([*row.prompt_ids, *row.completion_ids], [0] * len(row.prompt_ids) + row.mask, row.advantage)
            for row in train_rows(asked)
        ]
    gate = Gate(sum(len(ids) for ids, _, _ in given))
    model = AutoModelForCausalLM.from_pretrained(asked.model, dtype=torch.float32).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
    low = asked.dtype == "bfloat16"
    count = sum(sum(mask) for _, mask, _ in given)
    for _ in range(asked.steps):
        gate.begin()
        for ids, mask, weight in _batches(given):
            with torch.autocast("cpu", torch.bfloat16, enabled=low):
                hidden = model.model(ids, use_cache=False).last_hidden_state[:, :-1][mask[:, 1:]]
                logits = model.lm_head(hidden)
            logp = torch.log_softmax(logits.float(), -1).gather(1, ids[:, 1:][mask[:, 1:]][:, None])[:, 0]
            (-(logp * weight).sum() / count).backward()
        optimizer.step()
        optimizer.zero_grad()
        gate.end()


def _batches(given: Sequence[tuple[list[int], list[int], float]]) -> Iterator[tuple[Any, Any, Any]]:
    """Padded batches of 8 rows: ids, the mask of trained tokens, and the weight of each of them."""
    import torch

    for start in range(0, len(given), 8):
        rows = given[start : start + 8]
        width = max(len(ids) for ids, _, _ in rows)
        ids, mask = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width, dtype=torch.bool)
        for place, (own, trained, _) in enumerate(rows):
            ids[place, : len(own)] = torch.tensor(own)
            mask[place, : len(own)] = torch.tensor(trained, dtype=torch.bool)
        weights = torch.tensor([weight for _, _, weight in rows])[:, None].expand(len(rows), width - 1)
        yield ids, mask, weights[mask[:, 1:]]


if __name__ == "__main__":
    _run(Asked(**json.loads(sys.argv[1])))
