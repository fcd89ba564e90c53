"""``Manner``: how to play one episode. A rollout part may stop it early, measure its entropy, or use older weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OPEN: Final = "open"
"""Value of ``Episode.end`` for an episode that stopped after ``Manner.chunk`` tokens and can be continued.

Rollout parts never return such an episode to the trainer.
"""


@dataclass(frozen=True, slots=True)
class Manner:
    """How an episode is played.

    Attributes:
        chunk: Maximum number of policy tokens to play, not counting tokens shared with the parent episode. Playing
            stops after this number of tokens or, if the turn ends earlier, after the environment's answer to the turn.
            The ``end`` of the stopped episode is ``OPEN``. ``None`` plays to the end.
        candidates: Number of most likely tokens over which the entropy at the start of each turn (``Turn.entropy``) is
            measured; 0 measures nothing.
        measured_tokens: Number of tokens at the start of a turn over which entropy is measured.
        stale: Probability that a turn is generated with older weights, sampled for each turn (``Turn.stale``).
    """

    chunk: int | None = None
    candidates: int = 0
    measured_tokens: int = 20
    stale: float = 0.0


PLAIN: Final = Manner()
"""The manner of an ordinary episode: played from start to end with the newest weights, without measuring entropy."""
