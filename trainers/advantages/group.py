"""Group advantages: how much better an episode did than the rest of its group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import ADVANTAGES, Rewards

EPSILON = 1e-4
"""Added to a standard deviation before dividing by it; TRL's value (verl uses 1e-6)."""


def group_norm(groups: Sequence[Rewards]) -> list[Rewards]:
    """(r - mean) / (std + epsilon), std over n - 1: GRPO (arXiv 2402.03300, section 4.1.2). Zero for one episode."""
    return [_centred(rewards) / (_deviation(rewards) + EPSILON) for rewards in groups]


def group_mean(groups: Sequence[Rewards]) -> list[Rewards]:
    """R - mean: Dr. GRPO (arXiv 2503.20783, section 3.2)."""
    return [_centred(rewards) for rewards in groups]


def rloo(groups: Sequence[Rewards]) -> list[Rewards]:
    """R - mean of the others: leave-one-out (arXiv 2402.14740). Zero for one episode."""
    return [_centred(rewards) * (len(rewards) / max(len(rewards) - 1, 1)) for rewards in groups]


def group_mean_batch_std(groups: Sequence[Rewards]) -> list[Rewards]:
    """(r - mean of the group) / (std of all raw rewards + epsilon): Lite PPO (arXiv 2508.08221, section 4)."""
    if not groups:
        return []
    deviation = _deviation(np.concatenate(list(groups)))
    return [_centred(rewards) / (deviation + EPSILON) for rewards in groups]


def _centred(rewards: Rewards) -> Rewards:
    if not len(rewards):
        return rewards
    # Subtract the first reward first: equal rewards then give exact zeros, which their rounded mean might not.
    shifted: Rewards = rewards - rewards[0]
    centred: Rewards = shifted - shifted.mean()
    return centred


def _deviation(rewards: Rewards) -> float:
    return float(rewards.std(ddof=1)) if len(rewards) > 1 else 0.0


ADVANTAGES.register("group_norm", group_norm)
ADVANTAGES.register("group_mean", group_mean)
ADVANTAGES.register("rloo", rloo)
ADVANTAGES.register("group_mean_batch_std", group_mean_batch_std)
