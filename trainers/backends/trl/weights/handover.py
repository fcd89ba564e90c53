"""``HandoverProbe``: after new weights went to the engine, one known prompt tells whether it computes with them.

The engine continues the prompt by a few tokens, and the trainer computes the log-probabilities of the same tokens. Both
must agree within what the precision explains. Covered: corrupt and stale weights, each copy of several (servers). Not
covered: changes too small to move the log-probabilities by more than the tolerance, such as one missed update at a
tiny learning rate; those show in the run's metrics of the engine's distance, and add up until they are found here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.rollout import ChatCodec, Engine, Generation, SamplingParams, VllmServerEngine

TOLERANCE = {torch.float32: 2e-3, torch.float16: 0.03, torch.bfloat16: 0.1}
"""Largest mean distance of log-probabilities, in nats, by the precision of computation. Two programs that compute with
the same weights in float32 differ by 1e-6 to 1e-4; in bfloat16 by 0.01 to 0.03."""

_TOKENS = 16
_SEED = 20_231
_MOST_PROMPT = 48
_QUESTION = "Name a number that you like, and say why."

FloatArray = NDArray[np.float64]


class HandoverError(Rstar2Error, RuntimeError):
    """The engine does not compute with the weights that it was given."""


def known_prompt(chat: ChatCodec) -> list[int]:
    """Return the prompt of the probe: the same in every step of every run with this tokenizer."""
    return chat.prompt("", _QUESTION)[:_MOST_PROMPT]


class HandoverProbe:
    """Compares an engine with the trainer on a known prompt.

    Args:
        engine: The engine; all engines of a scheduler are asked, and all servers of an engine that has several.
        prompt: The prompt's ids.
        score: Returns the trainer's log-probabilities of ids that follow the prompt, (tokens,), at temperature 1.
        tolerance: Largest mean distance of the log-probabilities, in nats.
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
        """Ask the engine and compare it with the trainer; see ``ask`` and ``compare``."""
        return self.compare(step, self.ask())

    def ask(self) -> list[Generation]:
        """Return the continuation of the prompt by every copy of the weights."""
        return _finished(self._ask())

    def compare(self, step: int, generations: Sequence[Generation]) -> float:
        """Compare continuations with the trainer; return the largest mean distance, in nats.

        With sharded weights a forward pass waits for the other processes: all call this, with the same continuations.

        Args:
            step: Steps done, for the message.
            generations: What the copies returned.

        Raises:
            HandoverError: A copy's log-probabilities are not those of the trainer.
        """
        # All are scored before any is judged: every process does as many forward passes.
        scores = [self._score(self._prompt, generation.ids) for generation in generations]
        worst = 0.0
        for generation, trainer in zip(generations, scores, strict=True):
            engine = np.array(generation.logprobs, dtype=np.float64)
            distance = float(np.abs(engine - trainer).mean())
            if not distance <= self._tolerance:
                raise HandoverError(
                    f"The engine does not compute with the policy's weights: after the hand-over at step {step}, the "
                    f"{len(generation.ids)} tokens with which it continues a known prompt have the mean "
                    f"log-probability {engine.mean():.4f} there and {trainer.mean():.4f} in the trainer. Their mean "
                    f"distance is {distance:.4g}, and {self._tolerance:g} is allowed (rollout.handover_tolerance). Its "
                    "weights are corrupt, or the update did not reach it."
                )
            worst = max(worst, distance)
        return worst

    async def _ask(self) -> list[Generation]:
        params = SamplingParams(_TOKENS, temperature=1.0, seed=_SEED)
        return [
            one for asked in await asyncio.gather(*(self._every(e, params) for e in self._engines)) for one in asked
        ]

    async def _every(self, engine: Engine, params: SamplingParams) -> list[Generation]:
        """Ask every copy of the weights that an engine has."""
        if isinstance(engine, VllmServerEngine):
            return await engine.generate_on_each(self._prompt, params)
        return [await engine.generate(self._prompt, params)]


@torch.no_grad()
def trainer_logprobs(
    module: nn.Module, autocast: Callable[[], AbstractContextManager[Any]], prompt: list[int], ids: list[int]
) -> FloatArray:
    """Log-probabilities of ids that follow a prompt, by one forward pass.

    Args:
        module: The policy, not wrapped for several processes.
        autocast: The precision in which the policy is trained.
        prompt: The ids before.
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


def _finished(asking: Any) -> list[Generation]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        found: list[Generation] = asyncio.run(asking)
        return found
    # A notebook already has a running loop.
    with ThreadPoolExecutor(max_workers=1) as thread:
        found = thread.submit(asyncio.run, asking).result()
        return found
