"""The one file that touches TRL: how our rollouts, selection and advantages enter ``trl.GRPOTrainer``.

TRL gives two ways in. ``rollout_func`` is asked for exactly as many rows as there are prompts; it plays the episodes,
selects, and returns those rows with a mask of the policy's tokens. A hook after ``_generate_and_score_completions``
replaces TRL's advantages by ours, which know about groups, selection and episodes that do not count. Both are marked
experimental in TRL; nothing of TRL's code is repeated here. Verified with TRL 1.16.
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
    # TRL warns of every vLLM but its own few; we never use the two together.
    warnings.filterwarnings("ignore", message="TRL currently supports vLLM")
    from trl import GRPOTrainer

from rstar2_env.core.episode import Episode

from ...advantages.group import Advantage
from ...selectors.resample_on_correct import Selector

REWARD_COLUMN = "env_reward"


@dataclass(slots=True)
class Batch:
    """The rows of one step on one process.

    Attributes:
        rows: The episodes that train, group after group; ``None`` is a filler, a row with nothing to train.
        advantages: Advantage of each row, 0 for a filler.
        rewards: Reward of each row; a filler repeats the mean of its group, so that TRL's own statistics stay right.
        played: Every episode of the step.
        groups_rejected: Groups of which nothing trains.
        groups: All groups.
    """

    rows: list[Episode | None]
    advantages: list[float]
    rewards: list[float]
    played: list[Episode]
    groups_rejected: int
    groups: int


PlayGroups = Callable[[int], list[list[Episode]]]
"""Plays that many groups and returns their episodes."""


def select(
    groups: Sequence[Sequence[Episode]],
    group_size: int,
    selector: Selector,
    advantage: Advantage,
    rng: np.random.Generator,
) -> Batch:
    """Keep at most ``group_size`` episodes of each group, give them advantages, and fill up with empty rows.

    Returns:
        Exactly ``group_size`` rows a group.
    """
    kept: list[list[Episode]] = []
    for group in groups:
        # One step of the generator for each group, whatever a selector draws, so that groups stay independent.
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
    """TRL's GRPO trainer, fed by our rollouts.

    Args:
        play: Plays groups of episodes.
        selector: Chooses the episodes of a group that train.
        advantage: Turns rewards into advantages.
        group_size: Episodes of a group that train; TRL's ``num_generations``.
        on_batch: Called with every batch, before the loss.
        correct_importance: Weigh each token by its probability under the trainer over that under the engine.
        importance_cap: Largest such weight.
        rng_seed: Seeds the selection, together with the step.
        **kwargs: Everything that ``trl.GRPOTrainer`` takes.
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
        """Play, select, and lay out exactly ``rows`` rows as TRL wants them."""
        rng = np.random.default_rng([self._rng_seed, self.state.global_step, self.accelerator.process_index])
        groups = self._play(rows // self._group_size)
        self._batch = select(groups, self._group_size, self.selector, self._advantage, rng)
        for name, value in self._on_batch(self._batch).items():
            self._log_metric(name, value)
        # A filler is one token that no loss sees: TRL cannot hold an empty row.
        blank = int(self.processing_class.pad_token_id)
        return {
            "prompt_ids": [row.prompt_ids if row else [blank] for row in self._batch.rows],
            "completion_ids": [row.completion_ids if row else [blank] for row in self._batch.rows],
            "env_mask": [row.mask if row else [0] for row in self._batch.rows],
            "logprobs": [row.logprobs if row else [0.0] for row in self._batch.rows],
            REWARD_COLUMN: self._batch.rewards,
        }

    def log_apart(self, figures: dict[str, float]) -> None:
        """Log figures on a line of their own: ``log`` would add the step's figures, and leave them out of its line."""
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
    """The return of each episode, as the environment gave it."""
    return list(columns[REWARD_COLUMN])
