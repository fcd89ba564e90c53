"""``Workload``: the work of a run's step, from its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..losses.base import needs_of
from ..options.config import TrainConfig
from ..options.parts import make_parts
from .assumptions import Assumptions
from .device import GIB, Device

SIZED_BY = ("kv_cache_gib", "gpu_memory_utilization", "kv_cache_memory_bytes", "num_gpu_blocks_override")
"""Engine options that set the cache size."""
_BLOCK = 16
"""Default number of tokens in a block of vLLM's cache."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The episodes and training of one step of a run.

    Attributes:
        groups: Number of groups of a step.
        played: Number of episodes of a group that are played.
        trained: Number of episodes of a group that are trained on.
        budget: Maximum number of tokens of an episode after its prompt.
        tokens_per_device: Maximum number of tokens of one forward and backward pass.
        in_flight: Maximum number of concurrent episodes of one training process.
        updates: Number of optimizer passes over a rollout.
        minibatches: Number of optimizer steps in one pass over a rollout.
        lora_rank: Rank of the adapters; 0 trains all weights.
        recompute: Whether layers are recomputed; ``None`` if it depends on the device.
        dtype: Precision of the computation.
        sharding: Method by which the processes divide weights and optimizer state; ``None`` if several processes
            shard by default (``rstar2 launch``).
        reference: Whether a term of the loss, such as ``kl``, needs the reference model.
        max_staleness: Maximum number of rollouts that are trained on between the generation of a turn and the first
            update on that turn.
        share_prefixes: Whether the prompt of a group is computed once for the rows of a pass.
        engine_options: Options of the engine in the trainer's process, which may set the size of its cache.
        offload_state: Whether the optimizer's state is in host memory during rollouts; ``None`` if that depends on
            whether a colocated engine needs the memory.
        transport: How weights reach servers: ``folder``, ``group`` or ``adapter``.
        relays: Whether one server of each machine copies the weights of a shared folder for the other servers there.
        eval_every: Steps between evaluations; 0 for none.
        eval_episodes: Number of episodes of an evaluation.
        max_eval_tokens: Maximum number of tokens of an evaluation episode after its prompt.
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
    share_prefixes: bool = False
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    offload_state: bool | None = None
    transport: str = "folder"
    relays: bool = False
    eval_every: int = 0
    eval_episodes: int = 0
    max_eval_tokens: int = 0

    @classmethod
    def of(cls, config: TrainConfig) -> Workload:
        """Return the workload of a run with the given options.

        Raises:
            UnknownNameError: The name of a part is unknown.
            ConfigurationError: A part does not accept its options; see ``make_parts``.
        """
        rollout, optim, model, held_out = config.rollout, config.optim, config.model, config.eval
        parts = make_parts(config, shares_weights=False)
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
            reference="reference" in needs_of(parts.terms, parts.correction),
            max_staleness=int(getattr(rollout, "max_staleness", 0)),
            share_prefixes=optim.share_prefixes and model.attn_implementation in (None, "sdpa"),
            engine_options=dict(rollout.engine_options) if rollout.engine == "vllm" else {},
            offload_state=optim.offload_state,
            transport=str(rollout.engine_options.get("transport", "folder")),
            relays=bool(rollout.engine_options.get("relay_dir")),
            eval_every=held_out.every,
            eval_episodes=held_out.episodes,
            max_eval_tokens=held_out.max_episode_tokens or rollout.max_episode_tokens,
        )

    @property
    def episodes(self) -> int:
        """Number of episodes that a step plays, without refills."""
        return self.groups * self.played

    @property
    def rows(self) -> int:
        """Number of episodes that a step trains on."""
        return self.groups * self.trained

    @property
    def held_out(self) -> float:
        """Number of evaluation episodes for each step, on average."""
        return self.eval_episodes / self.eval_every if self.eval_every else 0.0

    @property
    def sizes_cache(self) -> bool:
        """Whether an option of the engine in the trainer's process sets the size of the engine's cache."""
        return any(self.engine_options.get(name) is not None for name in SIZED_BY)

    def cache_bytes(self, device: Device, weights: float, token: float, assume: Assumptions) -> float | None:
        """Return the cache size, in bytes, that an option sets for the trainer's engine; ``None`` if none does.

        Args:
            device: The engine's device.
            weights: Bytes of the engine's weights.
            token: Bytes of one token in the cache.
            assume: Assumptions about hardware, software and episodes.
        """
        given = self.engine_options
        if (gib := given.get("kv_cache_gib")) is not None:
            return float(gib) * GIB
        if (size := given.get("kv_cache_memory_bytes")) is not None:
            return float(size)
        if (blocks := given.get("num_gpu_blocks_override")) is not None:
            return float(blocks) * int(given.get("block_size") or _BLOCK) * token
        if (share := given.get("gpu_memory_utilization")) is not None:
            return float(share) * device.memory - weights - assume.reserve_gib * GIB
        return None


def mean_tokens(work: Workload, assume: Assumptions) -> int:
    """Return the mean number of tokens of an episode after its prompt."""
    return assume.mean_tokens or max(1, work.budget // 2)


def concurrent_tokens(work: Workload, engines: int, assume: Assumptions) -> int:
    """Return the number of tokens of the episodes that one colocated engine plays at once, if all have the mean length.

    Args:
        work: The work of a step.
        engines: Number of engines, each in a training process.
        assume: Assumptions about hardware, software and episodes.
    """
    return min(work.in_flight, -(-work.episodes // engines)) * (assume.prompt_tokens + mean_tokens(work, assume))
