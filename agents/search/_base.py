"""``Thinker``: base class of agents that think in requests outside the episode, and play only the answer as a turn.

Therefore the environment's tools are not called (except by ``tactic_router``). In an environment with several turns,
the agent starts to think again at each turn, with the whole conversation so far as its question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rstar2_env.dialects import Dialect, make_dialect

from .._asked import Asked, Asking

_ANSWER = re.compile(r"\banswer\s*(?:is)?\s*[:=]\s*(.+)", re.IGNORECASE)


class Thinker(Asking):
    """Base class of agents whose method ``think`` returns the answer to play as a turn.

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        tokens: Token budget of an episode, after which only the answer is requested; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: The agent cannot be an inner agent.
    """

    def __init__(self, agent: Any, tokens: int, dialect: Dialect | str) -> None:
        self._dialect = make_dialect(dialect)
        self._asked = Asked(agent, dialect, tokens)
        self._said: list[str] = []

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Seed of all random draws.
        """
        super().reset(observation, info, seed=seed)
        self._said = []

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Search for the next turn, and return it."""
        question = "\n\n".join([*self._said, observation])
        turn = self._dialect.format_answer(self.think(question, info))
        self._said += [observation, turn]
        return turn

    @property
    def asked(self) -> Asked:
        """The object through which requests to the inner agent are made, and which counts the tokens of the replies."""
        return self._asked

    def think(self, question: str, info: Mapping[str, Any]) -> str:
        """Return the answer to a question."""
        raise NotImplementedError

    def read(self, text: str) -> str | None:
        """Return a reply's answer, marked as the dialect requires or by "Answer:"; ``None`` if there is none."""
        found = self._dialect.answer([text])
        if found is not None:
            return found
        match = _ANSWER.search(text)
        return None if match is None else match[1].strip()

    def conclude(self, prompt: str) -> str:
        """Request an answer, even if the budget is used up; return it, or the reply's last line if none is marked."""
        reply = self._asked.ask(prompt, always=True)
        found = self.read(reply)
        if found is not None:
            return found
        return next((line.strip() for line in reversed(reply.splitlines()) if line.strip()), "")
