"""``policy_refresh``: each stage of a curriculum starts with the policy as its own reference (arXiv 2507.17512).

"Can One Domain Help Others?" trains in stages, from easy to hard within a domain. At the end of each stage, the policy
is copied to the reference model and the optimizer's moments are reset, so the next stage is not constrained by the
previous one. The study also found that different chat templates in training and evaluation cost more accuracy than its
best curriculum adds; a run with different templates is therefore rejected.
"""

# This module is longer than most parts because it also compares the templates of training and evaluation.

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option

from .base import HOOKS, RunHook
from .state import RunState


@dataclass
class PolicyRefresh(RunHook):
    """At the end of each stage, the policy becomes the reference and the optimizer is reset (arXiv 2507.17512).

    Args:
        steps: Optimizer steps of each stage except the last, which lasts until the end of the run; one number applies
            to all. The sampler ``stages`` counts rollouts: for equal stages, multiply its ``steps`` by the
            optimizer steps per rollout.
        optimizer: Whether to reset the optimizer's moments.
        same_template: Reject a run in which evaluation uses another template or system message than training.
    """

    steps: tuple[int, ...] = (100,)
    optimizer: bool = option(True)
    same_template: bool = option(True)

    def __post_init__(self) -> None:
        """Check the stages.

        Raises:
            ConfigurationError: There are no stages, or a stage has no steps.
        """
        super().__post_init__()
        if not self.steps or min(self.steps) < 1:
            raise ConfigurationError(
                f"`steps` must contain only positive numbers, not {list(self.steps)}.", option="steps"
            )

    def bind(self, run: RunState) -> None:
        """Store the run's state, and check that the run has everything that the hook needs; see ``Binds``.

        Raises:
            ConfigurationError: Training and evaluation use different templates, or there is nothing to reset: the run
                has no reference model, and ``optimizer`` is off.
        """
        if not run.has_reference and not self.optimizer:
            raise ConfigurationError(
                "The hook 'policy_refresh' does not have anything to reset: add a KL term "
                "(loss.kl.coef=1e-3), or let the hook reset the optimizer (optimizer=true)."
            )
        openings = run.openings if self.same_template else {}
        if len(set(openings.values())) > 1:
            train, held_out = openings["train"].splitlines(), openings["eval"].splitlines()
            differing = [line for line in difflib.ndiff(train, held_out) if line[:2] in ("- ", "+ ")]
            shown = "\n".join(differing[:10])
            raise ConfigurationError(
                f"Evaluation and training use different templates (-: training, +: evaluation):\n{shown}\nGive both "
                "the same dialect and system message, or set same_template=false."
            )
        super().bind(run)
        each = self.steps if len(self.steps) > 1 else self.steps * max(1, -(-run.steps // self.steps[0]))
        self._ends = set(accumulate(each))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Reset the reference model and the optimizer at the end of a stage, except at the end of the run."""
        run = self._run
        if run.step not in self._ends or run.step >= run.steps:
            return
        if run.has_reference:
            run.reset_reference()
        if self.optimizer:
            run.reset_optimizer()


HOOKS.register("policy_refresh", PolicyRefresh)
