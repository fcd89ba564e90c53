"""``Episode``: the record of one episode, extended step by step, and its conversion to and from JSON.

All code that plays episodes stores them in this class: the agent loop, the rollout player, wrappers and
adapters. Selectors, advantages, metrics and logs read it. Not covered: the formats of the files that hold records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, SupportsFloat, TypeAlias, get_args

from rstar2_env.core import record_fields as read
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.status import ToolStatus, error_share
from rstar2_env.core.turn import Turn

EpisodeSource: TypeAlias = Literal["policy", "expert", "refined", "stale"]
"""Origin of an episode's turns: the policy being trained (``policy``), an expert (``expert``), the policy with a
user message that differs from the one used for training (``refined``, see ``Episode.shown``), or an earlier policy
(``stale``)."""
ReplyEnd: TypeAlias = Literal["no_text", "cut", "refused"]
"""Reason why an endpoint's reply could not be played as a turn: the reply has no text, it was cut at the token limit,
or the endpoint refused to answer. Such an episode is not evidence about the model's answer, and is excluded from
means over episodes."""
_REPLY_ENDS = frozenset(get_args(ReplyEnd))
_SOURCES: tuple[EpisodeSource, ...] = get_args(EpisodeSource)
_MESSAGE_KEYS = frozenset(("role", "content"))


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation: its chat role and its text."""

    role: str
    content: str

    def record(self) -> dict[str, str]:
        """Return the message as a dictionary for JSON and chat templates."""
        return {"role": self.role, "content": self.content}


