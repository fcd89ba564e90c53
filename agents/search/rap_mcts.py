"""``rap_mcts``: reasoning via planning: the model is also the world model. RAP (arXiv 2305.14992, section 3).

MCTS with UCT: the score of a child with mean value Q and n visits, whose parent has N visits, is ``Q + w sqrt(ln N /
n)`` with w = 1; 10 iterations, depth 5. The reward of a step is ``r0^.5 r1^.5``: r0 is the share of Yes replies to the
question whether the step is useful; r1 is the confidence, the share of the world model's predictions that agree on the
outcome. The result is the answer of the best path, or the winner of a vote of all paths weighted by reward (the paper's
aggregation). The paper computes r0 from the logits of Yes; here it is a share of replies, since an agent returns only
text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search import TreeSearch

from ..base import AGENTS
from ._base import Thinker
from ._chain import CONCLUDE, ChainWorld, ThoughtChain, ends


class RapWorld(ChainWorld):
    """Search space of RAP: the reward of a step depends on its usefulness and the confidence in its outcome."""

    def fast_reward(self, state: ThoughtChain, action: str) -> float:
        """Return the square root of r0, the share of Yes replies to the question whether the step is useful."""
        return float(self.useful(state, action) ** 0.5)

    def reward(self, state: ThoughtChain, action: str, after: ThoughtChain) -> float:
        """Return sqrt(r0 r1), where r0 is the step's usefulness and r1 the confidence in its outcome."""
        return float((self.useful(state, action) * after.sure) ** 0.5)


class RapMcts(Thinker):
    """Searches chains of thought by MCTS, with the model as world model and judge (RAP).

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        iterations: Number of descents from the root.
        depth: Maximum number of steps in a chain.
        width: Number of proposals requested in each state.
        votes: Number of requests to predict an outcome and to judge a step.
        weight: Weight w of the exploration bonus in the UCT score.
        output: ``"path"`` for the best path's answer; ``"vote"`` for the winner of a vote of all paths, weighted by
            reward.
        tokens: Token budget of an episode, after which the search ends; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or the agent cannot be an inner agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        iterations: Count = 10,
        depth: Count = 5,
        width: Count = 4,
        votes: Count = 1,
        weight: float = 1.0,
        output: Literal["path", "vote"] = "path",
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        super().__init__(agent, tokens, dialect)
        self.search = TreeSearch(iterations=iterations, depth=depth, weight=weight)
        self._width, self._votes, self._output = width, votes, output

    def think(self, question: str, info: Mapping[str, Any]) -> str:
        """Search, and return the best answer; if the search found no answer, request one from the inner agent."""
        world = self.world(question)
        found = self.search(world, world)
        reached = ends(found)
        if not reached:
            return self.conclude(found.state.prompt(CONCLUDE))
        if self._output == "path":
            return str(found.state.answer)
        votes: dict[str, float] = defaultdict(float)
        for chain, earned in reached:
            votes[str(chain.answer)] += earned
        return max(votes, key=lambda answer: votes[answer])

    def world(self, question: str) -> RapWorld:
        """Return the search space for a question."""
        return RapWorld(self, question, width=self._width, votes=self._votes, predicts=True)


AGENTS.register("rap_mcts", RapMcts)
