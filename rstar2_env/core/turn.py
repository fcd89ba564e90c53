"""``Turn``: one step of an episode: the observation before it, the policy's tokens, and the environment's result."""

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
        stop: Position after the last token. Equal to ``start`` if the episode has no token ids.
        observation: The last text that the policy saw before this turn; for the first turn, the user's message. It is
            the same object as the message's text, not a copy.
        reward: Reward of the step.
        statuses: Status of each of the policy's calls in this turn; injected faults are left out.
        version: Version of the weights that generated the turn.
        info: ``info`` of the environment's step, as JSON-compatible values.
        entropy: Entropy at the start of the turn, if a rollout part requested it (``Manner.candidates``): the sum of
            -p ln p over the candidates for all measured tokens, divided by the logarithm of the vocabulary's size; p is
            the probability of a candidate.
        stale: Whether weights older than the current ones generated the turn, as a rollout part requested
            (``Manner.stale``).
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
        """Number of tokens that the policy wrote in this turn."""
        return self.stop - self.start

    def record(self, shown: str) -> dict[str, Any]:
        """Return the turn as JSON-compatible values.

        Args:
            shown: Text of the message before the turn; an observation equal to it is left out.
        """
        record = {name: getattr(self, name) for name in _READERS}
        record["statuses"] = [str(status) for status in self.statuses]
        if self.observation != shown:
            record["observation"] = self.observation
        if self.entropy is not None:
            record["entropy"] = self.entropy
        return {**record, "stale": True} if self.stale else record

    @classmethod
    def from_record(cls, record: Any, shown: str) -> Turn:
        """Read a turn from a result of ``record``.

        Args:
            record: The result of ``record``, or its JSON parsed again.
            shown: Text of the message before the turn.

        Raises:
            TypeError: A value has the wrong form, or a key is missing or unknown.
            ValueError: A status is not a ``ToolStatus``.
        """
        if not isinstance(record, (dict, Mapping)) or record.keys() - _RARE_KEYS != _READERS.keys():
            raise TypeError(
                f"expected a step of an episode, a mapping with the keys {', '.join(_READERS)} (optional: "
                f"{', '.join(_RARE)}), got {str(record)[:100]!r}."
            )
        return cls(
            observation=read.text(record.get("observation", shown)),
            entropy=None if record.get("entropy") is None else read.decimal(record["entropy"]),
            stale=bool(record.get("stale", False)),
            **{name: take(record[name]) for name, take in _READERS.items()},
        )


_RARE = ("observation", "entropy", "stale")
_RARE_KEYS = frozenset(_RARE)
_READERS: Mapping[str, Any] = {
    "start": read.number,
    "stop": read.number,
    "reward": read.decimal,
    "statuses": read.list_of(read.status),
    "version": read.number,
    "info": read.mapping,
}
