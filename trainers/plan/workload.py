"""``Workload``: the work of a run's step, from its options."""

from __future__ import annotations

from dataclasses import dataclass

from ..options.config import TrainConfig


@dataclass(frozen=True, slots=True)
class Workload:
    """The episodes and training of one step of a run.

    Attributes:
        groups: Groups of a step.
        played: Episodes of each.
        trained: Episodes of each that train.
        budget: Tokens that an episode may have after its prompt.
        tokens_per_device: Tokens of one forward and backward pass.
        in_flight: Episodes that one process of the trainer plays at once, at most.
        updates: Optimizer passes over a rollout.
        minibatches: Optimizer steps of such a pass.
        lora_rank: Rank of the adapters; 0 trains all weights.
        recompute: Whether layers are recomputed; ``None`` if it depends on the device.
        dtype: Precision of the computation.
        sharding: The sharding of the processes; ``None`` if the plan chooses.
        reference: Whether a term of the loss needs the reference model.
        max_staleness: Versions by which rollouts run ahead.
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
        """Read the options of a run."""
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
        """Episodes that a step plays, rounds of refill aside."""
        return self.groups * self.played

    @property
    def rows(self) -> int:
        """Episodes that a step trains on."""
        return self.groups * self.trained
