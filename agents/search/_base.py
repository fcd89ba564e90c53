"""What agents share that think before they answer: the conversation as one question, and the answer as a turn.

A whole turn of the environment is the answer to one question, thought about with requests beside the episode. So the
environment's tools are not called (``tactic_router`` does), and in an environment of several turns each is thought
about anew, with all that was said before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rstar2_env.dialects import Dialect, make_dialect

from .._asked import Asked, Asking

_ANSWER = re.compile(r"\banswer\s*(?:is)?\s*[:=]\s*(.+)", re.IGNORECASE)


class Thinker(Asking):
    """An agent that answers what ``think`` returns.

    Args:
        agent: The agent that is asked: its name with options, or your own.
        tokens: Tokens of one episode after which nothing more is asked but the answer; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: The agent cannot be asked several times.
    """

    def __init__(self, agent: Any, tokens: int, dialect: Dialect | str) -> None:
        self._dialect = make_dialect(dialect)
        self._asked = Asked(agent, dialect, tokens)
        self._said: list[str] = []

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text of the environment's ``reset``.
            info: The ``info`` of the environment's ``reset``.
            seed: Seed of all that is drawn.
        """
        super().reset(observation, info, seed=seed)
        self._said = []

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Think, and answer."""
        question = "\n\n".join([*self._said, observation])
        turn = self._dialect.format_answer(self.think(question, info))
        self._said += [observation, turn]
        return turn

    @property
    def asked(self) -> Asked:
        """Asks the agent below, and counts."""
        return self._asked

    def think(self, question: str, info: Mapping[str, Any]) -> str:
        """The answer to a question."""
        raise NotImplementedError

    def read(self, text: str) -> str | None:
        """The answer in a reply: in the dialect, or after "Answer:"; ``None`` without one."""
        found = self._dialect.answer([text])
        if found is not None:
            return found
        match = _ANSWER.search(text)
        return None if match is None else match[1].strip()

    def conclude(self, prompt: str) -> str:
        """Ask for an answer, whatever was spent before; where none is marked it is the last line of the reply."""
        reply = self._asked.ask(prompt, always=True)
        found = self.read(reply)
        if found is not None:
            return found
        return next((line.strip() for line in reversed(reply.splitlines()) if line.strip()), "")
