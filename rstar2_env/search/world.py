"""The protocols of a search: a world model that performs actions, and a guide that proposes and rates them.

The two protocols and the names of their methods come from LLM Reasoners (arXiv 2404.05221, section 3): a world model
returns the next state, a search configuration (here called the guide) proposes and rates actions, and a search
algorithm depends on neither. Covered: the protocols and the result of a search. Not covered: the algorithms (``Beam``,
``DepthFirst``, ``TreeSearch``) and the origin of states: a language model's text, a puzzle, an environment.
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
    """Protocol of the world that a search explores. A step may be random or costly, so it is taken only once."""

    def init_state(self) -> S:
        """Return the initial state."""
        ...

    def step(self, state: S, action: A_contra) -> S:
        """Return the state after an action."""
        ...

    def is_terminal(self, state: S) -> bool:
        """Return whether a state is terminal."""
        ...


class SearchConfig(Protocol[S_contra, A]):
    """Protocol of the guide of a search, which proposes the actions to try in a state, and rates them."""

    def get_actions(self, state: S_contra) -> Sequence[A]:
        """Return the actions to try in a state; an empty list ends the branch."""
        ...

    def fast_reward(self, state: S_contra, action: A) -> float:
        """Return the score of an action before it is taken: a cheap estimate, or 0 for every action."""
        ...

    def reward(self, state: S_contra, action: A, after: S_contra) -> float:
        """Return the reward of a step that was taken."""
        ...


@runtime_checkable
class RatesStates(Protocol[S_contra]):
    """A guide with a value model, which estimates the return from a state."""

    def value(self, state: S_contra) -> float:
        """Return the estimated return from a state; a search uses it instead of a simulation from the state."""
        ...


class BudgetSpentError(Exception):
    """Raised by a world or a guide whose budget is exhausted; the search returns the best path so far."""


@dataclass(frozen=True, slots=True)
class Found(Generic[S, A]):
    """The result of a search.

    Attributes:
        path: The best path, from the root to its last node; only the root if there was no action to try.
        reward: The discounted sum of the path's rewards.
        root: The root of the whole tree.
        steps: Number of steps that the world took: the cost of the search.
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
    """Protocol of a search algorithm."""

    def __call__(self, world: WorldModel[S, A], guide: SearchConfig[S, A]) -> Found[S, A]:
        """Search a world from its first state.

        Args:
            world: The world model.
            guide: The guide, which proposes and rates actions.
        """
        ...
