"""``Node``: the tree that search agents grow over a model's steps, and that training by search grows over its tokens.

Covered: states, actions, statistics of visits, ways up and down. Not covered: which node is next (``scores``), and what
is backed up: the algorithms decide that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

S = TypeVar("S")
A = TypeVar("A")


class Node(Generic[S, A]):
    """A state, how it was reached, and what was learned below it.

    Args:
        state: The state.
        parent: Where it was reached from; ``None`` for a root.
        action: The action that led here; ``None`` for a root.
        reward: Reward of that step.
        prior: How good the step looked before it was taken.

    Attributes:
        children: In the order in which they were tried.
        visits: How often something was backed up through this node.
        total: What was backed up, added up.
        best: The largest of what was backed up; minus infinity before the first.
        terminal: Whether nothing follows.
        untried: The actions that were proposed here and not yet taken, each with how good it looks; ``None`` before
            they were asked for.
    """

    __slots__ = (
        "action",
        "best",
        "children",
        "depth",
        "parent",
        "prior",
        "reward",
        "state",
        "terminal",
        "total",
        "untried",
        "visits",
    )

    def __init__(
        self,
        state: S,
        *,
        parent: Node[S, A] | None = None,
        action: A | None = None,
        reward: float = 0.0,
        prior: float = 0.0,
    ) -> None:
        self.state, self.parent, self.action, self.reward, self.prior = state, parent, action, reward, prior
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: list[Node[S, A]] = []
        self.visits, self.total, self.best = 0, 0.0, float("-inf")
        self.terminal = False
        self.untried: list[tuple[float, A]] | None = None
        if parent is not None:
            parent.children.append(self)

    @property
    def taken(self) -> A:
        """The action that led here.

        Raises:
            ValueError: This is the root.
        """
        if self.action is None:
            raise ValueError("No action led to the root of a tree.")
        return self.action

    @property
    def mean(self) -> float:
        """Mean of what was backed up; 0 before the first."""
        return self.total / self.visits if self.visits else 0.0

    def record(self, value: float) -> None:
        """Take in one value that was backed up."""
        self.visits += 1
        self.total += value
        self.best = max(self.best, value)

    def path(self) -> tuple[Node[S, A], ...]:
        """The nodes from the root to this one, both included."""
        nodes: list[Node[S, A]] = []
        node: Node[S, A] | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return tuple(reversed(nodes))

    def walk(self) -> Iterator[Node[S, A]]:
        """This node and all below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def __repr__(self) -> str:
        """Shown in logs and debuggers; the state may be long and is left out."""
        return f"<Node depth={self.depth} visits={self.visits} mean={self.mean:.3g} children={len(self.children)}>"
