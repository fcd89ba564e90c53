"""A stand-in for a language model: an agent whose replies a function writes, and which counts its tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Reply = Callable[[str, int], str]
"""Writes a reply to a text, with the seed of the request."""


class ScriptedModel:
    """Replies to whatever it is asked last, as a function says.

    Args:
        reply: Writes the reply.
        told: Every text that it was asked is appended here.
    """

    def __init__(self, reply: Reply, told: list[str] | None = None) -> None:
        self._reply, self._told, self._seed = reply, told, 0
        self.usage: dict[str, float] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptedModel:
        twin = ScriptedModel(self._reply, self._told)
        twin._seed, twin.usage = self._seed, dict(self.usage)
        return twin

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        self._seed, self.usage = seed, {"requests": 0.0, "completion_tokens": 0.0}

    def reseed(self, seed: int) -> None:
        self._seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        if self._told is not None:
            self._told.append(observation)
        text = self._reply(observation, self._seed)
        self.usage["requests"] += 1
        self.usage["completion_tokens"] += tokens_of(text)
        return text


def tokens_of(text: str) -> int:
    """Words, numbers and signs."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def in_turn(*replies: str) -> Reply:
    """Replies one after the other, whatever is asked; the last again and again."""
    left = list(replies)
    return lambda text, seed: left.pop(0) if len(left) > 1 else left[0]


def answer(text: object) -> str:
    """An answer in the dialect ``rstar2``."""
    return f"<answer>\\boxed{{{text}}}</answer>"
