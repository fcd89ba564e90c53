"""``deviation``: rejects groups whose reward deviation is below an adaptive threshold (RLPR, arXiv 2506.18254)."""

# This module is longer than most parts because its threshold is estimated over all processes and saved in
# checkpoints.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option

from ..samplers.base import GroupResult
from .base import SELECTORS
from .group_filter import GroupFilter


@dataclass
class Deviation(GroupFilter):
    r"""Reject groups whose reward deviation is below ``beta`` times the recent mean deviation (RLPR, arXiv 2506.18254).

    The threshold is $\beta a_k$ with the moving average $a_k = \text{decay} \, a_{k - 1} + (1 - \text{decay}) m_k$,
    where $m_k$ is the mean standard deviation (over $n - 1$) of the groups' rewards in rollout $k$.

    A fixed threshold would be too high late in a run, when all rewards are similar. Use this selector for rewards other
    than 0 and 1, such as the probability of the reference answer; ``rollout.refill`` replaces rejected groups.

    Args:
        of: The selector that chooses within the groups that pass, written as in a recipe: ``roc``,
            ``(all:reject_equal=true)``.
        beta: Share of the average that a group's deviation must reach. The released code uses 0.5 for Qwen, 0.9 for
            Llama, 1.0 for Gemma.
        decay: Weight of the previous average.
        begin: Number of the first rollout, counted from 1, that uses the formula of $a_k$; before, $a_k$ is the mean
            of all $m_k$ so far.
        filter_from: The first rollout in which groups are rejected.
    """

    beta: float = option(0.5, least=0)
    decay: float = option(0.99, least=0, below=1)
    begin: int = option(6, least=2)
    filter_from: int = option(11, least=2)

    word: ClassVar[str] = "deviation"

    def __post_init__(self) -> None:
        """Check ``begin`` and ``filter_from``, and set the initial state.

        Raises:
            ConfigurationError: ``filter_from`` is before ``begin``.
        """
        super().__post_init__()
        if self.filter_from < self.begin:
            raise ConfigurationError(
                f"The option filter_from={self.filter_from} must not be less than begin={self.begin}."
            )
        self._steps, self._average = 0, 0.0
        self._means: list[float] = []

    @property
    def threshold(self) -> float:
        """Minimum deviation of a group's rewards in the next rollout; 0 before the rollout ``filter_from``."""
        return self.beta * self._average if self._steps + 1 >= self.filter_from else 0.0

    def passes(self, counted: Sequence[Episode]) -> bool:
        """Return whether a group passes, given its available episodes; see ``GroupFilter``."""
        return _deviation(counted) >= self.threshold

    def looks_at(self, counted: Sequence[Episode]) -> dict[str, float]:
        """Return the numbers by which the filter decides, and their bounds; see ``GroupFilter``."""
        return {"deviation": _deviation(counted), "threshold": self.threshold}

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Adapt to the results of a step's groups; see ``AdaptsToResults``."""
        super().observe(outcomes)
        self._steps += 1
        seen = [outcome.deviation for outcome in outcomes if outcome.episodes > 1]
        if not seen:
            return
        if self._steps < self.begin or not self._means:
            self._means.append(fmean(seen))
            self._average = fmean(self._means)
        else:
            self._average = self.decay * self._average + (1 - self.decay) * fmean(seen)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the moving average and of the selector ``of``."""
        own = {"steps": self._steps, "average": self._average, "means": list(self._means)}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned."""
        super().load_state_dict(state)
        self._steps, self._average, self._means = state["steps"], state["average"], list(state["means"])


def _deviation(counted: Sequence[Episode]) -> float:
    return stdev(episode.reward for episode in counted) if len(counted) > 1 else 0.0


SELECTORS.register("deviation", Deviation)
