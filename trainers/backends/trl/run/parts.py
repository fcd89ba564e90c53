"""Records of the objects of a run, in the order of their creation: setup, loaded policy, players."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import nn
from transformers import PreTrainedTokenizerBase

from rstar2_env.problems import ProblemSource
from rstar2_env.rollout import ChatCodec, Player

from ....options.config import TrainConfig
from ....options.parts import Parts
from ....queue.adaptive_limit import Adaptive
from ....step.collector import Collector
from ..adapters import PolicyModel
from ..cpu_speed import CpuChoice
from ..loss.measuring import PolicyMeasurer
from ..ranks import AccelerateRanks
from ..sharding.choice import Sharding
from ..weight_sync.engine import PolicyEngine
from ..weight_sync.stale import StalePolicy


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Options and objects of a run that are created and checked before a model is loaded.

    Attributes:
        name: Name of the recipe.
        config: Options of the run.
        parts: Parts of the recipe.
        sharding: The sharding of the weights and the optimizer state.
        ranks: The processes.
        checkpoint: The checkpoint to resume from; ``None`` for a new run.
        begin_from: The checkpoint of an earlier run whose optimizer state this run loads; ``None`` for a new optimizer.
        choice: Threads and precision of training on a CPU; ``None`` on an accelerator.
    """

    name: str
    config: TrainConfig
    parts: Parts
    sharding: Sharding
    ranks: AccelerateRanks
    checkpoint: Path | None
    begin_from: Path | None
    choice: CpuChoice | None = None

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(self.config.run.output_dir)

    @property
    def divided(self) -> bool:
        """Whether the policy is sharded over several processes with FSDP2."""
        return self.sharding == "fsdp2" and self.ranks.size > 1

    @property
    def waits(self) -> bool:
        """Whether this process receives its weights from the first process."""
        return self.divided and self.ranks.rank > 0


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """The loaded policy, before the trainer prepares it.

    Attributes:
        model: The model, with or without an adapter.
        tokenizer: The policy's tokenizer.
        stale_copy: A copy of the model that will hold older weights; ``None`` if the rollout part needs none.
    """

    model: PolicyModel
    tokenizer: PreTrainedTokenizerBase
    stale_copy: nn.Module | None


@dataclass(frozen=True, slots=True)
class PlayParts:
    """The engines, players and collector of a run.

    Attributes:
        policy: The engine with the policy's current weights.
        stale: The engine with older weights; ``None`` if the rollout part needs none.
        train: The player of training episodes.
        evaluation: The player of held-out episodes.
        chat: Renders the conversations of ``evaluation``.
        problems: The environment's training problems; ``None`` if the environment has no problem source.
        limits: Adapts the number of episodes in flight; ``None`` for a fixed number.
        measuring: Computes the measurements that the advantage estimator needs.
        collector: Collects the batches.
    """

    policy: PolicyEngine
    stale: StalePolicy | None
    train: Player
    evaluation: Player
    chat: ChatCodec
    problems: ProblemSource | None
    limits: Adaptive | None
    measuring: PolicyMeasurer
    collector: Collector

    def close(self) -> None:
        """Close the environments, the engines and the connections to other processes."""
        for part in (self.collector, self.train, self.evaluation, self.policy, self.stale):
            if part is not None:
                part.close()
