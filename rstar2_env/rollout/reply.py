"""``OneReply``: stands in for an environment where the policy is asked for one turn, and nobody answers it.

What is asked has no problem behind it, so the episode earns nothing; who asked decides what the answer is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class OneReply:
    """An environment of one turn, as an episode uses one that was lent to it.

    Args:
        text: The user's message.
        system: The system message; empty for none.
    """

    env_id = ""

    def __init__(self, text: str, system: str = "") -> None:
        self._text, self._system = text, system

    async def reset(self, *, seed: int | None, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The message."""
        return self._text, {"system": self._system}

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The end."""
        return "", 0.0, True, False, {"end": "answered"}

    def release(self) -> None:
        """Nothing is to be given back."""
