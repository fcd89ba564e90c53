"""``rstar2/Sudoku-v0``: fill a Sudoku grid of size 4, 6 or 9 that has exactly one solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, knob, register, split_of
from rstar2_env.worlds.sudoku import BOXES, dig, filled_at_random, obeys, pattern, random_grid, read_grid, written

_HOLES = {4: (8, 11), 6: (18, 24), 9: (40, 52)}
"""For each size of grid, the default and the maximum number of empty cells."""

_QUESTION = """\
Fill the empty cells (.) of this Sudoku with digits from 1 to {size}, so that every row, every column and every box of \
{rows} rows and {columns} columns holds each digit once:
{grid}
Answer with the whole grid, the rows from top to bottom joined by /, like {example}/..."""


@dataclass(frozen=True)
class Sudoku(Puzzle):
    r"""Fill a Sudoku of size 4, 6 or 9 that has exactly one solution.

    ## Puzzle
    A full grid is drawn by a random search. Then cells are emptied in random order, as long as a solver finds no second
    solution, until ``holes`` cells are empty. The split of a puzzle of size 6 or 9 depends on its solution. The split
    of a puzzle of size 4 depends on its givens, because only 288 full grids exist.

    ## Answer
    The whole grid in reading order. Rows may be joined by ``/`` (as in the reference answer) or by line breaks, or form
    a LaTeX array or a list of lists: white space and ``, ; | / & + - _ \\ [ ] ( )`` between digits are ignored. Any
    other character makes the answer wrong.

    ## Difficulty
    ``size=4`` (4, 6 or 9), ``holes=0``, the number of empty cells; 0 means 8, 18 or 40, depending on the size. At
    most 11 (size 4), 24 (size 6) or 52 (size 9) cells can be empty.

    ## Random baseline
    0.15: the player fills every empty cell with a random digit that the givens of its row, column and box allow.
    At larger sizes, the random player hardly ever fills a grid correctly.
    """

    name = "sudoku"
    random_baseline = 0.15
    size: int = knob(4, choices=(4, 6, 9))
    holes: int = knob(0, 0, 52)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("holes", 0, _HOLES[self.size][1])

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw a full grid once, and clear cells in it while the solution stays unique.

        The result is ``None`` if too few cells can be cleared, or if the grid belongs to a split other than ``split``.
        """
        solution, size, (rows, columns) = random_grid(self.size, rng), self.size, BOXES[self.size]
        # The solution decides the split, so that no test puzzle is a training puzzle with other holes. For size 4 there
        # are too few grids, so the givens decide.
        key = pattern(solution, size)
        if size > 4 and split_of(key) != split:
            return None
        if (grid := dig(solution, self.holes or _HOLES[size][0], size, rng)) is None:
            return None
        cells, example = written(grid, size, "\n").replace("0", "."), "123456789"[:size]
        question = _QUESTION.format(size=size, rows=rows, columns=columns, grid=cells, example=example)
        meta = {"size": size, "grid": grid, "holes": grid.count(0)}
        return Draft(question, written(solution, size), key if size > 4 else pattern(grid, size), meta)

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether the grid is full, keeps the givens and obeys the rules."""
        return obeys(read_grid(answer, meta["size"]), meta["grid"], meta["size"])

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return a grid with random digits in the empty cells, among those that row, column and box allow."""
        return written(filled_at_random(meta["grid"], meta["size"], rng), meta["size"])


register("rstar2/Sudoku-v0", Sudoku)
