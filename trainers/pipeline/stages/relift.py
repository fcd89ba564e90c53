"""``relift``: RL with interleaved fine-tuning on unsolved problems (ReLIFT, arXiv 2506.07527).

GRPO without division by the standard deviation (advantage A = reward - mean reward of the group) learns nothing from a
problem without a correct episode. Such a problem is added to a buffer with its demonstration. When the buffer holds at
least ``size`` problems, one fine-tuning step is taken on them:

    L_SFT = -(mean of log p over the tokens of the policy's turns), with a learning rate of 1e-6

The paper uses a buffer of 128 and requests the demonstration of a hard problem from a stronger model during training;
here, the demonstrations are a file of traces from an earlier stage. Example: for rewards 1, 0, 0, 1 the
advantages are +-0.5; with ``size`` 3 and two unsolved problems in each of two steps, one fine-tuning step on 4 problems
follows the second step. Not covered: the entropy bonus of 0.001 of the released code (set it with
``options: {loss: ...}``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.core.run_folder import read_run

from ...hooks.interleaved_sft import TAKEN
from ..base import STAGES, StageMeasurements, Work
from .train import Train

_HOOK = "interleaved_sft"


@dataclass(frozen=True)
class Relift(Train):
    """Train with RL steps and fine-tuning steps on demonstrations of unsolved problems (arXiv 2506.07527).

    Attributes:
        demonstrations: Traces with ``problem_id``.
        size: Number of unsolved problems that trigger a fine-tuning step.
        sft_learning_rate: Learning rate of that step; ``None`` uses the schedule's.
    """

    recipe: str = "grpo_clip_higher"
    demonstrations: str | None = None
    size: int = option(128, least=1)
    sft_learning_rate: float | None = option(1e-6, above=0)

    inputs: ClassVar[Mapping[str, str]] = {**Train.inputs, "demonstrations": "traces"}

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; see ``Stage``."""
        if self.demonstrations is None:
            raise ConfigurationError(
                "The option `demonstrations` is required: a file of traces of the training problems."
            )
        found = dict(super().resolved())
        hooks = [one for one in found["parts"]["hook"] if one["name"] != _HOOK]
        found["parts"] = {**found["parts"], "hook": hooks}
        return {**found, "size": self.size, "sft_learning_rate": self.sft_learning_rate}

    def below(self) -> list[Mapping[str, Any]]:
        """Return the default options of ReLIFT, which the user's options override; see ``Train``."""
        if self.demonstrations is None or not Path(self.demonstrations).is_file():
            return [{"parts": {"advantage": "group_mean"}}]  # the stage that writes the demonstrations has not finished
        hook = {"demonstrations": self.demonstrations, "size": self.size, "learning_rate": self.sft_learning_rate}
        return [{"parts": {"advantage": "group_mean", "hook": {_HOOK: hook}}}]

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        figures = super().run(work)
        notes = read_run(work.folder).notes
        return {**figures, "sft_steps": float(sum(TAKEN in str(note["text"]) for note in notes))}


STAGES.register("relift", Relift)
