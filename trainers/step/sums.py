"""``Sums``: adds up sums and counts of metrics over steps and processes, from which means are computed for logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rstar2_env.core.episode_metrics import MetricSums

from ..ranks import ONE, Ranks


class Sums:
    """Sums and counts of metrics since the last ``take``; the mean of a metric is its sum divided by its count."""

    def __init__(self) -> None:
        self._totals: dict[str, tuple[float, float]] = {}

    def add(self, name: str, total: float, count: float = 1.0) -> None:
        """Add the sum and the count of new observations of one metric.

        Args:
            name: Name of the metric.
            total: Sum of the observations.
            count: Number of observations, such as episodes, by which the sum is later divided; may be 0.
        """
        before = self._totals.get(name, (0.0, 0.0))
        self._totals[name] = (before[0] + total, before[1] + count)

    def merge(self, figures: MetricSums) -> None:
        """Add sums and counts of many metrics."""
        for name, (total, count) in figures.items():
            self.add(name, total, count)

    def take(self, ranks: Ranks = ONE) -> dict[str, tuple[float, float]]:
        """Return the sums over all processes, and reset them; all processes must call it together."""
        own, self._totals = self._totals, {}
        together = Sums()
        for totals in ranks.gather(own):
            together.merge(totals)
        return together._totals

    def state_dict(self) -> dict[str, Any]:
        """Return the sums since the last ``take``, as JSON-compatible values."""
        return {name: list(pair) for name, pair in self._totals.items()}

    def load_state_dict(self, state: Mapping[str, Iterable[float]]) -> None:
        """Restore a state that ``state_dict`` returned."""
        self._totals = {name: (total, count) for name, (total, count) in state.items()}
