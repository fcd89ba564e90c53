"""``collapse``: stops a run, or saves a checkpoint, if the reward falls (rStar2-Agent, arXiv 2508.20722).

The paper's run collapsed after step 510 and could not be recovered (section 5.3): continuing costs compute and replaces
good checkpoints. The reward of a single step is noisy, so the hook uses its mean over ``window`` logs:

    collapsed: ``patience`` consecutive means below best - share * |best|, where best is the highest mean so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rstar2_env.core.options.declare import Count, option
from rstar2_env.core.saved_attributes import SavedAttributes

from .base import HOOKS, RunHook
from .guard import Action, act


@dataclass
class Collapse(SavedAttributes, RunHook):
    """Warn, save a checkpoint or stop when the reward has fallen far below its best (rStar2-Agent, arXiv 2508.20722).

    The hook acts once and writes a note with the observed values. If the run continues, the hook can act again after
    the mean of the metric has risen to the threshold or above.

    Args:
        metric: The logged metric to watch; higher is better.
        share: Distance of the threshold below the best mean, as a share of the best mean.
        window: Number of logged values over which the mean is computed.
        patience: Number of consecutive means below the threshold after which the hook acts.
        action: ``"stop"`` writes a checkpoint and ends the run; ``"save"`` only writes a checkpoint; ``"warn"`` only
            logs a warning.
    """

    metric: str = "rollout/reward"
    share: float = option(0.3, above=0, most=1)
    window: Count = 10
    patience: Count = 10
    action: Action = "stop"

    saved: ClassVar[tuple[str, ...]] = ("_seen", "_best", "_best_step", "_below")

    def __post_init__(self) -> None:
        """Check the options and set the initial state."""
        super().__post_init__()
        self._seen: list[float] = []
        self._best: float | None = None
        self._below = self._best_step = 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Add the logged value to the window, and act if the mean is too low; do nothing if the metric is missing."""
        value = (logs or {}).get(self.metric)
        if not isinstance(value, (int, float)) or math.isnan(value):
            return
        self._seen = [*self._seen, float(value)][-self.window :]
        if len(self._seen) < self.window:
            return
        mean = math.fsum(self._seen) / self.window
        if self._best is None or mean > self._best:
            self._best, self._best_step = mean, self._run.step
        line = self._best - self.share * abs(self._best)
        self._below = self._below + 1 if mean < line else 0
        if self._below == self.patience:
            why = (
                f"{self.metric} has collapsed: its mean over {self.window} logged steps was below "
                f"{line:.4g} {self.patience} times in a row, most recently {mean:.4g}; its best mean was "
                f"{self._best:.4g} at step {self._best_step}"
            )
            act(self._run, control, self.action, why)


HOOKS.register("collapse", Collapse)
