"""``temperature_schedule``: changes the sampling temperature linearly from one value to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rstar2_env.core.options.declare import option

from .base import HOOKS, RunHook


@dataclass
class TemperatureSchedule(RunHook):
    """Change the sampling temperature linearly over the steps, then keep the temperature constant.

    A policy becomes sharper during training; raising the temperature keeps its rollouts diverse (Polaris, 2025,
    hkunlp.github.io/blog/2025/Polaris, which raises it between stages).

    Args:
        start: Temperature of the first step.
        end: Temperature after ``steps`` optimizer steps.
        steps: Number of optimizer steps over which the temperature changes; ``None`` for all steps of the run.
    """

    start: float = option(1.0, above=0)
    end: float = option(1.2, above=0)
    steps: int | None = option(None, least=1)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Set the temperature of the next rollout."""
        run = self._run
        done = min(1.0, run.step / (self.steps or run.steps))
        run.temperature = self.start + (self.end - self.start) * done


HOOKS.register("temperature_schedule", TemperatureSchedule)
