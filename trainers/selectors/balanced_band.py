"""``balanced_band``: keeps groups with an intermediate pass rate (Online Difficulty Filtering, arXiv 2504.03380)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option

from .base import SELECTORS
from .group_filter import GroupFilter


@dataclass
class BalancedBand(GroupFilter):
    r"""Reject groups whose pass rate is outside a band (Online Difficulty Filtering, arXiv 2504.03380).

    The divergence between the policy and the optimal policy for a problem is at least $\frac{p (1 - p)}{2 \beta^2}$,
    where $p$ is the pass rate and $\beta$ the KL weight; this bound is largest at $p = 0.5$. The paper keeps groups
    with $\text{low} \le p \le \text{high}$ and plays further groups until the batch is full, as ``rollout.refill``
    does. Use this selector if episodes are cheap compared to steps. A band from 0 to 1 rejects nothing.

    Args:
        of: The selector that chooses within the groups that pass, written as in a recipe: ``roc``,
            ``(all:reject_equal=true)``.
        low: Minimum pass rate. The paper compares several bands; the default band, 0.2 to 0.8, is from summaries of
            the paper.
        high: Maximum pass rate.
    """

    low: float = option(0.2, least=0, most=1)
    high: float = option(0.8, least=0, most=1)

    word: ClassVar[str] = "band"

    def __post_init__(self) -> None:
        """Check the band.

        Raises:
            ConfigurationError: ``low`` is above ``high``.
        """
        super().__post_init__()
        if self.low > self.high:
            raise ConfigurationError(
                f"The option low={self.low} must not be greater than high={self.high}.", option="low"
            )

    def passes(self, counted: Sequence[Episode]) -> bool:
        """Return whether a group passes, given its available episodes; see ``GroupFilter``."""
        return bool(counted) and self.low <= _rate(counted) <= self.high

    def looks_at(self, counted: Sequence[Episode]) -> dict[str, float]:
        """Return the numbers by which the filter decides, and their bounds; see ``GroupFilter``."""
        return {"pass_rate": _rate(counted), "low": self.low, "high": self.high}


def _rate(counted: Sequence[Episode]) -> float:
    return sum(episode.correct for episode in counted) / max(len(counted), 1)


SELECTORS.register("balanced_band", BalancedBand)
