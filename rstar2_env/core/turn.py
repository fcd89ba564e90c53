"""``Turn``: one step of an episode: the policy's tokens in it, what the policy saw before, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core import record_fields as read
from rstar2_env.core.status import ToolStatus


@dataclass(slots=True)
class Turn:
    """One turn of the policy and the environment's answer to it.

    Attributes:
        start: Position in ``Episode.completion_ids`` of the first token that the policy wrote in this turn.
        stop: Position after the last one. ``start == stop`` where the player does not see tokens.
        observation: The text that the policy saw last before this turn; of the first turn, the user's message. It is
            the same object as the message's text, not a copy.
        reward: Reward of the step.
        statuses: Status of each of the policy's calls in this turn, injected faults apart.
        version: Version of the weights that the turn was drawn from.
        info: What the environment said about the step, as JSON can hold it.
        entropy: Entropy over the most likely tokens at its beginning, where a rollout part asked for it: the sum of
            -p ln p over its first tokens and their candidates, divided by the logarithm of the vocabulary's size.
        stale: Whether a rollout part had it drawn from weights that are older than the newest.
    """

    start: int = 0
    stop: int = 0
    observation: str = ""
    reward: float = 0.0
    statuses: list[ToolStatus] = field(default_factory=list)
    version: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    entropy: float | None = None
    stale: bool = False

    @property
    def tokens(self) -> int:
        """How many tokens the policy wrote in it."""
        return self.stop - self.start

    def record(self, shown: str) -> dict[str, Any]:
        """The turn as JSON can hold it.

        Args:
            shown: Text of the message before the turn's own; an observation equal to it is left out.
        """
        record: dict[str, Any] = {
            "start": self.start,
            "stop": self.stop,
            "reward": self.reward,
            "statuses": [str(status) for status in self.statuses],
            "version": self.version,
            "info": self.info,
        }
        if self.observation != shown:
            record["observation"] = self.observation
        if self.entropy is not None:
            record["entropy"] = self.entropy
        return {**record, "stale": True} if self.stale else record

    @classmethod
    def from_record(cls, record: Any, shown: str) -> Turn:
        """Read a turn back.

        Args:
            record: What ``record`` returned, or JSON made of it.
            shown: Text of the message before the turn's own.

        Raises:
            TypeError: A value has another form, or a key is missing or unknown.
            ValueError: A status is none of ``ToolStatus``.
        """
        if not isinstance(record, Mapping) or set(record) - set(_RARE) != set(_READERS):
            raise TypeError(
                f"has a step that must have the keys {', '.join(_READERS)} (and may have {', '.join(_RARE)}), not "
                f"{str(record)[:100]!r}."
            )
        return cls(
            observation=read.text(record.get("observation", shown)),
            entropy=None if record.get("entropy") is None else read.decimal(record["entropy"]),
            stale=bool(record.get("stale", False)),
            **{name: take(record[name]) for name, take in _READERS.items()},
        )


_RARE = ("observation", "entropy", "stale")
_READERS: Mapping[str, Any] = {
    "start": read.number,
    "stop": read.number,
    "reward": read.decimal,
    "statuses": read.list_of(read.status),
    "version": read.number,
    "info": read.mapping,
}
