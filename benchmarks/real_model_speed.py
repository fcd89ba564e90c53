"""Speed and memory of training a real model on a CPU, relative to plain torch on the same tokens.

    python benchmarks/real_model_speed.py --model FOLDER [--part sft] [--steps 5] [--dtype auto] [--json FILE]
    python benchmarks/real_model_speed.py  # a model of SmolLM2-135M's shape with random weights

``sft`` is the whole cold start of ``rstar2 sft``, and ``train`` the optimizer step of ``rstar2 train`` on rows that are
given. Plain torch runs the layers on padded rows without a mask, computes the logits of the trained tokens alone, and
calls ``backward`` and the fused AdamW. Each side runs in its own process, in the same precision and with as many
threads. Their steps alternate, one at a time, so that both meet the same load of the machine; the figure is the
median of the ratios of neighbours, after one step of each that is not counted. A ratio above 1 says that this package
is faster. The peak memory is that of each process.

Rows of ``sft`` are traces of the same lengths that a math problem has: about 140 tokens to read and 140 to learn. Rows
of ``train`` are groups of 8 episodes that share their prompt; ``--separate`` computes it for each row, as plain torch
does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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
PARTS = ("sft", "train")
SIDES = ("ours", "plain")


@dataclass(frozen=True)
class Asked:
    """What one process computes.

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


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Print the ratios of both parts; return the figures by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of the model; a random one by default")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--steps", type=int, default=5, help="pairs of steps that are counted")
    parser.add_argument("--rows", type=int, default=8, help="rows of a step")
    parser.add_argument("--prompt", type=int, default=140, help="tokens of a row that are read")
    parser.add_argument("--own", type=int, default=140, help="tokens of a row that are learnt")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"), help="precision of products")
    parser.add_argument("--threads", type=int, help="threads of torch; by default each side keeps its own choice")
    parser.add_argument("--separate", action="store_true", help="compute the prompt of a group for each of its rows")
    parser.add_argument("--lora-rank", type=int, default=0, help="let this package train adapters of this rank")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        _run(Asked(**json.loads(given.one)))
        return {}
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or str(make_model(Path(folder)))
        for part in [given.part] if given.part else PARTS:
            sides = {
                side: Asked(
                    side,
                    part,
                    model,
                    given.dtype,
                    given.threads,
                    given.steps + 1,
                    given.rows,
                    given.prompt,
                    given.own,
                    given.separate,
                    given.lora_rank,
                )
                for side in SIDES
            }
            figures[part] = compare(sides)
            _show(part, figures[part])
    if given.json:
        given.json.write_text(json.dumps({"asked": asdict(sides["ours"]), **figures}, indent=2) + "\n", "utf-8")
    return figures


def compare(sides: Mapping[str, Asked]) -> dict[str, Any]:
    """Run the sides, step by step in turns; return the figures of each side and the ratio of their speeds."""
    running: dict[str, Side] = {}
    try:
        for side, asked in sides.items():
            running[side] = Side(asked)
        times: dict[str, list[dict[str, float]]] = {side: [] for side in running}
        for number in range(next(iter(sides.values())).steps):
            for side in list(running) if number % 2 else reversed(running):
                times[side].append(running[side].step())
        found: dict[str, Any] = {side: {**one.end(), **_medians(times[side][1:])} for side, one in running.items()}
    finally:
        for one in running.values():
            one.close()
    pairs = list(zip(times["plain"][1:], times["ours"][1:], strict=True))
    found["ratios"] = [plain["wall"] / ours["wall"] for plain, ours in pairs]
    found["ratio"] = statistics.median(found["ratios"])
    found["cpu_ratio"] = statistics.median(plain["cpu"] / ours["cpu"] for plain, ours in pairs)
    return found


def _medians(times: Sequence[Mapping[str, float]]) -> dict[str, float]:
    wall = statistics.median(one["wall"] for one in times)
    tokens = times[0]["tokens"]
    return {"seconds": wall, "cpu_seconds": statistics.median(one["cpu"] for one in times), "tokens_s": tokens / wall}


def _show(part: str, found: Mapping[str, Any]) -> None:
    for side in SIDES:
        own = found[side]
        print(
            f"{part:5} {side:5} {own['tokens_s']:8.1f} tokens/s  {own['cpu_seconds']:7.2f} CPU s a step  "
            f"{own['peak_gib']:5.2f} GiB  {own['threads']} threads"
        )
    low, high = min(found["ratios"]), max(found["ratios"])
    print(f"{part:5} ratio {found['ratio']:.3f} ({low:.3f} to {high:.3f}), of CPU time {found['cpu_ratio']:.3f}\n")


class Side:
    """A process that computes one step each time it is asked.

    Args:
        asked: What it computes.

    Raises:
        RuntimeError: The process ended.
    """

    def __init__(self, asked: Asked) -> None:
        command = [sys.executable, __file__, "--one", json.dumps(asdict(asked))]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        if asked.threads is not None:
            environment["OMP_NUM_THREADS"] = str(asked.threads)
        self._log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  # ``close`` closes it
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment
        )
        self._read()

    def step(self) -> dict[str, float]:
        """Compute a step; return its seconds, its CPU seconds and its tokens."""
        assert self._process.stdin is not None
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        return self._read()

    def end(self) -> dict[str, float]:
        """Return the peak memory and the number of threads, once all steps are done."""
        return self._read()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        self._log.seek(0)
        raise RuntimeError(f"A side ended early:\n{self._log.read()[-3000:]}")


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
    main()
