"""``HandoverProbe``: checks after a weight sync that the engine computes with the new weights.

The engine continues a fixed prompt by a few tokens, and the trainer computes the log-probabilities of the same tokens.
The engine's and the trainer's log-probabilities must agree within a tolerance that depends on the precision. Covered:
corrupt and stale weights, in each copy of the weights (one per server). Not covered: differences below the tolerance,
such as one missed update at a tiny learning rate. The run's mismatch metrics show such differences, which accumulate
until the probe finds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import nn

from rstar2_env.core.blocking import run_blocking
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.row import FloatArray
from rstar2_env.rollout import ChatCodec, Engine, Generation, SamplingParams, VllmServerEngine

TOLERANCE = {torch.float32: 2e-3, torch.float16: 0.03, torch.bfloat16: 0.1}
"""Maximum mean distance of log-probabilities, in nats, by the precision of computation. Two implementations with the
same weights differ by 1e-6 to 1e-4 in float32, and by 0.01 to 0.03 in bfloat16."""
EXPLAINED = {**TOLERANCE, torch.float32: 5e-4}
"""Maximum mean distance of log-probabilities, in nats, that rounding can explain, by precision. In float32, rounding
causes up to 1e-4. The value for float32 lies between 1e-4 and ``TOLERANCE``, so that the check ``engine_differs`` of
the diagnosis notices an engine in bfloat16."""

_TOKENS = 16
_SEED = 20_231
_MOST_PROMPT = 48
_QUESTION = "Name a number that you like, and say why."


class HandoverError(Rstar2Error, RuntimeError):
    """The engine does not compute with the weights that the trainer sent."""


def known_prompt(chat: ChatCodec) -> list[int]:
    """Return the prompt of the probe, which depends only on the tokenizer."""
    return chat.prompt("", _QUESTION)[:_MOST_PROMPT]


class HandoverProbe:
    """Compares an engine with the trainer on a fixed prompt.

    Args:
        engine: The engine; the probe covers all engines of a scheduler, and all servers of an engine.
        prompt: The prompt's ids.
        score: Returns the trainer's log-probabilities of ids that follow the prompt, (tokens,), at temperature 1.
        tolerance: Maximum mean distance of the log-probabilities, in nats.
    """

    def __init__(
        self,
        engine: Engine,
        prompt: Sequence[int],
        score: Callable[[list[int], list[int]], FloatArray],
        *,
        tolerance: float,
    ) -> None:
        self._engines: list[Engine] = list(getattr(engine, "engines", (engine,)))
        self._prompt, self._score, self._tolerance = list(prompt), score, tolerance

    def check(self, step: int) -> float:
        """Continue the prompt and compare the engine with the trainer; return the distance, as ``compare`` does."""
        return self.compare(step, self.ask())

    def ask(self) -> list[Generation]:
        """Return one continuation of the prompt from each copy of the weights."""
        return run_blocking(self._ask)

    def compare(self, step: int, generations: Sequence[Generation]) -> float:
        """Compare log-probabilities of continuations with the trainer's; return the largest mean distance in nats.

        With sharded weights a forward pass is collective: all processes call this, with the same continuations.

        Args:
            step: Number of optimizer steps done so far, for the error message.
            generations: One continuation from each engine that has a copy of the weights.

        Raises:
            HandoverError: The log-probabilities of an engine differ from the trainer's.
        """
        # Score all before raising, so that every process makes the same number of forward passes.
        scores = [self._score(self._prompt, generation.ids) for generation in generations]
        worst = 0.0
        for generation, trainer in zip(generations, scores, strict=True):
            engine = np.array(generation.logprobs, dtype=np.float64)
            distance = float(np.abs(engine - trainer).mean())
            if not distance <= self._tolerance:
                raise HandoverError(
                    "The engine does not compute with the weights of the trainer: after the weight sync "
                    f"at step {step}, the {len(generation.ids)} tokens that the engine generated after a "
                    f"fixed prompt have the mean log-probability {engine.mean():.4f} in the engine and "
                    f"{trainer.mean():.4f} in the trainer. The mean absolute difference per token is "
                    f"{distance:.4g}; at most {self._tolerance:g} is allowed "
                    "(rollout.handover_tolerance). The engine's weights are corrupt, or the new weights "
                    "did not reach the engine: restart the engine, and resume from a checkpoint."
                )
            worst = max(worst, distance)
        return worst

    async def _ask(self) -> list[Generation]:
        params = SamplingParams(_TOKENS, temperature=1.0, seed=_SEED)
        return [
            one for asked in await asyncio.gather(*(self._every(e, params) for e in self._engines)) for one in asked
        ]

    async def _every(self, engine: Engine, params: SamplingParams) -> list[Generation]:
        """Return one continuation of the prompt from each copy of the weights that an engine has."""
        if isinstance(engine, VllmServerEngine):
            return await engine.generate_on_each(self._prompt, params)
        return [await engine.generate(self._prompt, params)]


@torch.no_grad()
def trainer_logprobs(
    module: nn.Module, autocast: Callable[[], AbstractContextManager[Any]], prompt: list[int], ids: list[int]
) -> FloatArray:
    """Return the log-probabilities of ids that follow a prompt, computed in one forward pass.

    Args:
        module: The policy, unwrapped.
        autocast: Returns a context with the precision in which the policy is trained.
        prompt: The preceding ids.
        ids: The ids to score.

    Returns:
        The log-probabilities at temperature 1, (len(ids),).
    """
    device = next(module.parameters()).device
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with autocast():
            logits = module(input_ids=torch.tensor([prompt + ids], device=device)).logits
    finally:
        for part in training:
            part.training = True
    predicted = logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
    chosen = predicted.gather(1, torch.tensor(ids, device=device)[:, None])[:, 0]
    scores: FloatArray = chosen.double().cpu().numpy()
    return scores