@dataclass(slots=True)
class Episode:
    """The record of one episode, from ``reset`` to its end.

    The player calls ``begin`` with the result of ``reset``, and ``step`` with each action and the result of the
    environment's ``step``. A player that may stop an episode between action and result calls the parts of ``step``
    separately: ``act``, ``observe``, ``show``.

    ``completion_ids``, ``mask`` and ``logprobs`` have one entry for each token after the prompt, the environment's
    tokens included.

    Attributes:
        group: Number of the group; a group consists of the episodes that started from the same ``reset``.
        seed: Seed of the ``reset``.
        problem_id: The environment's id of the problem; empty if it provides none.
        messages: The conversation as text.
        prompt_ids: Token ids before the policy's first turn.
        completion_ids: Token ids after the prompt: as the engine generated them, and as the environment's text was
            tokenized.
        mask: 1 on the policy's tokens, 0 on the environment's.
        logprobs: Log-probability of each of the policy's tokens when it was drawn; 0 on the environment's.
        reward: Return of the episode, the sum of its rewards.
        end: How the episode ended: ``answered``, ``no_answer``, ``turns``, ``tokens``, ``time``, ``unavailable`` (an
            infrastructure failure), ``cancelled`` (its group no longer needed it), a ``ReplyEnd``, or ``terminated``
            or ``truncated`` if the environment does not report an end.
        turns: Number of turns of the policy.
        statuses: Status of each of the policy's calls, without injected faults.
        injected: Status of each fault that a wrapper injected.
        answer: The answer, if the environment reports it.
        correct: Whether the episode earned the full reward, if the environment reports this; otherwise whether the
            return is positive.
        answer_tags: Number of times that the policy marked a text as its answer.
        policy_version: Version of the weights that generated the first turn.
        error: Traceback of the infrastructure failure, or description of an unusable reply; else ``None``.
        recorded_tokens: ``policy_tokens`` of an episode that was read from a record, since records have no mask.
        steps: Each turn of the policy with its result. Together, the turns contain exactly the policy's tokens and the
            calls of ``statuses``, and their rewards add up to ``reward``.
        rewards: The components of the reward, by name, if the environment or the trainer reports them.
        task: Family or kind of the problem: ``info["task"]`` of ``reset``, else ``info["source"]``, else the
            environment's id; empty if unknown.
        source: Origin of the episode's turns; see ``EpisodeSource``.
        shown: The user's message that the episode was played with, if it differs from the message in ``messages``,
            which is used for training.
        shown_ids: Token ids of the prompt with ``shown``; empty if the episode was played with ``prompt_ids``.
        parent: Index (from 0, in the group) of the episode that this one branched from, and position in
            ``completion_ids`` of the first token that they do not share; ``None`` for an episode played from ``reset``.
        usage: Cost of the turns, if the player counts it: ``requests``, ``cached`` (requests answered from a cache),
            ``prompt_tokens``, ``completion_tokens``, ``cost``.
        measured: Measurements of a trainer, by name: one number per token or per turn. Not recorded.
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
    steps: list[Turn] = field(default_factory=list)
    rewards: dict[str, float] = field(default_factory=dict)
    task: str = ""
    source: EpisodeSource = "policy"
    parent: tuple[int, int] | None = None
    measured: dict[str, list[float]] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)
    shown: str = ""
    shown_ids: list[int] = field(default_factory=list)

    @property
    def played_ids(self) -> list[int]:
        """Token ids of the prompt from which the episode's tokens were generated."""
        return self.shown_ids or self.prompt_ids

    @property
    def off_policy(self) -> bool:
        """Whether the tokens are not samples of the policy given ``prompt_ids``: ``source`` is expert or refined."""
        return self.source in ("expert", "refined")

    @property
    def available(self) -> bool:
        """Whether the episode counts in means and losses: it is not ``failed``, ``cancelled`` or ``unusable``."""
        return not (self.failed or self.cancelled or self.unusable)

    @property
    def failed(self) -> bool:
        """Whether the episode ended because the infrastructure failed, which is never the policy's fault."""
        return self.end == "unavailable"

    @property
    def cancelled(self) -> bool:
        """Whether the episode was stopped because its group no longer needed it."""
        return self.end == "cancelled"

    @property
    def unusable(self) -> bool:
        """Whether a reply could not be played as a turn; see ``ReplyEnd``."""
        return self.end in _REPLY_ENDS

    @property
    def tool_calls(self) -> int:
        """Number of the policy's calls, without calls whose status is ``unavailable``."""
        return sum(status.counts for status in self.statuses)

    @property
    def error_share(self) -> float | None:
        """Share of the policy's calls that ended with an error, in [0, 1]; ``None`` if ``tool_calls`` is 0."""
        return error_share(self.statuses)

    @property
    def policy_tokens(self) -> int:
        """Number of tokens that the policy wrote."""
        return sum(self.mask) if self.mask else self.recorded_tokens

    def begin(self, text: str, info: Mapping[str, Any]) -> Self:
        """Add the result of ``reset``: the problem id, the system message if there is one, and the user's message.

        Returns:
            The episode itself, so that ``Episode(seed=seed).begin(*env.reset(seed=seed))`` works as one expression.
        """
        self.problem_id = str(info.get("problem_id", ""))
        self.task = str(info.get("task") or info.get("source") or self.task)
        if system := info.get("system"):
            self.messages.append(Message("system", str(system)))
        self.messages.append(Message("user", text))
        return self

    def step(self, action: str, returned: tuple[str, SupportsFloat, bool, bool, Mapping[str, Any]]) -> bool:
        """Add one step: the policy's turn and the result of the environment's ``step``.

        If the environment returns an empty text, no message is added for it.

        Args:
            action: The policy's turn.
            returned: Result of the environment's ``step``: text, reward, ``terminated``, ``truncated``,
                ``info``.

        Returns:
            Whether the episode is over.

        Raises:
            ValueError: ``info`` has a call whose status is not a ``ToolStatus``.
        """
        self.act(action)
        if returned[0]:  # there is often nothing to show at the end
            self.show(returned[0], returned[4])
        return self.observe(*returned[1:])

    def act(self, action: str, *, tokens: tuple[int, int] = (0, 0), version: int = 0) -> None:
        """Add the policy's turn, before the environment's result is known.

        Args:
            action: Text of the turn.
            tokens: Start and end of the turn's tokens in ``completion_ids``, for players that have token ids.
            version: Version of the weights that generated the turn.
        """
        shown = self.messages[-1] if self.messages else None
        observation = shown.content if shown is not None and shown.role != "assistant" else ""
        self.steps.append(Turn(*tokens, observation, version=version))
        self.messages.append(Message("assistant", action))
        self.turns += 1

    def observe(self, reward: SupportsFloat, terminated: bool, truncated: bool, info: Mapping[str, Any]) -> bool:
        """Add the result of a step: its reward, its calls and, at the end, the outcome of the episode.

        Args:
            reward: The step's reward.
            terminated: Whether the environment ended the episode.
            truncated: Whether a budget ended the episode, or the environment was unavailable.
            info: ``info`` of the environment's ``step``.

        Returns:
            Whether the episode is over.

        Raises:
            ValueError: A call's status is not a ``ToolStatus``.
        """
        if not self.steps:
            self.steps.append(Turn())
        turn = self.steps[-1]
        turn.info = jsonable(info)
        turn.reward += float(reward)
        self.reward += float(reward)
        for name, value in info.get("reward_components", {}).items():
            self.rewards[name] = self.rewards.get(name, 0.0) + float(value)
        for call in info.get("tool_calls", ()):
            status = ToolStatus(call["status"])
            if call.get("injected"):
                self.injected.append(status)
            else:
                self.statuses.append(status)
                turn.statuses.append(status)
        if "answer" in info:
            self.answer = None if info["answer"] is None else str(info["answer"])
        self.answer_tags = info.get("answer_tags", self.answer_tags)
        if not (terminated or truncated):
            return False
        self.end = str(info.get("end", "terminated" if terminated else "truncated"))
        self.correct = bool(info.get("correct", self.reward > 0))
        if self.failed and info.get("error"):
            self.error = str(info["error"])
        return True

    def show(self, text: str, info: Mapping[str, Any]) -> None:
        """Append the environment's text to ``messages``, with the chat role ``info["role"]`` [default: ``user``]."""
        self.messages.append(Message(str(info.get("role", "user")), text))

    def void(self, end: Literal["unavailable", "cancelled"] | ReplyEnd, error: str | None = None) -> None:
        """End the episode, exclude it from means and losses, and reset its reward.

        Args:
            end: The reason, which becomes the episode's ``end``.
            error: Traceback of the failure, or a description of the unusable reply.
        """
        self.end, self.reward, self.correct, self.error = end, 0.0, False, error
        self.rewards.clear()
        for turn in self.steps:
            turn.reward = 0.0

    def record(self) -> dict[str, Any]:
        """Return the episode as JSON-compatible values, without token ids; ``from_record`` reads it back."""
        return {
            **{name: getattr(self, name) for name in (*_READERS, *_LATER)},
            "messages": [message.record() for message in self.messages],
            "statuses": [str(status) for status in self.statuses],
            "injected": [str(status) for status in self.injected],
            "steps": [turn.record(shown) for turn, shown in zip(self.steps, _shown(self.messages), strict=False)],
            "parent": None if self.parent is None else list(self.parent),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], *, extra: Collection[str] = ()) -> Self:
        """Read an episode from its record, which has no token ids.

        Args:
            record: The result of ``record``, or its JSON parsed again. Files of earlier versions lack the keys
                ``steps``, ``rewards``, ``task``, ``source``, ``parent``, ``usage`` and ``shown``; the fields of these
                keys then have their defaults.
            extra: Additional keys, which are ignored.

        Raises:
            RecordFormatError: A key is missing, is unknown, or has an invalid value; the message names it.
        """
        if not isinstance(record, (dict, Mapping)):
            raise RecordFormatError(
                f"Expected the record of an episode, which is a mapping of keys to values, not {record!r}."
            )
        for name in record:
            if name not in _ALL_READERS and name not in extra:
                known = ", ".join([*_READERS, *_LATER])
                raise RecordFormatError(f"The record of an episode has the unknown key {name!r}; its keys are {known}.")
        fields: dict[str, Any] = {}
        name = ""
        try:
            for name, take in _ALL_READERS.items():
                if name in record:
                    fields[_FIELDS.get(name, name)] = take(record[name])
                elif name in _READERS:
                    raise RecordFormatError(f"The key {name!r} is missing in the record of an episode.")
            name = "steps"
            shown = _shown(fields["messages"])
            fields["steps"] = [Turn.from_record(turn, next(shown)) for turn in fields.get("steps", ())]
        except (TypeError, ValueError, KeyError) as error:
            if isinstance(error, RecordFormatError):
                raise
            raise RecordFormatError(
                f"The value of the key {name!r} in the record of an episode is not valid: {error}"
            ) from error
        return cls(**fields)


