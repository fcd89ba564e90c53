"""Converts episodes to JSON-compatible values for checkpoints: whole episodes, or only the fields that losses read.

Not covered: the token arrays of rows (``backends/trl/loss/pending_rows``), and the run's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

_TOKENS = ("prompt_ids", "shown_ids", "completion_ids", "mask", "logprobs")
"""Fields with an episode's token data; ``Episode.record`` omits these fields."""
_READ_BY_LOSSES = ("group", "task", "correct", "source")


def pack_episode(episode: Episode) -> dict[str, Any]:
    """Return an episode, including its token ids, as JSON-compatible values; ``measured`` is omitted."""
    return {**episode.record(), **{name: list(getattr(episode, name)) for name in _TOKENS}}


def unpack_episode(record: Mapping[str, Any]) -> Episode:
    """Return the episode from a record of ``pack_episode``."""
    episode = Episode.from_record(record, extra=_TOKENS)
    for name in _TOKENS:
        setattr(episode, name, list(record.get(name, ())))
    return episode


def pack_for_losses(episode: Episode) -> dict[str, Any]:
    """Return only the fields of an episode that losses read: its group, and its turns without texts and infos."""
    turns = [
        {**asdict(turn), "statuses": [str(status) for status in turn.statuses], "observation": "", "info": {}}
        for turn in episode.steps
    ]
    return {**{name: getattr(episode, name) for name in _READ_BY_LOSSES}, "turns": turns}


def unpack_for_losses(record: Mapping[str, Any]) -> Episode:
    """Return the partial episode from a record of ``pack_for_losses``; further keys in the record are ignored."""
    steps = [
        Turn(**{**turn, "statuses": [ToolStatus(status) for status in turn["statuses"]]}) for turn in record["turns"]
    ]
    return Episode(**{name: record[name] for name in _READ_BY_LOSSES}, steps=steps)
