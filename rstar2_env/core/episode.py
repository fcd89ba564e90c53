"""One episode: begun from what ``reset`` returned, continued step by step, written to a record and read back.

Everything that plays an environment keeps its episode here: the loop of agents, the rollout player, wrappers and
adapters. Selectors, advantages, metrics and logs read it. Not covered: the formats of the files that hold records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, SupportsFloat, TypeVar

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.status import ToolStatus, error_share

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation: its chat role and its text."""

    role: str
    content: str

    def record(self) -> dict[str, str]:
        """The message as a dictionary for JSON and chat templates."""
        return {"role": self.role, "content": self.content}


@dataclass(slots=True)
class Episode:
    """One episode, from ``reset`` to its end.

    The player calls ``begin`` with what ``reset`` returned, and ``step`` with each action and what the
    environment's ``step`` returned for it. A player that may stop an episode between the two calls the parts of
    ``step`` one by one: ``act``, ``observe``, ``show``.

    ``completion_ids``, ``mask`` and ``logprobs`` have one entry for each token after the prompt, the environment's
    tokens included.

    Attributes:
        group: Number of the group: episodes that started from the same ``reset``.
        seed: Seed of that ``reset``.
        problem_id: The environment's id of the problem; empty when it gives none.
        messages: The conversation as text.
        prompt_ids: Token ids up to where the policy's first turn begins.
        completion_ids: Token ids from there on, as the engine made them and as the environment's text tokenized.
        mask: 1 on the policy's tokens, 0 on the environment's.
        logprobs: Log-probability of each of the policy's tokens when it was drawn; 0 on the environment's.
        reward: Return of the episode, the sum of its rewards.
        end: How it ended: ``answered``, ``no_answer``, ``turns``, ``tokens``, ``time``, ``unavailable`` (an
            infrastructure failure), ``cancelled`` (its group no longer needed it), or ``terminated`` or
            ``truncated`` when the environment does not say.
        turns: Turns of the policy, as the loop counted them.
        statuses: Status of each of the policy's calls, injected faults apart.
        injected: Status of each fault that a wrapper injected.
        answer: The answer, when the environment reports it.
        correct: Whether it earned the full reward, as the environment reports; else whether the return is positive.
        answer_tags: How often the policy marked an answer.
        policy_version: Version of the weights that its first turn was drawn from.
        error: Traceback of the infrastructure failure, when there was one.
        recorded_tokens: ``policy_tokens`` of an episode that was read from a record, which holds no mask.
    """

    group: int = 0
    seed: int | None = None
    problem_id: str = ""
    messages: list[Message] = field(default_factory=list)
    prompt_ids: list[int] = field(default_factory=list)
    completion_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    reward: float = 0.0
    end: str = ""
    turns: int = 0
    statuses: list[ToolStatus] = field(default_factory=list)
    injected: list[ToolStatus] = field(default_factory=list)
    answer: str | None = None
    correct: bool = False
    answer_tags: int = 0
    policy_version: int = 0
    error: str | None = None
    recorded_tokens: int = 0

    @property
    def available(self) -> bool:
        """Whether it counts: an episode that failed or was cancelled is excluded from means and losses."""
        return not (self.failed or self.cancelled)

    @property
    def failed(self) -> bool:
        """Whether the infrastructure failed, which is never the policy's fault."""
        return self.end == "unavailable"

    @property
    def cancelled(self) -> bool:
        """Whether it was cut off because its group no longer needed it."""
        return self.end == "cancelled"

    @property
    def tool_calls(self) -> int:
        """The policy's calls that count: ``unavailable`` ones do not."""
        return sum(status.counts for status in self.statuses)

    @property
    def error_share(self) -> float | None:
        """Share of the policy's calls that are errors; ``None`` without a call."""
        return error_share(self.statuses)

    @property
    def policy_tokens(self) -> int:
        """Tokens that the policy wrote."""
        return sum(self.mask) if self.mask else self.recorded_tokens

    def begin(self, text: str, info: Mapping[str, Any]) -> Self:
        """Add what ``reset`` returned: the problem, the system message if there is one, the user's message.

        Returns:
            The episode itself, so that ``Episode(seed=seed).begin(*env.reset(seed=seed))`` works as one expression.
        """
        self.problem_id = str(info.get("problem_id", ""))
        if system := info.get("system"):
            self.messages.append(Message("system", str(system)))
        self.messages.append(Message("user", text))
        return self

    def step(self, action: str, returned: tuple[str, SupportsFloat, bool, bool, Mapping[str, Any]]) -> bool:
        """Add one whole step.

        An empty text becomes no message.

        Args:
            action: The policy's turn.
            returned: What the environment's ``step`` returned for it: text, reward, ``terminated``, ``truncated``,
                ``info``.

        Returns:
            Whether the episode is over.

        Raises:
            ValueError: ``info`` has a call whose status is none of ``ToolStatus``.
        """
        self.act(action)
        if returned[0]:  # at the end there is often nothing to show
            self.show(returned[0], returned[4])
        return self.observe(*returned[1:])

    def act(self, action: str) -> None:
        """Add the policy's turn, before the environment has answered it."""
        self.messages.append(Message("assistant", action))
        self.turns += 1

    def observe(self, reward: SupportsFloat, terminated: bool, truncated: bool, info: Mapping[str, Any]) -> bool:
        """Add the result of a step: its reward, its calls, and at the end how the episode went.

        Args:
            reward: The step's reward.
            terminated: Whether the environment ended the episode.
            truncated: Whether a budget ended it, or the environment was not available.
            info: As the environment gave it.

        Returns:
            Whether the episode is over.

        Raises:
            ValueError: A call's status is none of ``ToolStatus``.
        """
        self.reward += float(reward)
        for call in info.get("tool_calls", ()):
            (self.injected if call.get("injected") else self.statuses).append(ToolStatus(call["status"]))
        if "answer" in info:
            self.answer = None if info["answer"] is None else str(info["answer"])
        self.answer_tags = info.get("answer_tags", self.answer_tags)
        if not (terminated or truncated):
            return False
        self.end = str(info.get("end", "terminated" if terminated else "truncated"))
        self.correct = bool(info.get("correct", self.reward > 0))
        return True

    def show(self, text: str, info: Mapping[str, Any]) -> None:
        """Add the text that the policy is shown, in the role that ``info`` names."""
        self.messages.append(Message(str(info.get("role", "user")), text))

    def record(self) -> dict[str, Any]:
        """The episode as JSON can hold it, without token ids; ``from_record`` reads it back."""
        return {
            "group": self.group,
            "seed": self.seed,
            "problem_id": self.problem_id,
            "messages": [message.record() for message in self.messages],
            "reward": self.reward,
            "end": self.end,
            "turns": self.turns,
            "statuses": [str(status) for status in self.statuses],
            "injected": [str(status) for status in self.injected],
            "answer": self.answer,
            "correct": self.correct,
            "answer_tags": self.answer_tags,
            "policy_tokens": self.policy_tokens,
            "policy_version": self.policy_version,
            "error": self.error,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], *, beside: Collection[str] = ()) -> Self:
        """Read an episode back from its record; token ids are not in it.

        Args:
            record: What ``record`` returned, or JSON made of it.
            beside: Keys that a file has in addition to the episode's own; they are ignored.

        Raises:
            RecordFormatError: A key is missing, is unknown, or has an invalid value; the message names it.
        """
        if not isinstance(record, Mapping):
            raise RecordFormatError(f"Expected the record of an episode, a mapping of keys to values, not {record!r}.")
        for name in record:
            if name not in _READERS and name not in beside:
                raise RecordFormatError(
                    f"The record of an episode has the unknown key {name!r}; its keys are {', '.join(_READERS)}."
                )
        fields: dict[str, Any] = {}
        for name, read in _READERS.items():
            if name not in record:
                raise RecordFormatError(f"The record of an episode lacks the key {name!r}.")
            try:
                fields[_FIELDS.get(name, name)] = read(record[name])
            except (TypeError, ValueError, KeyError) as error:
                raise RecordFormatError(f"The record of an episode: the value of {name!r} {error}") from error
        return cls(**fields)


