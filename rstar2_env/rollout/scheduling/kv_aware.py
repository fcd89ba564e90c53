"""``kv_aware``: a scheduling policy that starts an episode only on an engine whose cache is likely to have room for it.

Covered: a forecast from the observed lengths, which admits more episodes than the worst case would allow, but not so
many that the cache is likely to overflow. Not covered: episodes of a group that share the cache of their prompt (each
is counted with a prompt of its own, so the forecast is too high).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.scheduling.admission import POLICIES, Stay
from rstar2_env.rollout.scheduling.lengths import BUCKETS, Lengths, bucket

BLOCK = 32
"""Size, in tokens, of a block of a paged cache; an episode wastes at most one block."""


@dataclass(eq=False, slots=True)
class _Row:
    """The record of an episode on an engine.

    Attributes:
        at: The bucket of the episode's length (see ``bucket``).
        since: The engine's step count when the current turn began; ``None`` between two turns.
    """

    at: int
    since: int | None = None


class KvAware:
    """Scheduling policy that chooses the engine whose episodes are forecast to leave the most cache capacity unused.

    An episode waits while no engine has enough capacity left. The tokens that an engine's episodes will need are
    forecast from the observed lengths. For each future time, each episode's tokens at that time are multiplied by the
    probability that the episode still runs, and summed over the episodes; ``margin`` standard deviations are added. The
    forecast is the maximum over these times. Without observations, every episode is assumed to reach its maximum.

    Args:
        capacities: Number of tokens that the cache of each engine holds.
        margin: Safety margin of the forecast, in standard deviations.
        overcommit: An engine's episodes may have maximum lengths that add up to at most this multiple of its capacity,
            regardless of the forecast.
    """

    def __init__(self, capacities: Sequence[int], *, margin: float = 3.0, overcommit: float = 16.0) -> None:
        if margin < 0 or overcommit < 1:
            raise ConfigurationError(
                f"The scheduler 'kv_aware' needs margin >= 0 and overcommit >= 1; got margin={margin!r} and "
                f"overcommit={overcommit!r}."
            )
        self._capacities = np.array(capacities, dtype=float)
        self._margin, self._overcommit = margin, overcommit
        self.lengths = Lengths()
        # For each engine and bucket: sums over its episodes of 1, prompt, most, and their products.
        self._sums = np.zeros((len(capacities), 6, BUCKETS))
        self._need = np.zeros(len(capacities))
        self._rows: list[dict[Stay, _Row]] = [{} for _ in capacities]
        self._steps = [0] * len(capacities)
        self._stale = np.zeros(len(capacities), dtype=bool)

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """Return the index of the engine with the most free capacity by forecast; ``None`` lets the episode wait."""
        self._refresh()
        # An episode adds about the same need to every engine, so it fits best on the engine with the most capacity
        # left.
        engine = max(usable, key=lambda e: self._capacities[e] - self._need[e])
        with_it = self._sums[engine].copy()
        _add(with_it, stay, bucket(stay.tokens, stay.most), 1)
        capacity = self._capacities[engine]
        if self._forecast(with_it) <= capacity and with_it[1:3].sum() <= self._overcommit * capacity:
            return engine
        # An episode that does not fit on any empty engine runs alone.
        empty = not self._sums[engine, 0].any()
        return engine if empty and capacity >= max(self._capacities[list(usable)]) else None

    def enter(self, stay: Stay) -> None:
        """Include an episode in its engine's forecast."""
        engine, row = self._engine(stay), _Row(bucket(stay.tokens, stay.most))
        self._rows[engine][stay] = row
        self._stale[engine] = True
        _add(self._sums[engine], stay, row.at, 1)
        self.lengths.begin()
        if row.at:
            self._note(self.lengths.grow(0, row.at))

    def turn_begins(self, stay: Stay) -> None:
        """Update the forecast with the episode's current length."""
        engine = self._engine(stay)
        row = self._rows[engine][stay]
        row.since = self._steps[engine]
        self._count(engine, stay, row, stay.tokens)

    def turn_ends(self, stay: Stay, tokens: int) -> None:
        """Update the forecast with the episode's new length."""
        engine = self._engine(stay)
        row = self._rows[engine][stay]
        if row.since is not None:
            # Every row of an engine gets one token per step, so an ended turn reveals the progress of the others.
            self._steps[engine] = max(self._steps[engine], row.since + tokens)
            row.since = None
        self._stale[engine] = True
        self._count(engine, stay, row, stay.tokens)

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """Remove an episode from its engine's forecast; if it ended normally, record its length."""
        engine = self._engine(stay)
        row = self._rows[engine].pop(stay)
        self._stale[engine] = True
        _add(self._sums[engine], stay, row.at, -1)
        self._note(self.lengths.end(row.at, seen=ended))

    def need(self, engine: int) -> float:
        """Number of tokens that the episodes of an engine are forecast to need at the same time."""
        self._refresh()
        return float(self._need[engine])

    @staticmethod
    def _engine(stay: Stay) -> int:
        assert stay.engine is not None, "no engine has been assigned to the episode"
        return stay.engine

    def _count(self, engine: int, stay: Stay, row: _Row, tokens: int) -> None:
        """Count an episode in the length bucket of ``tokens``, unless it is already in that bucket or a later one."""
        now = bucket(tokens, stay.most)
        if now > row.at:
            sums = self._sums[engine]
            _add(sums, stay, row.at, -1)
            _add(sums, stay, now, 1)
            self._note(self.lengths.grow(row.at, now))
            row.at = now
            self._stale[engine] = True

    def _note(self, tables_changed: bool) -> None:
        if tables_changed:
            self._stale[:] = True

    def _refresh(self) -> None:
        for engine in np.flatnonzero(self._stale):
            steps = self._steps[engine]
            for stay, row in self._rows[engine].items():
                if row.since is not None:
                    self._count(engine, stay, row, stay.tokens + steps - row.since)
            self._need[engine] = self._forecast(self._sums[engine])
            self._stale[engine] = False

    def _forecast(self, sums: NDArray[np.float64]) -> float:
        mean = sums[1:3].ravel() @ self.lengths.mean_table
        variance = sums[3:].ravel() @ self.lengths.variance_table
        peak = float((mean + self._margin * np.sqrt(np.maximum(variance, 0.0))).max())
        return min(peak, float(sums[1:3].sum()))


def _add(sums: NDArray[np.float64], stay: Stay, at: int, sign: int) -> None:
    prompt, most = stay.prompt + BLOCK, stay.most
    sums[:, at] += (sign, sign * prompt, sign * most, sign * prompt**2, sign * prompt * most, sign * most**2)


POLICIES.register("kv_aware", KvAware)
