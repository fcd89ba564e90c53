"""``self_consistency``: the most frequent answer of several turns. Wang et al. (arXiv 2203.11171).

``answer = argmax_a sum_i [a_i = a]``, where a_i is the answer of sample i of k. Sampling stops as soon as the remaining
samples cannot change the winner, which gives the same answer for fewer tokens. A turn that calls a tool is a vote to
continue the episode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect, make_dialect

from ._asked import Asked, Asking
from .base import AGENTS

_GOES_ON = "\0"
"""Vote of a turn with a tool call; it differs from every answer."""


class SelfConsistency(Asking):
    """At every turn, requests k candidate turns from an agent and plays the most frequent answer.

    Each requested turn is one vote: for its answer or, if it calls a tool, for calling a tool; all tool calls count as
    the same vote. A turn with neither has no vote. On a tie, the vote that occurred first wins. For votes over whole
    episodes see maj@k of ``rstar2 eval --samples``.

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        k: Maximum number of requests.
        early_stop: Stop when the remaining requests cannot change the winner.
        tokens: Token budget of an episode, after which no further request is made; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or the agent cannot be an inner agent.
    """

    @checked
    def __init__(
        self, agent: Any, k: Count = 8, early_stop: bool = True, tokens: int = 0, dialect: Dialect | str = "rstar2"
    ) -> None:
        self._dialect = make_dialect(dialect)
        self._asked = Asked(agent, dialect, tokens)
        self._k, self._early = k, early_stop

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the first turn with the winning vote; the first turn if no turn has an answer or a call."""
        tries, votes = [], list[str | None]()
        for one in self._asked.tries(observation, info, self._k):
            tries.append(one)
            votes.append(self._vote(one.turn))
            if self._early and decided(votes, self._k - len(votes)):
                break
        chosen = winner(votes)
        return self._asked.keep(tries[0 if chosen is None else votes.index(chosen)])

    def _vote(self, turn: str) -> str | None:
        if self._dialect.calls(turn):
            return _GOES_ON
        answer = self._dialect.answer([turn])
        return None if answer is None else " ".join(answer.split())


def winner(votes: list[str | None]) -> str | None:
    """Return the most frequent vote that is not ``None`` (on a tie, the first), or ``None`` if there is none."""
    counts = Counter(vote for vote in votes if vote is not None)
    return max(counts, key=lambda vote: counts[vote], default=None)


def decided(votes: list[str | None], left: int) -> bool:
    """Return whether ``left`` further votes cannot change the winner."""
    counts = Counter(vote for vote in votes if vote is not None)
    best = winner(votes)
    if best is None:
        return left == 0
    order = list(counts)
    # An answer that has not been given yet would come last, so it would lose a tie.
    rivals = [(counts[other], order.index(other)) for other in order if other != best] + [(0, len(order))]
    place = order.index(best)
    return all((count + left, -at) < (counts[best], -place) for count, at in rivals)


AGENTS.register("self_consistency", SelfConsistency)
