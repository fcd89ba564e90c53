"""``relift``: RL with fine-tuning between its steps on what nobody solved (ReLIFT, arXiv 2506.07527).

GRPO without the deviation, A = r - mean of the group, learns nothing from a problem of which no episode is right. Such
a problem goes to a buffer with its demonstration, and once ``size`` are there one step of fine-tuning is taken on them:

    L_SFT = -(mean of log p over the tokens of the policy's turns), at a learning rate of 1e-6

The paper has a buffer of 128 and asks a stronger model for the demonstration of a hard problem when it comes up; here
they are a file of traces that an earlier stage left. Golden numbers: of rewards 1, 0, 0, 1 the advantages are +-0.5;
with ``size`` 3, problems that nobody solved of 2 and 2 in two steps make one step of fine-tuning, after the second, on
4. Not covered: the entropy bonus of 0.001 of the released code (``options: {loss: ...}`` takes one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.core.run_folder import read_run

from ..base import STAGES, Figures, Work
from .train import Train

_HOOK = "interleaved_sft"


@dataclass(frozen=True)
class Relift(Train):
    """Train with steps of fine-tuning on demonstrations of unsolved problems between those of RL (arXiv 2506.07527).

    Attributes:
        demonstrations: Traces with ``problem_id``.
        size: Unsolved problems that make one step of fine-tuning.
        sft_learning_rate: Learning rate of that step; ``None`` takes the schedule's.
    """

    recipe: str = "grpo"
    demonstrations: str | None = None
    size: int = option(128, least=1)
    sft_learning_rate: float | None = option(1e-6, above=0)

    inputs: ClassVar[Mapping[str, str]] = {**Train.inputs, "demonstrations": "traces"}

    def resolved(self) -> Mapping[str, Any]:
        """See ``Stage``."""
        if self.demonstrations is None:
            raise ConfigurationError("ReLIFT needs demonstrations: traces of problems that it trains on.")
        found = dict(super().resolved())
        hooks = [one for one in found["parts"]["hook"] if one["name"] != _HOOK]
        found["parts"] = {**found["parts"], "hook": hooks}
        return {**found, "size": self.size, "sft_learning_rate": self.sft_learning_rate}

    def below(self) -> list[Mapping[str, Any]]:
        """See ``Train``."""
        if self.demonstrations is None or not Path(self.demonstrations).is_file():
            return [{"parts": {"advantage": "group_mean"}}]  # before the stage that writes them
        hook = {"demonstrations": self.demonstrations, "size": self.size, "learning_rate": self.sft_learning_rate}
        return [{"parts": {"advantage": "group_mean", "hook": {_HOOK: hook}}}]

    def run(self, work: Work) -> Figures:
        """See ``Stage``."""
        figures = super().run(work)
        notes = read_run(work.folder).notes
        return {**figures, "sft_steps": float(sum("an SFT step on" in str(note["text"]) for note in notes))}


STAGES.register("relift", Relift)
