"""``Growth``: a search tree over a world; counts steps and finds the best path."""

from __future__ import annotations

from typing import Generic, TypeVar

from .tree import Node
from .world import Found, SearchConfig, WorldModel

S = TypeVar("S")
A = TypeVar("A")


class Growth(Generic[S, A]):
    """A search tree whose nodes are states of a world.

    Args:
        world: The world model.
        guide: The guide, which proposes and rates actions.
        depth: Maximum number of steps of a branch.
        discount: Discount factor per step: the reward of step i (from 0) counts ``discount ** i`` times.

    Attributes:
        root: The first node.
        steps: Number of steps that the world has taken.
    """

    def __init__(
        self, world: WorldModel[S, A], guide: SearchConfig[S, A], *, depth: int, discount: float = 1.0
    ) -> None:
        self.world, self.guide, self._depth, self._discount = world, guide, depth, discount
        self.root: Node[S, A] = Node(world.init_state())
        self.root.terminal = world.is_terminal(self.root.state)
        self.steps = 0

    def may_grow(self, node: Node[S, A]) -> bool:
        """Return whether a branch may continue from a node."""
        return not node.terminal and node.depth < self._depth

    def untried(self, node: Node[S, A]) -> list[tuple[float, A]]:
        """Return the untried actions of a node with their scores, best first; ties keep the guide's order."""
        if node.untried is None:
            actions = self.guide.get_actions(node.state) if self.may_grow(node) else ()
            looks = [(self.guide.fast_reward(node.state, action), action) for action in actions]
            node.untried = sorted(looks, key=lambda pair: -pair[0])
        return node.untried

    def take(self, node: Node[S, A]) -> Node[S, A]:
        """Take the untried action with the best score from a node; return the new child."""
        prior, action = self.untried(node).pop(0)
        state = self.world.step(node.state, action)
        self.steps += 1
        reward = self.guide.reward(node.state, action, state)
        child: Node[S, A] = Node(state, parent=node, action=action, reward=reward, prior=prior)
        child.terminal = self.world.is_terminal(state)
        return child

    def earned(self, node: Node[S, A]) -> float:
        """Return the discounted sum of the rewards on the path to a node."""
        return sum(self._discount**place * one.reward for place, one in enumerate(node.path()[1:]))

    def found(self) -> Found[S, A]:
        """Return the finished path with the highest reward, or an unfinished path if none is finished.

        If several paths have the same reward, the first is returned.
        """
        ends = [node for node in self.root.walk() if not node.children]
        best = max(ends, key=lambda node: (node.terminal, self.earned(node)))
        return Found(best.path(), self.earned(best), self.root, self.steps, best.terminal)
