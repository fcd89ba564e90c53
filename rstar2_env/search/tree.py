"""``Node``: a node of a search tree, over a model's reasoning steps (agents) or over its tokens (training).

Covered: states, actions, visit statistics, traversal. Not covered: the selection of the next node (``scores``), and the
choice of the values to back up (the search algorithms).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

S = TypeVar("S")
A = TypeVar("A")


@dataclass(slots=True, eq=False)
class Node(Generic[S, A]):
    """A state, the step that led to it, and the statistics of the subtree below it.

    Args:
        state: The state.
        parent: The previous node; ``None`` for a root.
        action: The action that led to this node; ``None`` for a root.
        reward: Reward of the step to this node.
        prior: Score that the search's guide gave to the action before the step was taken.

    Attributes:
        depth: Number of steps from the root.
        children: The children, in the order in which they were tried.
        visits: Number of values backed up through this node.
        total: Sum of the backed-up values.
        best: Maximum of the backed-up values; minus infinity before the first.
        terminal: Whether the state is terminal.
        untried: Proposed actions that were not taken yet, each with its score; ``None`` before the actions were
            requested.
    """

    state: S
    _: KW_ONLY
    parent: Node[S, A] | None = None
    action: A | None = None
    reward: float = 0.0
    prior: float = 0.0
    depth: int = field(init=False, default=0)
    children: list[Node[S, A]] = field(init=False, default_factory=list)
    visits: int = field(init=False, default=0)
    total: float = field(init=False, default=0.0)
    best: float = field(init=False, default=float("-inf"))
    terminal: bool = field(init=False, default=False)
    untried: list[tuple[float, A]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Add the node to its parent's children."""
        if self.parent is not None:
            self.depth = self.parent.depth + 1
            self.parent.children.append(self)

    @property
    def taken(self) -> A:
        """The action that led to this node.

        Raises:
            ValueError: This node is the root.
        """
        if self.action is None:
            raise ValueError("The root of a tree has no action, because no action led to it.")
        return self.action

    @property
    def mean(self) -> float:
        """Mean of the backed-up values; 0 before the first."""
        return self.total / self.visits if self.visits else 0.0

    def record(self, value: float) -> None:
        """Add one backed-up value."""
        self.visits += 1
        self.total += value
        self.best = max(self.best, value)

    def path(self) -> tuple[Node[S, A], ...]:
        """Return the nodes from the root to this node, both included."""
        nodes: list[Node[S, A]] = []
        node: Node[S, A] | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return tuple(reversed(nodes))

    def walk(self) -> Iterator[Node[S, A]]:
        """Iterate over this node and all nodes below it, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def __repr__(self) -> str:
        """Return a short form for logs and debuggers, without the state, which may be long."""
        return f"<Node depth={self.depth} visits={self.visits} mean={self.mean:.3g} children={len(self.children)}>"
