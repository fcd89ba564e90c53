"""``Manner``: how an episode is played, where a rollout part wants more than from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OPEN: Final = "open"
"""The ``end`` of an episode that was left off after a chunk, and can be gone on with. No part of a rollout returns
one."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How an episode is played.

    Attributes:
        chunk: Most tokens of the policy's to play beyond what is shared with a parent: the episode is left ``OPEN``
            after them, and where a turn ends before that, once the environment has answered it. ``None`` plays to the
            end.
        candidates: Number of the most likely tokens whose entropy is measured at the beginning of each turn
            (``Turn.entropy``); 0 measures nothing.
        measured_tokens: Number of tokens at the beginning of a turn at which it is measured.
        stale: Probability with which a turn is drawn from older weights, each turn by a draw of its own
            (``Turn.stale``).
    """

    chunk: int | None = None
    candidates: int = 0
    measured_tokens: int = 20
    stale: float = 0.0


PLAIN: Final = Manner()
"""From the start to the end."""
