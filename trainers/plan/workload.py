"""``Workload``: the work of a run's step, from its options."""

from __future__ import annotations

from dataclasses import dataclass

from ..options.config import TrainConfig


@dataclass(frozen=True, slots=True)
class Workload:
    """The episodes and training of one step of a run.

    Attributes:
        groups: Number of groups of a step.
        played: Number of episodes that a group plays.
        trained: Number of episodes of a group that are trained on.
        budget: Maximum number of tokens of an episode after its prompt.
        tokens_per_device: Maximum number of tokens of one forward and backward pass.
        in_flight: Maximum number of concurrent episodes of one training process.
        updates: Number of optimizer passes over a rollout.
        minibatches: Number of optimizer steps of such a pass.
        lora_rank: Rank of the adapters; 0 trains all weights.
        recompute: Whether layers are recomputed; ``None`` if it depends on the device.
        dtype: Precision of the computation.
        sharding: The sharding of the processes; ``None`` if the plan chooses.
        reference: Whether a term of the loss needs the reference model.
        max_staleness: Maximum number of weight versions by which rollouts run ahead of training.
    """

    groups: int
    played: int
    trained: int
    budget: int
    tokens_per_device: int
    in_flight: int
    updates: int = 1
    minibatches: int = 1
    lora_rank: int = 0
    recompute: bool | None = None
    dtype: str = "auto"
    sharding: str | None = None
    reference: bool = False
    max_staleness: int = 0

    @classmethod
    def of(cls, config: TrainConfig) -> Workload:
        """Return the workload of a run with the given options."""
        rollout, optim, model = config.rollout, config.optim, config.model
        return cls(
            groups=rollout.problems_per_step,
            played=rollout.group_size * rollout.oversample,
            trained=rollout.group_size,
            budget=rollout.max_episode_tokens,
            tokens_per_device=optim.tokens_per_device,
            in_flight=rollout.max_in_flight,
            updates=optim.updates_per_rollout,
            minibatches=optim.minibatches,
            lora_rank=model.lora_rank,
            recompute=model.gradient_checkpointing,
            dtype=model.dtype,
            sharding=getattr(config.run, "sharding", None),
            reference=any(getattr(term, "name", "") == "kl" for term in config.parts.loss),
            max_staleness=int(getattr(rollout, "max_staleness", 0)),
        )

    @property
    def episodes(self) -> int:
        """Number of episodes that a step plays, without refills."""
        return self.groups * self.played

    @property
    def rows(self) -> int:
        """Number of episodes that a step trains on."""
        return self.groups * self.trained