def _shown(messages: Sequence[Message]) -> Iterator[str]:
    """Yield, for each message of the policy, the text that the policy saw right before it; then "" forever."""
    before = ""
    for message in messages:
        if message.role == "assistant":
            yield before
            before = ""
        else:
            before = message.content
    while True:
        yield ""


def _message(value: Any) -> Message:
    if not isinstance(value, (dict, Mapping)) or value.keys() != _MESSAGE_KEYS:
        raise TypeError(f"expected a message, a mapping with the keys 'role' and 'content', got {str(value)[:100]!r}.")
    return Message(read.text(value["role"]), read.text(value["content"]))


def _source(value: Any) -> EpisodeSource:
    if value not in _SOURCES:
        raise ValueError(f"expected one of {', '.join(_SOURCES)}, got {str(value)[:100]!r}.")
    source: EpisodeSource = value
    return source


def _parent(value: Any) -> tuple[int, int]:
    numbers = read.list_of(read.number)(value)
    if len(numbers) != 2:
        raise ValueError(
            f"expected two numbers, the number of an episode and the number of a token, got {str(value)[:100]!r}."
        )
    return numbers[0], numbers[1]


_FIELDS: Mapping[str, str] = {"policy_tokens": "recorded_tokens"}
"""Keys of a record whose ``Episode`` field has another name, each with the name of the field."""
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "group": read.number,
    "seed": read.or_none(read.number),
    "problem_id": read.text,
    "messages": read.list_of(_message),
    "reward": read.decimal,
    "end": read.text,
    "turns": read.number,
    "statuses": read.list_of(read.status),
    "injected": read.list_of(read.status),
    "answer": read.or_none(str),
    "correct": read.truth,
    "answer_tags": read.number,
    "policy_tokens": read.number,
    "policy_version": read.number,
    "error": read.or_none(read.text),
}
"""For each key of a record, the function that reads its value."""

_LATER: Mapping[str, Callable[[Any], Any]] = {
    "steps": read.list_of(read.mapping),
    "rewards": read.dict_of(read.decimal),
    "task": read.text,
    "source": _source,
    "parent": read.or_none(_parent),
    "usage": read.dict_of(read.decimal),
    "shown": read.text,
}
"""For each key that files of earlier versions lack, the function that reads its value. Without the key, the episode's
field has its default."""
_ALL_READERS = {**_READERS, **_LATER}


Group = Sequence[Episode]
"""A group: the episodes that were played from the same ``reset``."""
