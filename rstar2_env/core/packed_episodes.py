"""Episodes with their tokens as JSON can hold them, for what keeps some in a checkpoint.

Not covered: the rows of a step that was cut (``backends/trl/pending``), and the run's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.core.episode import Episode

_TOKENS = ("prompt_ids", "shown_ids", "completion_ids", "mask", "logprobs")
"""What an episode's own record leaves out."""


def packed(episode: Episode) -> dict[str, Any]:
    """An episode with its tokens as JSON can hold it; what a trainer measured of it is left out."""
    return {**episode.record(), **{name: list(getattr(episode, name)) for name in _TOKENS}}


def unpacked(record: Mapping[str, Any]) -> Episode:
    """The episode that was packed."""
    episode = Episode.from_record(record, beside=_TOKENS)
    for name in _TOKENS:
        setattr(episode, name, list(record.get(name, ())))
    return episode
