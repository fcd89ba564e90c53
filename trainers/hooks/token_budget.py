"""``token_budget``: ends a run when the policy has generated a given number of tokens.

Runs of different recipes then end after generating equally many tokens, even if one recipe plays more episodes than
another for each episode that it trains on. The run ends when the budget is spent or when all of the run's steps are
done, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rstar2_env.core.options.declare import Count
from rstar2_env.core.saved_attributes import SavedAttributes

from ..samplers.base import GroupResult
from .base import HOOKS, RunHook
from .guard import act


@dataclass
class TokenBudget(SavedAttributes, RunHook):
    """End the run when its policy has generated a given number of tokens in training: ``token_budget:tokens=300000``.

    The policy's tokens in every episode count, including rejected episodes and groups played in refills. The tokens of
    prompts, environments, evaluations, demonstrations, and of episodes that ended as ``unavailable`` or ``cancelled``
    do not count. The run ends after all updates on its last rollout, so it exceeds its budget by less than one rollout.
    With ``rollout.max_staleness``, rollouts that were played ahead and not trained on do not count.

    Args:
        tokens: Number of tokens after which the run ends, over all processes.
    """

    tokens: Count

    saved: ClassVar[tuple[str, ...]] = ("generated",)

    def __post_init__(self) -> None:
        """Check the options, and set the number of generated tokens to 0."""
        super().__post_init__()
        self.generated = 0

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Count the tokens of a rollout; see ``Observes``."""
        self.generated += sum(sum(one.lengths) for one in outcomes)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End a resumed run before its next rollout if its budget is already spent."""
        if self._spent:
            self._run.note(f"{self._reason}: the resumed run plays no further rollout.")
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the run if the budget is spent and the updates on the last rollout are done."""
        if self._spent and not control.should_training_stop:
            act(self._run, control, "stop", self._reason)

    @property
    def _spent(self) -> bool:
        return self.generated >= self.tokens and self._run.between_rollouts

    @property
    def _reason(self) -> str:
        return f"{self.generated} tokens were generated, of a budget of {self.tokens}"


HOOKS.register("token_budget", TokenBudget)
