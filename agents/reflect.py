"""``reflect``: retries turns with a critic's feedback. Self-Refine (arXiv 2303.17651), Reflexion (arXiv 2303.11366)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search import BudgetSpentError

from ._asked import Asked, Asking
from .base import AGENTS

CRITIC = (
    "{question}\n\nProposed solution:\n{turn}\n\nSay in one or two sentences what is wrong with this solution. If "
    "nothing is, reply with the single word RIGHT."
)
AGAIN = "{question}\n\nAn earlier attempt:\n{turn}\n\nWhat was said about it:\n{feedback}\n\nTry again."
_RIGHT = re.compile(r"\s*RIGHT\b")


class Reflect(Asking):
    """Lets a critic review every turn and retries with its feedback, until the critic finds no error.

    The feedback comes from the critic and not from the environment, because the first answer in the environment would
    end the episode. The last of ``tries`` turns is played without a review.

    Args:
        agent: The agent that tries: its name, optionally with options, or your own agent.
        critic: The agent that reviews; ``None`` uses ``agent``.
        tries: Maximum number of turns to try.
        tokens: Token budget of an episode, after which no further request is made; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or an agent cannot be an inner agent.
    """

    @checked
    def __init__(
        self, agent: Any, critic: Any = None, tries: Count = 3, tokens: int = 0, dialect: Dialect | str = "rstar2"
    ) -> None:
        self._asked = Asked(agent, dialect, tokens)
        self._critic = self._asked.with_agent(critic, dialect)
        self._tries = tries

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the first turn in which the critic finds no error, or the last turn."""
        shown = observation
        for left in reversed(range(self._tries)):
            one = next(self._asked.tries(shown, info, 1))
            if not left:
                break
            try:
                said = self._critic.ask(CRITIC.format(question=observation, turn=one.turn))
            except BudgetSpentError:
                break
            if not said.strip() or _RIGHT.match(said) or self._asked.spent:
                break
            shown = AGAIN.format(question=observation, turn=one.turn, feedback=said.strip())
        return self._asked.keep(one)


AGENTS.register("reflect", Reflect)