def _a(kind: type[T] | tuple[type[T], ...], what: str) -> Callable[[Any], T]:
    """Reads a value of that type; a bool does not count as a number."""

    def read(value: Any) -> T:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"must be {what}, not {str(value)[:100]!r}.")
        return value

    return read


def _or_none(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else read(value)


def _list_of(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    return lambda value: [read(item) for item in _a(list, "a list")(value)]


def _status(value: Any) -> ToolStatus:
    try:
        return ToolStatus(value)
    except ValueError:
        raise ValueError(f"has {value!r}, which is none of the statuses {', '.join(ToolStatus)}.") from None


def _message(value: Any) -> Message:
    if not isinstance(value, Mapping) or set(value) != {"role", "content"}:
        raise TypeError(f"has a message that must have the keys 'role' and 'content', not {str(value)[:100]!r}.")
    return Message(_text(value["role"]), _text(value["content"]))


_text = _a(str, "a text")
_number = _a(int, "a whole number")
_FIELDS: Mapping[str, str] = {"policy_tokens": "recorded_tokens"}
"""Fields that have another name than their key in a record."""
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "group": _number,
    "seed": _or_none(_number),
    "problem_id": _text,
    "messages": _list_of(_message),
    "reward": lambda value: float(_a((int, float), "a number")(value)),
    "end": _text,
    "turns": _number,
    "statuses": _list_of(_status),
    "injected": _list_of(_status),
    "answer": _or_none(str),
    "correct": _a(bool, "true or false"),
    "answer_tags": _number,
    "policy_tokens": _number,
    "policy_version": _number,
    "error": _or_none(_text),
}
"""How the value of each key of a record is read."""


Group = Sequence[Episode]
"""The episodes that start from the same ``reset``."""
