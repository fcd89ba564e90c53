"""Protocols of the trainer: the collector and its batches, and parts whose state goes into checkpoints."""

from __future__ import annotations

from typing import Any, Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row


class Rows(Protocol):
    """The fields of a batch that this trainer reads; see ``Batch``."""

    rows: list[Row]
    groups: list[list[Episode]]


class Collects(Protocol):
    """A collector; see ``Collector``."""

    def collect(self, step: int) -> Rows:
        """Play, select and score the episodes of a rollout."""
        ...


class Checkpointed(Protocol):
    """A part whose state goes into checkpoints, as plain values and tensors."""

    def state_dict(self) -> Any:
        """Return the state."""
        ...

    def load_state_dict(self, state: Any) -> None:
        """Restore a state."""
        ...
