"""``TreeSearch``: Monte Carlo tree search, as RAP and x1 use it.

An iteration descends from the root to the children with the highest scores, expands the leaf that it reaches, simulates
from there with the most promising actions (or calls a value model), and backs up the return. RAP (arXiv 2305.14992,
section 3.3, algorithm 1) uses ``uct`` with weight 1, 10 iterations, depth 5, and the mean or the best of the backed-up
values. x1 (arXiv 2501.11223) uses ``puct``, a discount of .96, and a value model instead of a simulation.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from .growth import Growth
from .scores import SCORES
from .tree import Node
from .world import BudgetSpentError, Found, RatesStates, SearchConfig, WorldModel

S = TypeVar("S")
A = TypeVar("A")


@dataclass(frozen=True)
class TreeSearch(CheckedOptions):
    """Monte Carlo tree search.

    The search creates a child when it first visits the child; this costs one step of the world. Until then, the score
    of the child's action stands for the child's value. Ties go to untried actions, then to the action tried first, so
    that the same world gives the same tree.

    Args:
        iterations: Number of descents from the root.
        depth: Maximum number of steps of a branch.
        score: Selection rule of a child: ``"uct"`` or ``"puct"``.
        weight: Weight of the exploration bonus.
        backup: Value of a child: the ``"mean"`` or the ``"best"`` of the backed-up values.
        discount: Discount factor per step.
        leaf: Value of a new leaf: ``"play"`` simulates from the leaf and always takes the action with the highest
            score; ``"value"`` calls the guide's value model.
    """

    iterations: int = option(10, least=1)
    depth: int = option(5, least=1)
    score: Literal["uct", "puct"] = "uct"
    weight: float = option(1.0, least=0)
    backup: Literal["mean", "best"] = "mean"
    discount: float = option(1.0, above=0, most=1)
    leaf: Literal["play", "value"] = "play"

    def __call__(self, world: WorldModel[S, A], guide: SearchConfig[S, A]) -> Found[S, A]:
        """Search a world from its first state; see ``Search``.

        Raises:
            ConfigurationError: ``leaf="value"`` is set, but the guide has no value model.
        """
        if self.leaf == "value" and not isinstance(guide, RatesStates):
            raise ConfigurationError(
                f"leaf='value' needs a guide with a method `value`, which {type(guide).__name__} does not "
                "have: add the method, or use leaf='play'."
            )
        growth: Growth[S, A] = Growth(world, guide, depth=self.depth, discount=self.discount)
        with contextlib.suppress(BudgetSpentError):
            for _ in range(self.iterations):
                node, beyond = self._descend(growth), 0.0
                if self.leaf == "play":
                    while growth.untried(node):
                        node = growth.take(node)
                elif isinstance(guide, RatesStates) and growth.may_grow(node):
                    beyond = guide.value(node.state)
                self._back_up(node, beyond)
        return growth.found()

    def _descend(self, growth: Growth[S, A]) -> Node[S, A]:
        """Descend from the root by score; return the first node that was never visited or that has no actions."""
        node = growth.root
        while node.visits:
            untried = growth.untried(node)
            best = max(node.children, key=lambda child: self._score_of(node, child), default=None)
            if untried and (best is None or self._scored(untried[0][0], node, 0) >= self._score_of(node, best)):
                return growth.take(node)
            if best is None:
                break
            node = best
        return node

    def _score_of(self, node: Node[S, A], child: Node[S, A]) -> float:
        return self._scored(child.mean if self.backup == "mean" else child.best, node, child.visits)

    def _scored(self, value: float, node: Node[S, A], visits: int) -> float:
        return SCORES[self.score](value, node.visits, visits, weight=self.weight)

    def _back_up(self, node: Node[S, A], beyond: float) -> None:
        worth = beyond
        for one in reversed(node.path()):
            one.record(worth := one.reward + self.discount * worth)
