"""``best_of_k``: of k turns the one that a scorer likes best. Cobbe et al. (arXiv 2110.14168), section 4."""

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
    """Asks an agent k times at every turn and plays the turn with the highest score.

    Args:
        agent: The agent that is asked: its name with options, or your own.
        k: How often, at most.
        scorer: ``yes`` asks the agent whether the solution is right (``yes:votes=3`` several times), ``autorace``
            holds it to criteria; or your own: ``./file.py:Name``, called with what may be asked, question and turn.
        enough: A score at which asking stops.
        tokens: Tokens of one episode after which nothing more is asked; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or the agent cannot be asked several times.
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
        """The turn with the highest score; of several the first."""
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
        assert best is not None  # there is one turn at least, or tries has raised
        return self._asked.keep(best)


AGENTS.register("best_of_k", BestOfK)
