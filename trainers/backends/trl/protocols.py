"""What the trainer needs of a collector, and of everything whose state goes into checkpoints."""

from __future__ import annotations

from typing import Any, Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row


class Rows(Protocol):
    """What a collector returns, as far as this trainer reads it; see ``Batch``."""

    rows: list[Row]
    groups: list[list[Episode]]


class Collects(Protocol):
    """What this trainer needs of a collector; see ``Collector``."""

    def collect(self, step: int) -> Rows:
        """Play, select and score the episodes of a rollout."""
        ...


class Stateful(Protocol):
    """Something whose state goes into checkpoints: plain values and tensors."""

    def state_dict(self) -> Any:
        """Return the state."""
        ...

    def load_state_dict(self, state: Any) -> None:
        """Go on from a state."""
        ...
