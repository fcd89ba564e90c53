"""``best_of_k``: plays the turn with the highest score among k turns. Cobbe et al. (arXiv 2110.14168), section 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search import BudgetSpentError

from ._asked import Asked, Asking
from ._scorers import make_scorer
from .base import AGENTS


class BestOfK(Asking):
    """At every turn, requests k candidate turns from an agent and plays the candidate with the highest score.

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        k: Maximum number of requests.
        scorer: ``yes`` asks the agent whether the solution is right (``yes:votes=3`` asks three times); ``autorace``
            grades the solution by criteria; ``./file.py:Name`` is your own scorer, called with an ``Asked``, the
            question and the turn.
        enough: Score that is good enough: if a turn reaches it, no further request is made.
        tokens: Token budget of an episode, after which no further request is made; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or the agent cannot be an inner agent.
        UnknownNameError: There is no such scorer.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        k: Count = 4,
        scorer: Any = "yes",
        enough: float = float("inf"),
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        self._asked = Asked(agent, dialect, tokens)
        self._scorer = make_scorer(scorer)
        self._k, self._enough = k, enough

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the turn with the highest score; on a tie, the first of the tied turns."""
        best, best_score = None, float("-inf")
        for one in self._asked.tries(observation, info, self._k):
            try:
                score = float(self._scorer(self._asked, observation, one.turn))
            except BudgetSpentError:
                score = float("-inf")
            if best is None or score > best_score:
                best, best_score = one, score
            if best_score >= self._enough:
                break
        assert best is not None  # if there is no turn, ``tries`` raises an error
        return self._asked.keep(best)


AGENTS.register("best_of_k", BestOfK)
