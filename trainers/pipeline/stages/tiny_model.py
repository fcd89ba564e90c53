"""``tiny_model``: an untrained model of half a million parameters, for pipelines on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from ...base import needs_training_stack
from ..base import STAGES, Output, StageMeasurements, Work
from ..cost import Cost, CostInputs
from ..plan import plain_options


@dataclass(frozen=True)
class TinyModel(CheckedOptions):
    """Create an untrained Qwen3 with a character-level tokenizer; see ``rstar2_env.trainers.demonstration.tiny``.

    Attributes:
        hidden: Width of the residual stream, a multiple of 32.
        layers: Number of layers.
        seed: Seed of the weights; ``None`` for the pipeline's seed.
    """

    hidden: int = option(128, least=32)
    layers: int = option(3, least=1)
    seed: int | None = option(None, least=0)

    inputs: ClassVar[Mapping[str, str]] = {}
    outputs: ClassVar[Mapping[str, Output]] = {"model": Output("model")}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        return plain_options(self)

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs; see ``Stage``."""
        return Cost(seconds=1.0)

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        with needs_training_stack("A tiny model"):
            from ...demonstration.tiny import make_tiny_model
        make_tiny_model(work.folder, hidden=self.hidden, layers=self.layers, seed=work.seed)
        return {}


STAGES.register("tiny_model", TinyModel)
