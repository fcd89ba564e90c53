"""``mcts_puct``: MCTS with a value model and a process model (Reasoning Language Models, arXiv 2501.11223).

The score of a child with value q and n visits, whose parent has N visits, is ``q + sqrt(N-1)/(1+n) (c1 +
ln((N+c2)/c2))`` with c1 = 1.25 and c2 = 19652; the discount is .96. Examples for q = 0: (N, n) = (10, 0) gives 3.7515,
(10, 3) gives .9379, (100, 5) gives 2.0813. The value of a new leaf is the value model's estimate. The process model
checks each step: the reward of a step is minus the process model's confidence that the step is wrong. Since this
reward is never positive, a chain gains nothing by being long. The reward of an answer is its value. The paper leaves
the choice of these rewards open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search import TreeSearch

from .._asked import Asked
from .._scorers import share_of_yes
from ..base import AGENTS
from ._base import Thinker
from ._chain import CONCLUDE, PROMISE, RIGHT, ChainWorld, ThoughtChain, promise


class ValuedWorld(ChainWorld):
    """Search space of reasoning chains: a value model rates each state, and a process model checks each step.

    Attributes:
        valued_by: Makes requests to the value model.
        checked_by: Makes requests to the process model; ``None`` checks no steps.
    """

    valued_by: Asked
    checked_by: Asked | None

    def reward(self, state: ThoughtChain, action: str, after: ThoughtChain) -> float:
        """Return the value of an answer; for any other step, return the process model's penalty, in [-1, 0]."""
        if after.answer is not None:
            return self.value(after)
        if self.checked_by is None:
            return 0.0
        return share_of_yes(self.checked_by, after.prompt(RIGHT), self.votes) - 1

    def value(self, state: ThoughtChain) -> float:
        """Return the value model's estimate, in [0, 1]."""
        return sum(promise(self.valued_by.ask(state.prompt(PROMISE))) for _ in range(self.votes)) / self.votes


class MctsPuct(Thinker):
    """Searches chains of thought by MCTS-PUCT, with a value model and a process model, as in the framework x1.

    Args:
        agent: The agent that proposes: its name, optionally with options, or your own agent.
        value: The agent that rates states; ``None`` uses ``agent``.
        process: The agent that checks steps; ``None`` uses ``agent``, ``"none"`` disables the check.
        iterations: Number of descents from the root.
        depth: Maximum number of steps in a chain.
        width: Number of proposals requested in each state.
        votes: Number of requests to rate a state and to check a step.
        discount: Discount factor per step.
        tokens: Token budget of an episode, after which the search ends; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, or an agent cannot be an inner agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        value: Any = None,
        process: Any = None,
        iterations: Count = 30,
        depth: Count = 5,
        width: Count = 4,
        votes: Count = 1,
        discount: Annotated[float, Rule(above=0, most=1)] = 0.96,
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        super().__init__(agent, tokens, dialect)
        self.search = TreeSearch(
            iterations=iterations, depth=depth, score="puct", discount=discount, leaf="value", backup="mean"
        )
        self._width, self._votes = width, votes
        self._value = self._asked.with_agent(value, dialect)
        self._process = None if process == "none" else self._asked.with_agent(process, dialect)

    def think(self, question: str, info: Mapping[str, Any]) -> str:
        """Search, and return the best answer; if the search found no answer, request one from the inner agent."""
        world = self.world(question)
        found = self.search(world, world)
        return found.state.answer if found.state.answer is not None else self.conclude(found.state.prompt(CONCLUDE))

    def world(self, question: str) -> ValuedWorld:
        """Return the search space for a question."""
        world = ValuedWorld(self, question, width=self._width, votes=self._votes)
        world.valued_by, world.checked_by = self._value, self._process
        return world


AGENTS.register("mcts_puct", MctsPuct)
