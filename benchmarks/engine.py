"""Tokens a second of ``TransformersEngine`` beside ``model.generate`` on the same requests, with a tiny model.

    python benchmarks/engine.py [--requests 128] [--prompt 100] [--new 50] [--threads 2] [--repeats 3] [--arrive 0]
                                [--group 1]

The requests' lengths vary (half to one and a half of the given numbers), so rows of the batch end at different times;
``model.generate`` computes every row until the longest has ended, and its useful tokens alone are counted.

What it does not show: anything about a model of real size, where the arithmetic of a step outweighs what is measured
here (the work of the loop, and of the cache as rows come and go).
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from rstar2_env.rollout import SamplingParams, TransformersEngine

VOCABULARY = 110


@dataclass(frozen=True)
class Load:
    """What to generate: prompts and how many tokens each is continued by."""

    prompts: list[list[int]]
    new: list[int]

    @classmethod
    def draw(cls, requests: int, prompt: int, new: int, group: int = 1) -> Load:
        """Random prompts of about ``prompt`` tokens, each asked ``group`` times to be continued by about ``new``."""
        rng = np.random.default_rng(0)

        def about(mean: int) -> list[int]:
            return [int(n) for n in rng.integers(max(1, mean // 2), mean + mean // 2 + 1, size=requests)]

        prompts = [[int(i) for i in rng.integers(3, VOCABULARY, size=n)] for n in about(prompt)]
        return cls([prompts[i // group] for i in range(requests)], about(new))


def tiny_model() -> PreTrainedModel:
    """A Qwen3 of half a million parameters with random weights."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config).eval()


def by_engine(model: PreTrainedModel, load: Load, arrive: float) -> None:
    """All requests through the engine; with ``arrive``, spread over that many seconds."""
    engine = TransformersEngine(model)

    async def one(index: int) -> None:
        await asyncio.sleep(arrive * index / len(load.prompts))
        params = SamplingParams(max_tokens=load.new[index], seed=index)
        await engine.generate(load.prompts[index], params)

    async def every() -> None:
        await asyncio.gather(*(one(index) for index in range(len(load.prompts))))

    asyncio.run(every())
    engine.close()


def by_generate(model: PreTrainedModel, load: Load) -> None:
    """All requests as one padded batch of ``model.generate``."""
    width = max(map(len, load.prompts))
    ids = torch.zeros(len(load.prompts), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(load.prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    longest = max(load.new)
    with torch.inference_mode():
        model.generate(
            ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            min_new_tokens=longest,
            max_new_tokens=longest,
            pad_token_id=0,
        )


def best(run: Callable[[], None], repeats: int) -> tuple[float, float]:
    """The shortest of several runs after one to warm up, in seconds of the clock and of CPU.

    On a machine that others use, too, the CPU time with one thread is what to compare.
    """
    run()
    clock, cpu = [], []
    for _ in range(repeats):
        start, start_cpu = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    return min(clock), min(cpu)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=128)
    parser.add_argument("--prompt", type=int, default=100, help="tokens of a prompt, on average")
    parser.add_argument("--new", type=int, default=50, help="tokens to generate, on average")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--arrive", type=float, default=0.0, help="seconds over which the engine's requests arrive")
    parser.add_argument("--group", type=int, default=1, help="requests that begin with the same prompt")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = tiny_model()
    load = Load.draw(arguments.requests, arguments.prompt, arguments.new, arguments.group)
    tokens = sum(load.new)
    prompt_tokens = sum(map(len, load.prompts))
    print(f"{len(load.new)} requests, {prompt_tokens} prompt tokens, {tokens} new tokens, {arguments.threads} threads")
    for name, run in (
        ("model.generate", lambda: by_generate(model, load)),
        ("TransformersEngine", lambda: by_engine(model, load, arguments.arrive)),
    ):
        seconds, cpu = best(run, arguments.repeats)
        print(f"{name:20} {seconds:6.2f} s  {cpu:6.2f} s of CPU  {tokens / seconds:8.0f} tokens/s")


if __name__ == "__main__":
    main()
