"""``policy_refresh``: each stage of a curriculum begins with the policy as its own reference (arXiv 2507.17512).

Can One Domain Help Others? trains stage after stage, from easy to hard within a domain: at the end of each stage the
reference model becomes the policy and the optimizer forgets its moments, so that the next is not held to what came
before. The study also found that another chat template in evaluation than in training costs more than any of its
curricula gains; so a run whose two differ is refused. Longer than most parts, since it compares the templates of
training and evaluation too.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .base import HOOKS
from .state import RunState


@dataclass
class PolicyRefresh(CheckedOptions):
    """At the end of each stage, the policy becomes the reference and the optimizer begins afresh (arXiv 2507.17512).

    Args:
        steps: Steps of each stage but the last, which goes on to the end; one number holds for all of them.
        optimizer: Whether to forget the optimizer's moments.
        same_template: Refuse a run in which evaluation shows the policy another template or system message than
            training does.
    """

    steps: tuple[int, ...] = (100,)
    optimizer: bool = option(True)
    same_template: bool = option(True)

    def __post_init__(self) -> None:
        """Check the stages.

        Raises:
            ConfigurationError: There is none, or one has no steps.
        """
        super().__post_init__()
        if not self.steps or min(self.steps) < 1:
            raise ConfigurationError(f"steps must be positive numbers, not {list(self.steps)}.", option="steps")

    def bind(self, run: RunState) -> None:
        """See ``Binds``.

        Raises:
            ConfigurationError: The templates differ, or there is nothing to refresh.
        """
        if not run.has_reference and not self.optimizer:
            raise ConfigurationError(
                "The hook 'policy_refresh' has nothing to refresh: add a KL term (loss.kl.coef=1e-3), or let it reset "
                "the optimizer (optimizer=true)."
            )
        openings = run.openings if self.same_template else {}
        if len(set(openings.values())) > 1:
            train, held_out = openings["train"].splitlines(), openings["eval"].splitlines()
            differing = [line for line in difflib.ndiff(train, held_out) if line[:2] in ("- ", "+ ")]
            raise ConfigurationError(
                "Evaluation shows the policy another template than training does (- training, + evaluation):\n"
                + "\n".join(differing[:10])
                + "\nGive both the same dialect and system message, or set same_template=false."
            )
        self._run = run
        each = self.steps if len(self.steps) > 1 else self.steps * max(1, -(-run.steps // self.steps[0]))
        self._ends = set(accumulate(each))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Refresh at the end of a stage, but for the end of the run."""
        run = self._run
        if run.step not in self._ends or run.step >= run.steps:
            return
        if run.has_reference:
            run.reset_reference()
        if self.optimizer:
            run.reset_optimizer()


HOOKS.register("policy_refresh", PolicyRefresh)
