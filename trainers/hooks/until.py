"""``until``: ends a run when a metric, such as the held-out pass rate, meets a criterion.

The run ends when the criterion is met or when all of the run's steps are done, whichever comes first. The criterion is
checked whenever its metric is logged; a metric of held-out problems (``eval/...``) is therefore checked after each
evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .base import HOOKS, RunHook
from .criterion import read_criterion
from .guard import act


@dataclass
class Until(RunHook):
    """End the run when a metric meets a criterion: ``criterion="eval/pass_rate >= 0.9"``.

    The weights at that step are the run's final weights, and the run's folder is complete.

    Args:
        criterion: A logged metric, one of ``>=``, ``<=``, ``>`` and ``<``, and a number.
    """

    criterion: str

    def __post_init__(self) -> None:
        """Read the criterion.

        Raises:
            ConfigurationError: The criterion is not a metric, a sign and a number.
        """
        super().__post_init__()
        self._criterion = read_criterion(self.criterion)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """End the run if the logged metrics meet the criterion."""
        if not control.should_training_stop and self._criterion.met(logs or {}):
            act(self._run, control, "stop", f"{self._criterion} is met")


HOOKS.register("until", Until)
