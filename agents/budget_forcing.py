"""``budget_forcing``: enforces a minimum and a maximum length of thought. s1 (arXiv 2501.19393), section 3.1.

If an agent stops thinking before ``least`` tokens, "Wait" is appended to the thought and the agent continues. A thought
of more than ``most`` tokens is cut, and the agent must answer. The paper appends "Wait" two to six times, and ends a
cut thought with the end-of-thinking mark and "Final Answer:".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Rule, checked
from rstar2_env.dialects import Dialect

from ._asked import Asked, Asking
from .base import AGENTS

Least = Annotated[int, Rule(least=0)]


class BudgetForcing(Asking):
    """Extends short thoughts of an agent by appending "Wait"; cuts long thoughts, after which the agent must answer.

    An agent that can continue its own text (``policy``) does so; any other agent receives its thought so far in the
    prompt.

    Args:
        agent: The agent that thinks: its name, optionally with options, or your own agent.
        least: Minimum number of tokens in a thought; 0 for no limit. Words are counted if the agent counts no tokens.
        most: Number of tokens after which a thought is cut; 0 for no limit.
        waits: Maximum number of times that a turn is continued.
        wait: Text that is appended to continue the thought.
        end: Text that ends a thought. A turn without it consists only of the thought.
        final: Text that is appended after ``end`` to request the answer.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: A number is out of its range, ``least`` is above ``most``, or the agent cannot be an inner
            agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        least: Least = 0,
        most: Least = 0,
        waits: Least = 2,
        wait: str = "\nWait",
        end: str = "</think>",
        final: str = "\nFinal answer:",
        dialect: Dialect | str = "rstar2",
    ) -> None:
        if most and least > most:
            raise ConfigurationError(f"The option `least` must not exceed `most` ({most} tokens); got {least} tokens.")
        self._asked = Asked(agent, dialect)
        self._least, self._most, self._waits = least, most, waits
        self._wait, self._end, self._final = wait, end, final

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the turn, with a thought of the required length."""
        one = next(self._asked.tries(observation, info, 1))
        for _ in range(self._waits):
            thought = one.turn.partition(self._end)[0]
            if self._asked.length(thought) >= self._least:
                break
            one = self._asked.extend(one, observation, info, thought.rstrip() + self._wait)
        thought = one.turn.partition(self._end)[0]
        if self._most and self._asked.length(thought) > self._most:
            begun = self._cut(thought) + "\n" + self._end + self._final
            one = self._asked.extend(one, observation, info, begun)
        return self._asked.keep(one)

    def _cut(self, thought: str) -> str:
        """Return the longest prefix of whole words that has at most ``most`` tokens."""
        ends = [0, *(match.end() for match in re.finditer(r"\S+", thought))]
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._asked.length(thought[: ends[middle]]) <= self._most:
                low = middle
            else:
                high = middle - 1
        return thought[: ends[low]]


AGENTS.register("budget_forcing", BudgetForcing)
