"""``evaluate``: evaluates a model on problems, with several samples per problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..base import STAGES, Output, StageMeasurements, Work
from ..playing import PlayingStage


@dataclass(frozen=True, kw_only=True)
class Evaluate(PlayingStage):
    """Evaluate a model, as ``rstar2 eval`` does.

    Attributes:
        k: The values of k for pass@k, avg@k and maj@k; ``None`` means 1 and ``n``, the number of episodes per problem.
    """

    k: list[int] | None = None

    inputs: ClassVar[Mapping[str, str]] = {"model": "model", "problems": "problems"}
    outputs: ClassVar[Mapping[str, Output]] = {"episodes": Output("episodes")}

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage, and return its measurements; see ``Stage``."""
        more: dict[str, Any] = {} if self.k is None else {"k": self.k}
        return dict(self.play(work, **more).log_figures())


STAGES.register("evaluate", Evaluate)
