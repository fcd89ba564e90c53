"""The record of one episode, as rollouts make it and as selectors, advantages, metrics and logs read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.status import ToolStatus, error_share


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation: its chat role and its text."""

    role: str
    content: str


@dataclass(slots=True)
class Episode:
    """One ``reset`` to its end.

    ``completion_ids``, ``mask`` and ``logprobs`` have one entry for each token after the prompt, the environment's
    tokens included.

    Attributes:
        group: Number of the group: episodes that started from the same ``reset``.
        seed: Seed of that ``reset``.
        problem_id: What the environment calls the problem; empty when it does not say.
        messages: The conversation as text.
        prompt_ids: Token ids up to where the policy's first turn begins.
        completion_ids: Token ids from there on, as the engine made them and as the environment's text tokenized.
        mask: 1 on the policy's tokens, 0 on the environment's.
        logprobs: Log-probability of each of the policy's tokens when it was drawn; 0 on the environment's.
        reward: Return of the episode, the sum of its rewards.
        end: How it ended: ``answered``, ``no_answer``, ``turns``, ``tokens``, ``time``, ``unavailable`` (our own
            failure), ``cancelled`` (its group needed it no more), or ``terminated`` and ``truncated`` when the
            environment does not say.
        turns: Turns of the policy, as the loop counted them.
        statuses: Status of each of the policy's calls, injected faults apart.
        injected: Status of each fault that a wrapper injected.
        answer: The answer, when the environment tells.
        correct: Whether it earned the full reward, as the environment says; else whether the return is positive.
        answer_tags: How often the policy marked an answer.
        policy_version: Version of the weights that its first turn was drawn from.
        error: Traceback of our own failure, when there was one.
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

    @property
    def available(self) -> bool:
        """Whether it counts at all: an episode that failed or was cancelled is in no mean and in no loss."""
        return not (self.failed or self.cancelled)

    @property
    def failed(self) -> bool:
        """Whether our own machinery failed it, which is never the policy's fault."""
        return self.end == "unavailable"

    @property
    def cancelled(self) -> bool:
        """Whether it was cut off because its group needed it no more."""
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
        return sum(self.mask)

    def note(self, info: Mapping[str, Any]) -> None:
        """Take in what ``step`` reported: the calls, and at the end how it went."""
        for call in info.get("tool_calls", ()):
            (self.injected if call.get("injected") else self.statuses).append(ToolStatus(call["status"]))
        self.answer = info.get("answer", self.answer)
        self.answer_tags = info.get("answer_tags", self.answer_tags)

    def record(self) -> dict[str, Any]:
        """The episode as JSON can hold it, without token ids."""
        return {
            "group": self.group,
            "seed": self.seed,
            "problem_id": self.problem_id,
            "messages": [{"role": m.role, "content": m.content} for m in self.messages],
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


Group = Sequence[Episode]
"""The episodes that start from the same ``reset``."""
