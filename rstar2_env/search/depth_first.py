"""``DepthFirst``: depth-first search with the most promising actions first, as in LLM Reasoners (arXiv 2404.05221)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TypeVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .growth import Growth
from .tree import Node
from .world import BudgetSpentError, Found, SearchConfig, WorldModel

S = TypeVar("S")
A = TypeVar("A")


@dataclass(frozen=True)
class DepthFirst(CheckedOptions):
    """Tries actions in the order of their scores, and follows each branch to its end before it tries the next action.

    Args:
        depth: Maximum number of steps of a branch.
        ends: Number of terminal states after which the search ends; 0 searches the whole tree.
        steps: Number of steps after which the search ends; 0 for no limit.
        least: Minimum reward of a step; after a step with a smaller reward, the branch is not continued.
    """

    depth: int = option(5, least=1)
    ends: int = option(1, least=0)
    steps: int = option(0, least=0)
    least: float = float("-inf")

    def __call__(self, world: WorldModel[S, A], guide: SearchConfig[S, A]) -> Found[S, A]:
        """Search a world from its first state; see ``Search``."""
        growth: Growth[S, A] = Growth(world, guide, depth=self.depth)
        ended = 0
        way: list[Node[S, A]] = [growth.root]
        with contextlib.suppress(BudgetSpentError):
            while way and not (self.ends and ended >= self.ends) and not (self.steps and growth.steps >= self.steps):
                if not growth.untried(way[-1]):
                    way.pop()
                    continue
                child = growth.take(way[-1])
                ended += child.terminal
                if child.reward >= self.least:
                    way.append(child)
        return growth.found()
