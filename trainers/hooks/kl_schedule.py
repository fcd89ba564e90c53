"""``kl_schedule``: changes the KL coefficient linearly, then keeps it constant (KDRL, arXiv 2506.02208)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rstar2_env.core.options.declare import option

from .base import HOOKS, RunHook
from .state import RunState


@dataclass
class KlSchedule(RunHook):
    """Change the coefficient of a loss term linearly over the steps, then keep the coefficient constant.

    The defaults are KDRL's (arXiv 2506.02208): from 5e-3 down by 5e-5 per step to 1e-3, reached at step 80.

    Args:
        start: Coefficient of the first step.
        end: Coefficient after ``steps`` optimizer steps.
        steps: Number of optimizer steps over which the coefficient changes; ``None`` for all steps of the run.
        term: Name of the term of the loss.
    """

    start: float = option(5e-3, least=0)
    end: float = option(1e-3, least=0)
    steps: int | None = option(80, least=1)
    term: str = "kl"

    def bind(self, run: RunState) -> None:
        """Store the run's state, and check that the run has everything that the hook needs; see ``Binds``.

        Raises:
            ConfigurationError: The loss has no term ``term``, or that term has no coefficient.
        """
        run.coefficient(self.term)
        super().bind(run)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Set the coefficient of the step."""
        run = self._run
        done = min(1.0, run.step / (self.steps or run.steps))
        run.set_coefficient(self.start + (self.end - self.start) * done, self.term)


HOOKS.register("kl_schedule", KlSchedule)
