"""``reasoner``: searches chains of thought with one of four algorithms. LLM Reasoners (arXiv 2404.05221).

The protocols of ``rstar2_env.search`` correspond to the paper's world model, search configuration and search algorithm.
Here a state is a chain of reasoning steps, and a step's reward is the share of Yes replies to the question whether it
is useful. ``search`` is greedy search, beam search, depth-first search or MCTS (weight 1, depth 5, 10 iterations). With
``grade`` every chain that reaches an answer is graded by AutoRace, and the answer of the best chain is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search import Beam, BudgetSpentError, DepthFirst, Search, TreeSearch

from .._autorace import CRITERIA, AutoRace
from ..base import AGENTS
from ._base import Thinker
from ._chain import CONCLUDE, ChainWorld, ThoughtChain, ends


class JudgedWorld(ChainWorld):
    """Search space of reasoning chains; a step's reward is the share of Yes replies to "is this step useful?"."""

    def fast_reward(self, state: ThoughtChain, action: str) -> float:
        """Return the share of Yes replies to the question whether the step is useful, in [0, 1]."""
        return self.useful(state, action)

    def reward(self, state: ThoughtChain, action: str, after: ThoughtChain) -> float:
        """Return the reward that ``fast_reward`` returned for this step, without another request."""
        return self.useful(state, action)


class Reasoner(Thinker):
    """Searches chains of thought: greedily, by beam, depth first or by MCTS (LLM Reasoners).

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        search: The algorithm: ``greedy``, ``beam``, ``dfs`` or ``mcts``.
        depth: Maximum number of steps in a chain.
        width: Number of proposals requested in each state.
        keep: Number of chains that beam search keeps.
        ends: Number of answers after which depth-first search ends; 0 searches the whole tree.
        least: Minimum reward of a step; depth-first search skips steps with a smaller reward.
        iterations: Number of descents of MCTS.
        votes: Number of requests to judge a step.
        grade: Whether to grade all chains with an answer by AutoRace, and return the best chain's answer.
        criteria: Criteria of AutoRace; ``rstar2_env.agents.write_criteria`` returns criteria for a task.
        tokens: Token budget of an episode, after which the search ends; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or the agent cannot be an inner agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        search: Literal["greedy", "beam", "dfs", "mcts"] = "beam",
        depth: Count = 5,
        width: Count = 4,
        keep: Count = 4,
        ends: int = 1,
        least: float = 0.5,
        iterations: Count = 10,
        votes: Count = 1,
        grade: bool = False,
        criteria: Sequence[str] = CRITERIA,
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        super().__init__(agent, tokens, dialect)
        searches: dict[str, Search] = {
            "greedy": Beam(width=1, depth=depth),
            "beam": Beam(width=keep, depth=depth),
            "dfs": DepthFirst(depth=depth, ends=ends, least=least),
            "mcts": TreeSearch(iterations=iterations, depth=depth),
        }
        self.search = searches[search]
        self._width, self._votes = width, votes
        self._grader = AutoRace(criteria) if grade else None

    def think(self, question: str, info: Mapping[str, Any]) -> str:
        """Search, and return the best answer; if the search found no answer, request one from the inner agent."""
        world = JudgedWorld(self, question, width=self._width, votes=self._votes)
        found = self.search(world, world)
        reached = ends(found)
        if not reached:
            return self.conclude(found.state.prompt(CONCLUDE))
        if self._grader is None:
            return str(found.state.answer)
        best = max(reached, key=lambda pair: (self._graded(question, pair[0]), pair[1]))[0]
        return str(best.answer)

    def _graded(self, question: str, chain: ThoughtChain) -> float:
        assert self._grader is not None
        try:
            return self._grader(self._asked, question, "\n".join(chain.steps))
        except BudgetSpentError:
            return 0.0


AGENTS.register("reasoner", Reasoner)
