"""``reference_reset``: the policy becomes the reference model if results stop improving (ProRL, arXiv 2505.24864)."""

# This module is longer than most parts because it resets for two reasons and has a state for checkpoints.

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option
from rstar2_env.core.saved_attributes import SavedAttributes

from .base import HOOKS, RunHook
from .state import RunState


@dataclass
class ReferenceReset(SavedAttributes, RunHook):
    """Reset the reference model to the policy, and the optimizer with it (ProRL, arXiv 2505.24864).

    The paper resets manually when the validation results stop improving; this hook resets after ``patience``
    evaluations without an improvement.

    Args:
        patience: The hook resets after this number of consecutive evaluations without an improvement on the best one
            since the last reset.
        delta: Minimum increase of ``metric`` that counts as an improvement.
        metric: The metric of the evaluation; higher is better.
        most_kl: Also reset when the logged divergence from the reference model exceeds this value; ``None`` disables
            this condition.
        optimizer: Whether to also reset the optimizer's moments, as the paper does.
    """

    patience: int = option(2, least=1)
    delta: float = option(0.0, least=0)
    metric: str = "eval/pass_rate"
    most_kl: float | None = option(None, above=0)
    optimizer: bool = True

    saved: ClassVar[tuple[str, ...]] = ("_best", "_stale")

    def __post_init__(self) -> None:
        """Check the options and set the initial state."""
        super().__post_init__()
        self._best: float | None = None
        self._stale = 0

    def bind(self, run: RunState) -> None:
        """Store the run's state, and check that the run has everything that the hook needs; see ``Binds``.

        Raises:
            ConfigurationError: The run has no reference model, or nothing could ever trigger a reset.
        """
        if not run.has_reference:
            raise ConfigurationError(
                "The hook 'reference_reset' needs a reference model, but no term of the loss uses one: add a KL "
                "term (loss.kl.coef=1e-4)."
            )
        if not run.evaluates and self.most_kl is None:
            raise ConfigurationError(
                "The hook 'reference_reset' resets the reference model when evaluations stop improving, "
                "but this run has no evaluations: set eval.every, or hook.reference_reset.most_kl.",
                option="eval.every",
            )
        super().bind(run)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Mapping[str, float], **kwargs: Any) -> None:
        """Count consecutive evaluations without an improvement, and reset when their number reaches ``patience``."""
        figure = metrics.get(self.metric, math.nan)
        if math.isnan(figure):
            return
        if self._best is None or figure > self._best + self.delta:
            self._best, self._stale = figure, 0
            return
        self._stale += 1
        if self._stale >= self.patience:
            self._best = figure
            self._reset()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **kwargs: Any) -> None:
        """Reset if the logged divergence is above ``most_kl``."""
        if self.most_kl is not None and logs.get("kl", 0.0) > self.most_kl:
            self._reset()

    def _reset(self) -> None:
        self._stale = 0
        self._run.reset_reference()
        if self.optimizer:
            self._run.reset_optimizer()


HOOKS.register("reference_reset", ReferenceReset)
