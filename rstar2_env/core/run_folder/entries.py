"""The records in a run's episode files: an episode with the trainer's decision about it, and the tokens of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core import record_fields as read
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.files.json_values import jsonable


@dataclass(frozen=True, slots=True)
class Decision:
    """The trainer's decision whether to train on an episode, and its reasons.

    Attributes:
        kept: Whether the episode was selected for training.
        reason: Why the episode was not selected, in a word that the selector defines (``"quota"``, ``"draw"``,
            ``"penalty"``, ``"equal"``, …).
        round: Number of the round in which the episode's group was played; 0 for the step's first groups, more for
            groups that were played later to replace unusable ones.
        advantage: Advantage of the episode, or the mean over its tokens; ``None`` if it has none.
        weighed: The numbers on which the selector based its choice, by name (``penalty``, ``quota``, …), if it reports
            any.
        copies: Number of additional copies of the episode to train on; copies replace the episodes of missing groups.
    """

    kept: bool
    reason: str = ""
    round: int = 0
    advantage: float | None = None
    weighed: Mapping[str, float] = field(default_factory=dict)
    copies: int = 0


@dataclass(frozen=True, slots=True)
class EpisodeEntry:
    """An episode as stored in a run's folder, with its step and its place in the group.

    Attributes:
        episode: The episode, without token ids; in an evaluation, ``episode.group`` is the episode's number.
        step: Optimizer step for which the episode was played, or after which it was evaluated.
        member: Index of the episode in its group, from 0.
        decision: The trainer's decision whether to train on the episode; ``None`` in an evaluation.
        more: Further keys of the line, such as ``gold``, and ``seconds`` in an evaluation.
    """

    episode: Episode
    step: int
    member: int = 0
    decision: Decision | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether the episode was selected for training."""
        return self.decision is not None and self.decision.kept


@dataclass(frozen=True, slots=True)
class TokensEntry:
    """The tokens of one row that a step trained on.

    Attributes:
        step: The optimizer step.
        group: Number of the group in its step.
        member: Index of the episode in its group, from 0.
        prompt_ids: Token ids of the prompt.
        completion_ids: Token ids after the prompt.
        mask: 1 on the policy's tokens, 0 on the environment's.
        logprobs: Log-probability of each completion token when it was drawn, 0 on the environment's.
        advantages: One number for each completion token.
        ratios: For each completion token, its probability in the trainer divided by its probability in the engine;
            empty if not computed.
        shown_ids: Token ids of the prompt that the episode was played with; empty if they equal ``prompt_ids``.
    """

    step: int
    group: int
    member: int
    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    logprobs: list[float]
    advantages: list[float]
    ratios: list[float] = field(default_factory=list)
    shown_ids: list[int] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Return the entry as JSON-compatible values."""
        return {name: jsonable(getattr(self, name)) for name in _OF_TOKENS}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TokensEntry:
        """Read an entry from a result of ``record``; unknown keys are ignored.

        Raises:
            RecordFormatError: A key is missing, or its value has the wrong form.
        """
        return cls(**_read({"shown_ids": [], **record}, _OF_TOKENS, "tokens of a row"))


def training_record(
    episode: Episode, step: int, member: int, decision: Decision | None, *, group: int | None = None
) -> dict[str, Any]:
    """Return the JSON object of a training episode for its line in the episode file.

    Args:
        episode: The episode.
        step: The optimizer step for which the episode was played.
        member: Index of the episode in its group, from 0.
        decision: The trainer's decision whether to train on the episode.
        group: Number of the episode's group, if it differs from ``episode.group``.
    """
    decided = Decision(kept=False) if decision is None else decision
    record = episode.record()
    return {
        "step": step,
        "group": record.pop("group") if group is None else group,
        "member": member,
        "round": decided.round,
        "kept": decided.kept,
        "reason": decided.reason,
        "advantage": jsonable(decided.advantage),
        **({"weighed": jsonable(decided.weighed)} if decided.weighed else {}),
        **({"copies": decided.copies} if decided.copies else {}),
        **{name: value for name, value in record.items() if name != "group"},
    }


def entry_of(record: Any, step: int) -> EpisodeEntry:
    """Convert the JSON object of a training or evaluation line to an entry; unknown keys are kept in ``more``.

    Args:
        record: The line, read as JSON.
        step: The step of the file that contains the line.

    Raises:
        RecordFormatError: A key is missing, or its value has the wrong form.
    """
    if not isinstance(record, (dict, Mapping)):
        raise RecordFormatError(f"Expected an episode, a JSON object, not {str(record)[:100]!r}.")
    own = {name: value for name, value in record.items() if name in _OF_EPISODE}
    if "index" in record:
        own["group"] = record["index"]
    extra = {name: value for name, value in record.items() if name not in own and name != "index"}
    decision = None
    if "kept" in extra:
        decision = Decision(**_read({**_DEFAULTS, **extra}, _OF_DECISION, "episode"))
    member = _read({"member": extra.get("member", 0)}, _OF_MEMBER, "episode")["member"]
    more = {name: value for name, value in extra.items() if name not in _KNOWN}
    return EpisodeEntry(Episode.from_record(own), step, member, decision, more)


def _read(record: Mapping[str, Any], readers: Mapping[str, Any], what: str) -> dict[str, Any]:
    values = {}
    for name, take in readers.items():
        if name not in record:
            raise RecordFormatError(f"A line of the {what} does not have the key {name!r}.")
        try:
            values[name] = take(record[name])
        except (TypeError, ValueError) as error:
            raise RecordFormatError(
                f"The value of the key {name!r} in a line of the {what} is not valid: {error}"
            ) from error
    return values


_OF_EPISODE = frozenset(Episode().record())
_OF_DECISION = {
    "kept": read.truth,
    "reason": read.text,
    "round": read.number,
    "advantage": read.or_none(read.decimal),
    "weighed": read.dict_of(read.decimal),
    "copies": read.number,
}
_DEFAULTS: Mapping[str, Any] = {"reason": "", "round": 0, "advantage": None, "weighed": {}, "copies": 0}
"""Default value of each key about the selector's decision that a file of an earlier version may lack."""
_OF_MEMBER = {"member": read.number}
_KNOWN = frozenset({"step", *_OF_MEMBER, *_OF_DECISION})
_OF_TOKENS = {
    "step": read.number,
    "group": read.number,
    "member": read.number,
    "prompt_ids": read.list_of(read.number),
    "completion_ids": read.list_of(read.number),
    "mask": read.list_of(read.number),
    "logprobs": read.list_of(read.decimal),
    "advantages": read.list_of(read.decimal),
    "ratios": read.list_of(read.decimal),
    "shown_ids": read.list_of(read.number),
}
