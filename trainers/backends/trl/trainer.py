"""``RolloutGRPOTrainer``: feeds this package's rollouts, selection and advantages into ``trl.GRPOTrainer``.

It uses two extension points. ``rollout_func`` must return exactly as many rows as there are prompts; it plays the
episodes, selects, and returns the rows with a mask of the policy's tokens. An override of
``_generate_and_score_completions`` replaces TRL's advantages with those of the recipe, which account for groups,
selection and ``unavailable`` episodes. Both are experimental in TRL; no code of TRL is copied here. Tested with TRL
1.16.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import Trainer

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

with warnings.catch_warnings():
    # TRL warns about every vLLM version that it does not support; this package never uses vLLM through TRL.
    warnings.filterwarnings("ignore", message="TRL currently supports vLLM")
    from trl import GRPOTrainer

from rstar2_env.core.episode import Episode

from ...advantages.base import Advantage
from ...selectors.base import Selector

REWARD_COLUMN = "env_reward"


@dataclass(slots=True)
class Batch:
    """The rows of one step on one process.

    Attributes:
        rows: The selected episodes, group after group; ``None`` is a filler, a row without a token in the loss.
        advantages: Advantage of each row, 0 for a filler.
        rewards: Reward of each row; a filler repeats the mean of its group, so that TRL's own statistics stay right.
        played: Every episode of the step.
        groups_rejected: Number of groups of which no episode was selected.
        groups: Number of groups.
    """

    rows: list[Episode | None]
    advantages: list[float]
    rewards: list[float]
    played: list[Episode]
    groups_rejected: int
    groups: int


PlayGroups = Callable[[int], list[list[Episode]]]
"""Plays the given number of groups and returns the episodes of each."""


def select(
    groups: Sequence[Sequence[Episode]],
    group_size: int,
    selector: Selector,
    advantage: Advantage,
    rng: np.random.Generator,
) -> Batch:
    """Select episodes of each group, compute their advantages, and pad each group with filler rows.

    Args:
        groups: The episodes of each group.
        group_size: Rows per group; at most as many episodes are selected.
        selector: Chooses the episodes.
        advantage: Turns the rewards of the selected episodes into advantages.
        rng: Source of the selector's random draws.

    Returns:
        Exactly ``group_size`` rows per group.
    """
    kept: list[list[Episode]] = []
    for group in groups:
        # Each group gets a generator of its own, so that what a selector draws for one does not affect the others.
        own = np.random.default_rng(rng.integers(2**63))
        chosen = [group[position] for position in selector(group, group_size, own)]
        trainable = [episode for episode in chosen if episode.policy_tokens]
        kept.append(trainable if len(trainable) > 1 else [])
    values = advantage([np.array([episode.reward for episode in episodes]) for episodes in kept])
    rows: list[Episode | None] = []
    scores: list[float] = []
    rewards: list[float] = []
    for group, episodes, own_scores in zip(groups, kept, values, strict=True):
        fillers = group_size - len(episodes)
        rows += [*episodes, *[None] * fillers]
        scores += [*map(float, own_scores), *[0.0] * fillers]
        usable = [episode.reward for episode in group if episode.available] or [0.0]
        rewards += [*(episode.reward for episode in episodes), *[sum(usable) / len(usable)] * fillers]
    return Batch(
        rows=rows,
        advantages=scores,
        rewards=rewards,
        played=[episode for group in groups for episode in group],
        groups_rejected=sum(not episodes for episodes in kept),
        groups=len(groups),
    )


class RolloutGRPOTrainer(GRPOTrainer):
    """TRL's GRPO trainer on the rollouts of this package.

    Args:
        play: Plays groups of episodes.
        selector: Chooses which episodes of a group are trained on.
        advantage: Turns rewards into advantages.
        group_size: Rows per group; TRL's ``num_generations``.
        on_batch: Called with every batch before its loss is computed; returns metrics to log.
        correct_importance: Weight each token by its probability under the trainer divided by that under the engine.
        importance_cap: Largest such weight.
        rng_seed: Seed of the selection, combined with the step.
        **kwargs: Arguments of ``trl.GRPOTrainer``.
    """

    def __init__(
        self,
        *,
        play: PlayGroups,
        selector: Selector,
        advantage: Advantage,
        group_size: int,
        on_batch: Callable[[Batch], dict[str, float]],
        correct_importance: bool,
        importance_cap: float,
        rng_seed: int,
        **kwargs: Any,
    ) -> None:
        self._play, self.selector, self._advantage = play, selector, advantage
        self._group_size, self._on_batch, self._rng_seed = group_size, on_batch, rng_seed
        self._correct_importance, self._importance_cap = correct_importance, importance_cap
        self._batch: Batch | None = None
        super().__init__(rollout_func=_rollout, reward_funcs=[_env_reward], **kwargs)

    def rollout(self, rows: int) -> dict[str, Any]:
        """Play and select episodes; return exactly ``rows`` rows in the form that TRL expects."""
        rng = np.random.default_rng([self._rng_seed, self.state.global_step, self.accelerator.process_index])
        groups = self._play(rows // self._group_size)
        self._batch = select(groups, self._group_size, self.selector, self._advantage, rng)
        for name, value in self._on_batch(self._batch).items():
            self._log_metric(name, value)
        # A filler is one masked token, since TRL does not support empty rows.
        blank = int(self.processing_class.pad_token_id)
        return {
            "prompt_ids": [row.prompt_ids if row else [blank] for row in self._batch.rows],
            "completion_ids": [row.completion_ids if row else [blank] for row in self._batch.rows],
            "env_mask": [row.mask if row else [0] for row in self._batch.rows],
            "logprobs": [row.logprobs if row else [0.0] for row in self._batch.rows],
            REWARD_COLUMN: self._batch.rewards,
        }

    def log_apart(self, figures: dict[str, float]) -> None:
        """Log metrics on a line of their own; ``log`` would move the step's metrics to that line."""
        Trainer.log(self, figures)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        assert self._batch is not None  # TRL has just called the rollout
        mask = output["completion_mask"] * output["tool_mask"]
        advantages = torch.tensor(self._batch.advantages, dtype=torch.float32, device=mask.device)
        if self._correct_importance:
            advantages = advantages[:, None] * self._importance(output, mask)
        output["advantages"] = advantages
        return output

    def _importance(self, output: dict[str, Any], mask: Tensor) -> Tensor:
        """Truncated importance ratio of each token, (B, T), 1 outside the mask.

        Multiplying the advantage by it multiplies the clipped surrogate by it, as the ratio is positive. It is
        truncated token by token: a ratio of whole sequences would drop long episodes.
        """
        old = output.get("old_per_token_logps")
        if old is None:
            ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
            attention = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
            with torch.no_grad():
                old = self._get_per_token_logps_and_entropies(
                    self.model, ids, attention, mask.shape[1], batch_size=self.args.per_device_train_batch_size
                )[0]
            output["old_per_token_logps"] = old
        difference = torch.where(mask.bool(), old - output["sampling_per_token_logps"], 0.0)
        total = mask.sum().clamp(min=1)
        self._metrics["train"]["sampling_logp_difference"].append((difference.abs().sum() / total).item())
        return difference.exp().clamp(max=self._importance_cap)


def _rollout(prompts: Sequence[Any], trainer: RolloutGRPOTrainer) -> dict[str, Any]:
    return trainer.rollout(len(prompts))


def _env_reward(**columns: Any) -> list[float]:
    """Return the reward of each episode, as the environment gave it."""
    return list(columns[REWARD_COLUMN])
