"""Worlds to search: a tree that is written down, and towers of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rstar2_env.search import BudgetSpentError

Path = tuple[int, ...]


@dataclass
class WrittenTree:
    """A tree of rewards by path; a path that no other begins with is an end."""

    rewards: Mapping[Path, float]
    looks: Mapping[Path, float] = field(default_factory=dict)
    most: int = 1 << 30
    steps: int = 0

    def init_state(self) -> Path:
        return ()

    def step(self, state: Path, action: int) -> Path:
        if self.steps >= self.most:
            raise BudgetSpentError
        self.steps += 1
        return (*state, action)

    def is_terminal(self, state: Path) -> bool:
        return not self.get_actions(state)

    def get_actions(self, state: Path) -> Sequence[int]:
        return sorted(path[-1] for path in self.rewards if path[:-1] == state)

    def fast_reward(self, state: Path, action: int) -> float:
        return self.looks.get((*state, action), 0.0)

    def reward(self, state: Path, action: int, after: Path) -> float:
        return self.rewards[after]

    def ends(self) -> dict[Path, float]:
        """Every end, with the rewards on the way to it."""
        return {
            path: sum(self.rewards[path[: place + 1]] for place in range(len(path)))
            for path in self.rewards
            if self.is_terminal(path)
        }


Stacks = tuple[tuple[str, ...], ...]


@dataclass
class Blocks:
    """Blocks in towers, of which the topmost may be moved onto another or to the table: RAP's planning task in small.

    A step pays the blocks that it puts onto the right one. In Sussman's problem (c stands on a, b beside them, and the
    goal is a on b on c) what pays at once is to put b onto c, which buries a: greedy search stays there.
    """

    start: Stacks
    goal: Stacks

    def init_state(self) -> Stacks:
        return self.start

    def step(self, state: Stacks, action: tuple[str, str]) -> Stacks:
        block, onto = action
        left = [tower[:-1] if tower[-1] == block else tower for tower in state]
        towers = [(*tower, block) if tower and tower[-1] == onto else tower for tower in left]
        if onto == "table":
            towers.append((block,))
        return tuple(sorted(tower for tower in towers if tower))

    def is_terminal(self, state: Stacks) -> bool:
        return state == tuple(sorted(self.goal))

    def get_actions(self, state: Stacks) -> list[tuple[str, str]]:
        tops = [tower[-1] for tower in state]
        table = {tower[-1] for tower in state if len(tower) == 1}
        return [
            (top, onto)
            for top in tops
            for onto in (*tops, "table")
            if onto != top and not (onto == "table" and top in table)
        ]

    def fast_reward(self, state: Stacks, action: tuple[str, str]) -> float:
        return 0.0

    def reward(self, state: Stacks, action: tuple[str, str], after: Stacks) -> float:
        return float(self.is_terminal(after)) + 0.1 * (self._right(after) - self._right(state))

    def _right(self, state: Stacks) -> int:
        wanted = {pair for tower in self.goal for pair in pairwise(tower)}
        return sum(pair in wanted for tower in state for pair in pairwise(tower))
