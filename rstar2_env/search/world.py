"""What is searched: a world that steps, and the guide that proposes actions and rates them.

The two protocols, and the names of their methods, are those of LLM Reasoners (arXiv 2404.05221, section 3): a world
model says what a state becomes, a search configuration says what may be tried and how good it was, and a search
algorithm knows neither. Covered: the protocols, and what a search returns. Not covered: the algorithms (``Beam``,
``DepthFirst``, ``TreeSearch``), and where states come from: text of a language model, a puzzle, an environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from .tree import Node

S = TypeVar("S")
A = TypeVar("A")
S_contra = TypeVar("S_contra", contravariant=True)
A_contra = TypeVar("A_contra", contravariant=True)


class WorldModel(Protocol[S, A_contra]):
    """Says what becomes of a state. Steps may draw or ask a model; a search takes each of them once."""

    def init_state(self) -> S:
        """The state where the search begins."""
        ...

    def step(self, state: S, action: A_contra) -> S:
        """The state after an action."""
        ...

    def is_terminal(self, state: S) -> bool:
        """Whether nothing follows a state."""
        ...


class SearchConfig(Protocol[S_contra, A]):
    """Says what may be tried, and how good it is."""

    def get_actions(self, state: S_contra) -> Sequence[A]:
        """The actions to try in a state; none ends that branch."""
        ...

    def fast_reward(self, state: S_contra, action: A) -> float:
        """How good an action looks before it is taken; cheap, or 0 for every action."""
        ...

    def reward(self, state: S_contra, action: A, after: S_contra) -> float:
        """How good a step was, now that its outcome is known."""
        ...


@runtime_checkable
class RatesStates(Protocol[S_contra]):
    """A guide with a value model: what can still be earned from a state on."""

    def value(self, state: S_contra) -> float:
        """The value of a state that was not searched further."""
        ...


class BudgetSpentError(Exception):
    """Raised by a world or a guide that may spend no more; the search ends with the best that it has."""


@dataclass(frozen=True, slots=True)
class Found(Generic[S, A]):
    """What a search came to.

    Attributes:
        path: The best path, from the root to its last node; the root alone when there was nothing to try.
        reward: The rewards of its steps, added up, with the discount of the search.
        root: The whole tree.
        steps: How often the world stepped: the price of the search.
        ended: Whether the path ends in a terminal state.
    """

    path: tuple[Node[S, A], ...]
    reward: float
    root: Node[S, A]
    steps: int
    ended: bool

    @property
    def state(self) -> S:
        """The state at the end of the path."""
        return self.path[-1].state

    @property
    def actions(self) -> list[A]:
        """The actions of the path, in order."""
        return [node.taken for node in self.path[1:]]


class Search(Protocol):
    """A search algorithm."""

    def __call__(self, world: WorldModel[S, A], guide: SearchConfig[S, A]) -> Found[S, A]:
        """Search a world from its first state.

        Args:
            world: Says what becomes of a state.
            guide: Says what to try, and how good it is.
        """
        ...
