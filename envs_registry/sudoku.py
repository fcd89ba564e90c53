"""``rstar2/Sudoku-v0``: fill a grid of 4, 6 or 9 that has exactly one solution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rstar2_env.errors import ConfigurationError
from rstar2_env.problems import Draft, split_of
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.puzzle import Puzzle, UnreadableAnswerError
from rstar2_env.worlds.reading import plain
from rstar2_env.worlds.sudoku import BOXES, dig, obeys, pattern, peers, random_grid

_HOLES = {4: (8, 11), 6: (18, 24), 9: (40, 52)}
"""By the grid's size: cells that are empty by default, and at most."""

_SKIPPED = re.compile(r"\\(?:begin|end)\{[a-zA-Z]{1,16}\*?\}(?:\{[|clr ]*\})?|\\hline|\\\\|[\s,;|/&+_\-\[\](){}]+")

_QUESTION = """\
Fill the empty cells (.) of this Sudoku with digits from 1 to {size}, so that every row, every column and every box of \
{rows} rows and {columns} columns holds each digit once:
{grid}
Answer with the whole grid, the rows from top to bottom joined by /, like {example}/..."""


@dataclass(frozen=True)
class Sudoku(Puzzle):
    """Sudoku with exactly one solution.

    Args:
        size: 4 (boxes of 2 rows and 2 columns), 6 (2 and 3) or 9 (3 and 3).
        holes: Empty cells; 0 means what fits the size: 8, 18 or 40.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "sudoku"
    size: int = 4
    holes: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size not in BOXES:
            raise ConfigurationError(f"size of {self.name} must be 4, 6 or 9, not {self.size!r}.")
        self.require("holes", 0, _HOLES[self.size][1])

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw a full grid, and empty cells as long as its solution stays the only one."""
        solution = random_grid(self.size, rng)
        # The solution decides the split, so that no puzzle of the test set was a training puzzle with other holes.
        # There are too few grids of 4 for that; there the givens do.
        key = pattern(solution, self.size)
        if self.size > 4 and split_of(key) != split:
            return None
        grid = dig(solution, self.holes or _HOLES[self.size][0], self.size, rng)
        if grid is None:
            return None
        rows, columns = BOXES[self.size]
        question = _QUESTION.format(
            size=self.size,
            rows=rows,
            columns=columns,
            grid=_rows(grid, self.size, "\n").replace("0", "."),
            example="".join(map(str, range(1, self.size + 1))),
        )
        meta = {"size": self.size, "grid": grid, "holes": grid.count(0)}
        key = key if self.size > 4 else pattern(grid, self.size)
        return Draft(question, _rows(solution, self.size, "/"), key, meta)

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether the grid is full, keeps the givens and obeys the rules."""
        size = meta["size"]
        digits = _SKIPPED.sub("", plain(answer))
        if len(digits) != size * size or not set(digits) <= set("123456789"[:size]):
            raise UnreadableAnswerError(f"expected {size * size} digits from 1 to {size}, got {answer[:80]!r}")
        return obeys([int(digit) for digit in digits], meta["grid"], size)

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """In every empty cell a random digit of those that its row, column and box leave open."""
        size, grid = meta["size"], list(meta["grid"])
        for cell, given in enumerate(meta["grid"]):
            if not given:
                open_digits = sorted(set(range(1, size + 1)) - {meta["grid"][other] for other in peers(size)[cell]})
                grid[cell] = open_digits[int(rng.integers(len(open_digits)))]
        return _rows(grid, size, "/")


def _rows(grid: Sequence[int], size: int, between: str) -> str:
    return between.join("".join(map(str, grid[row : row + size])) for row in range(0, size * size, size))


class SudokuEnv(PuzzleEnv):
    r"""Fill a Sudoku of 4, 6 or 9 that has exactly one solution.

    ## Puzzle
    A full grid is drawn by a random search, then cells are emptied in random order wherever a solver finds no second
    solution, until there are ``holes``. Puzzles of 6 and 9 go to a split by their solution, those of 4 (there are
    288 full grids) by their givens.

    ## Answer
    The whole grid in reading order. Rows may be joined by ``/`` (as in the reference answer), stand on lines, or be a
    LaTeX array or a list of lists: white space and ``, ; | / & + - _ \\ [ ] ( )`` between digits do not matter. Any
    other character makes it wrong.

    ## Difficulty
    ``size=4`` (6, 9), ``holes=0`` for what fits the size (8, 18, 40); at most 11, 24, 52.

    ## Random baseline
    0.15: in every empty cell a random digit of those that the givens of its row, column and box leave open. 0.0005 at
    size 6, below 0.0001 at 9.

    ## Version history
    v0: the first.
    """

    puzzle = Sudoku
    random_baseline = 0.15


register("rstar2/Sudoku-v0", SudokuEnv)
