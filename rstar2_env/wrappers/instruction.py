"""``AddedInstruction``: adds a text to the first message, such as a request for a plan."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import checked
from rstar2_env.wrappers.base import TextEnv, TextWrapper
from rstar2_env.wrappers.registry import WRAPPERS


class AddedInstruction(TextWrapper, gym.utils.RecordConstructorArgs):
    """Adds a text after the first message, with an empty line between them.

    Unlike options of a dialect, this wrapper works with every environment, and keeps the environment's own
    instructions. The system message, later messages and rewards do not change.

    Args:
        env: A text environment.
        text: The text to add.
        first: Place the text before the message instead of after it.

    Raises:
        ConfigurationError: The text is empty.
    """

    @checked
    def __init__(self, env: TextEnv, text: str, *, first: bool = False) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, text=text, first=first)
        super().__init__(env)
        if not text.strip():
            raise ConfigurationError("`text` must be the text to add to the first message; it is empty.", option="text")
        self._text, self._first = text, first

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode, and add the text to its first message."""
        message, info = self.env.reset(seed=seed, options=options)
        parts = (self._text, message) if self._first else (message, self._text)
        return "\n\n".join(parts), info


WRAPPERS.register("instruction", AddedInstruction)
