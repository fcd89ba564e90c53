"""``Beam``: beam search, as in LLM Reasoners (arXiv 2404.05221); with width 1, greedy search."""

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
class Beam(CheckedOptions):
    """At each step, extends every kept path by each action that the guide proposes, and keeps the best paths.

    Args:
        width: Number of paths to keep, including finished ones; 1 is greedy search.
        depth: Maximum number of steps.
    """

    width: int = option(4, least=1)
    depth: int = option(5, least=1)

    def __call__(self, world: WorldModel[S, A], guide: SearchConfig[S, A]) -> Found[S, A]:
        """Search a world from its first state; see ``Search``."""
        growth: Growth[S, A] = Growth(world, guide, depth=self.depth)
        kept: list[Node[S, A]] = [growth.root]
        with contextlib.suppress(BudgetSpentError):
            while any(growth.untried(node) for node in kept):
                reached: list[Node[S, A]] = []
                for node in kept:
                    reached += [growth.take(node) for _ in list(growth.untried(node))] or [node]
                kept = sorted(reached, key=lambda node: -growth.earned(node))[: self.width]
        return growth.found()
