"""``guard``: acts when a metric, such as the entropy or the KL to the reference model, leaves its bounds.

If a policy collapses, its entropy goes to 0 and its KL diverges; these metrics show the collapse long before the
reward falls. After ``patience`` consecutive logged values outside the bounds, the hook writes a note into the run's
folder and acts. The hook acts again only after the metric has returned to its bounds. The actions are:

- ``action="warn"``: only writes the note;
- ``action="save"``: also requests a checkpoint at the end of the step;
- ``action="stop"``: ends the run after that checkpoint; the run's folder is complete and can be resumed.
"""

# This module is longer than most parts because it has three actions and a state for checkpoints.

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count
from rstar2_env.core.saved_attributes import SavedAttributes

from .base import HOOKS, RunHook
from .state import RunState

Action: TypeAlias = Literal["warn", "save", "stop"]


@dataclass
class Guard(SavedAttributes, RunHook):
    """Warn, save a checkpoint or stop when a metric, such as the KL, leaves its bounds: ``guard:metric=kl,high=0.5``.

    Args:
        metric: A logged metric: ``kl`` (from the loss term ``kl``), ``policy/entropy``, ``grad_norm``, ....
        low: Lower bound; ``None`` for no bound.
        high: Upper bound; ``None`` for no bound.
        patience: Number of consecutive logged values outside the bounds after which the hook acts.
        action: ``"warn"`` only writes a note; ``"save"`` also requests a checkpoint; ``"stop"`` does both and ends the
            run.
    """

    metric: str = "kl"
    low: float | None = None
    high: float | None = None
    patience: Count = 3
    action: Action = "warn"

    saved: ClassVar[tuple[str, ...]] = ("_outside",)

    def __post_init__(self) -> None:
        """Check the bounds and set the initial state.

        Raises:
            ConfigurationError: The lower bound is above the upper bound.
        """
        super().__post_init__()
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ConfigurationError(
                f"The option low={self.low} must not be greater than high={self.high}.", option="low"
            )
        self._outside = 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Compare the logged value with the bounds, and act; do nothing if the metric is missing."""
        value = (logs or {}).get(self.metric)
        if not isinstance(value, (int, float)) or math.isnan(value):
            return
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        self._outside = 0 if low <= value <= high else self._outside + 1
        if self._outside == self.patience:
            act(
                self._run,
                control,
                self.action,
                f"{self.metric} was outside of the range {low:g} to {high:g} {self.patience} times in a "
                f"row, most recently {value:g}",
            )


def act(run: RunState, control: Any, action: Action, why: str) -> None:
    """Write a note and, depending on the action, request a checkpoint or end the run.

    Args:
        run: State of the run, which receives the note.
        control: The control object of transformers' trainer.
        action: ``"warn"``, ``"save"`` or ``"stop"``.
        why: Reason of the action, with which the note begins.
    """
    did = {"warn": "the run continues unchanged", "save": "a checkpoint is written", "stop": "the run stops"}[action]
    run.note(f"{why}: {did}.")
    if action != "warn":
        control.should_save = True
    if action == "stop":
        control.should_training_stop = True


HOOKS.register("guard", Guard)
