"""``until``: ends a run once a figure is good enough, such as the held-out pass rate: an exit condition.

The steps of the run are the other one; whichever comes first ends it. The criterion is looked at whenever the figure is
logged, so that one of held-out problems (``eval/...``) is looked at after each evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.options.declare import CheckedOptions

from .base import HOOKS
from .criterion import read_criterion
from .guard import act
from .state import RunState


@dataclass
class Until(CheckedOptions):
    """End the run once a figure meets a criterion: ``criterion="eval/pass_rate >= 0.9"``.

    The weights of that step are the last ones of the run, and its folder is complete.

    Args:
        criterion: A figure of the logs, one of ``>=``, ``<=``, ``>`` and ``<``, and a number.
    """

    criterion: str

    def __post_init__(self) -> None:
        """Read the criterion.

        Raises:
            ConfigurationError: It is not of that form.
        """
        super().__post_init__()
        self._criterion = read_criterion(self.criterion)

    def bind(self, run: RunState) -> None:
        """See ``Binds``."""
        self._run = run

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Look at the figure, where it was logged."""
        if not control.should_training_stop and self._criterion.met(logs or {}):
            act(self._run, control, "stop", f"{self._criterion} is met")


HOOKS.register("until", Until)
