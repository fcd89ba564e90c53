"""``suggest``: learning rates, token limits and warm-up that fit a pretrained model of a given number of parameters.

The learning rate is a power law of the number of parameters through two points, and constant beyond them. The first
point, 135 million parameters, was tried with SmolLM2-135M-Instruct, whose cold start learns the format of a tool call
at 3e-4. The second point, 7 billion parameters, has the rates of public recipes for models of that size: 2e-5 for a
cold start, and 1e-6 for reinforcement learning. A LoRA adapter gets ten times the rate of full weights ("LoRA Without
Regret", Thinking Machines Lab 2025). Not covered: a search for the best values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_SMALL, _LARGE = 135e6, 7e9
_SFT = (3e-4, 2e-5)
_RL = (1e-5, 1e-6)
_LORA = 10
_TINY = 10_000_000
"""Number of parameters below which a model hardly warms up: such a model is usually a new one with random weights."""


@dataclass(frozen=True, slots=True)
class SuggestedOptions:
    """Options that fit a pretrained model.

    Attributes:
        sft_learning_rate: Peak learning rate of a cold start (supervised training before reinforcement learning).
        learning_rate: Learning rate of reinforcement learning.
        warmup_steps: Warm-up steps of reinforcement learning, at most a tenth of a run's steps.
        warmup_ratio: Share of the steps of a cold start in which the rate warms up.
        max_length: Longest trace of a cold start, in tokens.
        max_episode_tokens: Token budget of an episode.
        reason: Sentence that states the source of the values.
    """

    sft_learning_rate: float
    learning_rate: float
    warmup_steps: int
    warmup_ratio: float
    max_length: int
    max_episode_tokens: int
    reason: str


def suggest(parameters: int, *, context: int | None = None, lora: bool = False) -> SuggestedOptions:
    """Return options that fit a pretrained model.

    Args:
        parameters: Number of parameters.
        context: Longest context in tokens; ``None`` if unknown.
        lora: Whether an adapter is trained instead of all weights.
    """
    factor, tiny = _LORA if lora else 1, parameters < _TINY
    # Small models lose the thread in long episodes, which also take too long on a CPU.
    length = min(512 if parameters < 5e8 else 1024 if parameters < 2e9 else 4096, context or 4096)
    number = f"{parameters / 1e6:,.0f} million" if parameters < 1e9 else f"{parameters / 1e9:.1f} billion"
    return SuggestedOptions(
        sft_learning_rate=_rounded(factor * _between(parameters, *_SFT)),
        learning_rate=_rounded(factor * _between(parameters, *_RL)),
        warmup_steps=0 if tiny else 5,
        warmup_ratio=0.03 if tiny else 0.1,
        max_length=length,
        max_episode_tokens=length,
        reason=f"chosen for {number} parameters{', LoRA' if lora else ''}",
    )


def _between(parameters: int, small: float, large: float) -> float:
    """Interpolate by a power law: ``small`` for a model of ``_SMALL`` parameters, ``large`` for one of ``_LARGE``."""
    share = math.log(max(_SMALL, min(_LARGE, parameters)) / _SMALL) / math.log(_LARGE / _SMALL)
    return float(small * (large / small) ** share)


def _rounded(value: float) -> float:
    return float(f"{value:.1g}")
