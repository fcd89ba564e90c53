"""The parts ``engine`` and ``vllm``: compare an engine with the trainer, before and after a weight sync."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from rstar2_env.rollout import Generation, SamplingParams, TransformersEngine, VllmEngine

from ..backends.trl.weight_sync.handover_probe import TOLERANCE, trainer_logprobs
from ..plan.assumptions import Assumptions
from ..plan.rollout_time import rollout_seconds
from .findings import PartFinding, ProofFigure, judged, planned_figure
from .scale import device, known_device, precision, random_model, scale, sizes_of

_SHORT = 16
"""Number of tokens of each prompt for the comparison of an engine with the trainer."""


def engine(model: str | None) -> PartFinding:
    """Test the engine that generates with the trainer's own model; see ``run_part``."""
    policy = _policy(model)
    return _played("engine", TransformersEngine(policy, max_rows=scale().rows), policy, None)


def vllm(model: str | None) -> PartFinding:
    """Test vLLM in this process, which receives new weights in memory; see ``run_part``."""
    policy = _policy(model)
    sizes = scale()
    options: dict[str, Any] = {"dtype": str(precision()).removeprefix("torch."), "max_model_len": 64 + 2 * sizes.turn}
    made = VllmEngine(policy, None, max_rows=sizes.rows, gpu_memory_utilization=0.5, **options)
    return _played("vllm", made, policy, policy)


def _policy(model: str | None) -> Any:
    return random_model(scale(), model).to(device(), precision()).eval()


def _played(name: str, engine: Any, policy: Any, weights: Any) -> PartFinding:
    """Generate turns before and after a sync of changed weights, and compare the engine with the trainer.

    Args:
        name: Name of the part.
        engine: The engine; closed at the end.
        policy: The trainer's model, whose weights are changed in place.
        weights: Passed to ``engine.update_weights``; ``None`` for an engine that computes with ``policy``.
    """
    sizes = scale()
    try:
        figures = []
        for version, what in enumerate(("before", "after")):
            if version:
                with torch.no_grad():
                    for one in policy.parameters():
                        one.add_(0.02 * torch.randn_like(one) * one.std().nan_to_num(0.0))
                engine.update_weights(version, weights)
            prompts, turns, seconds = _turns(engine, _SHORT, sizes.turn)
            stale = sum(turn.policy_version != version for turn in turns)
            figures += [
                ProofFigure(
                    f"mean difference of the engine's log-probabilities from the trainer's {what} a weight sync, nats",
                    _difference(policy, prompts, turns),
                    None,
                    TOLERANCE[precision()],
                    "rollout.handover_tolerance",
                    must=True,
                ),
                ProofFigure(
                    f"turns {what} a weight sync that report another version of the weights",
                    stale,
                    0,
                    0,
                    "exact",
                    must=True,
                ),
            ]
            drawn = sum(len(turn.ids) for turn in turns)
        reading = min(_turns(engine, sizes.turn, 1, seed=number)[2] for number in (1, 2))
        # The plan estimates vLLM, not an engine that computes with the trainer's module.
        planned = _planned_rates(policy) if name == "vllm" else (None, None)
        rates = sizes.rows * sizes.turn / reading, drawn / seconds
        for what, rate, estimate in zip(("read", "generated"), rates, planned, strict=True):
            figures.append(planned_figure(f"tokens {what} per second", rate, estimate))
    finally:
        engine.close()
    return judged(name, f"{len(turns)} rows at once", figures)


def _turns(engine: Any, prompt: int, turn: int, *, seed: int = 0) -> tuple[list[list[int]], list[Generation], float]:
    """Generate a turn after each of several random prompts; return the prompts, the turns and the seconds.

    Args:
        engine: The engine.
        prompt: Number of tokens of each prompt.
        turn: Number of tokens to generate.
        seed: Seed of the prompts; with another seed, no prompt begins like a prompt that the engine has cached.
    """
    sizes, draws = scale(), np.random.default_rng(seed)
    prompts = [draws.integers(3, 500, prompt).tolist() for _ in range(sizes.rows)]

    async def play() -> list[Generation]:
        params = [SamplingParams(turn, temperature=1.0, seed=number) for number in range(sizes.rows)]
        turns: list[Generation] = await asyncio.gather(*map(engine.generate, prompts, params))
        return turns

    began = time.perf_counter()
    return prompts, asyncio.run(play()), time.perf_counter() - began


def _planned_rates(policy: Any) -> tuple[float, float] | tuple[None, None]:
    """Return the tokens per second that ``rstar2 plan`` estimates for prompts and for generation, if known."""
    sizes, model, sheet = scale(), sizes_of(policy), known_device()
    if model is None or sheet is None or sheet.operations is None or sheet.bandwidth is None:
        return None, None

    def rate(prompt: int, turn: int, counted: int) -> float:
        assume = Assumptions(prompt_tokens=prompt, tool_s=0)
        lengths = np.full(sizes.rows, float(turn))
        time = rollout_seconds(model, sheet, lengths, sizes.rows * (prompt + turn), assume, max_rows=sizes.rows)
        return sizes.rows * counted / time.seconds

    return rate(sizes.turn, 1, sizes.turn), rate(_SHORT, sizes.turn, sizes.turn)


def _difference(policy: Any, prompts: list[list[int]], turns: list[Generation]) -> float:
    found = [
        np.abs(np.array(turn.logprobs) - trainer_logprobs(policy, nullcontext, prompt, turn.ids)).mean()
        for prompt, turn in zip(prompts, turns, strict=True)
    ]
    return float(np.mean(found))
