"""Sudoku grids with 4, 6 or 9 rows: rules, solver, random grids, puzzles with exactly one solution, answers.

A grid is a flat list in reading order, 0 for an empty cell. Not covered: variants with other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from rstar2_env.worlds.puzzle import UnreadableAnswerError, pick, shuffled
from rstar2_env.worlds.reading import plain

BOXES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
"""Number of rows and columns of a box, for each size of the grid."""

_SKIPPED = re.compile(r"\\(?:begin|end)\{[a-zA-Z]{1,16}\*?\}(?:\{[|clr ]*\})?|\\hline|\\\\|[\s,;|/&+_\-\[\](){}]+")


@cache
def units(size: int) -> tuple[tuple[int, ...], ...]:
    """The indices (from 0, in reading order) of the cells in each row, column and box."""
    rows, columns = BOXES[size]
    lines = [tuple(range(row * size, (row + 1) * size)) for row in range(size)]
    lines += [tuple(range(column, size * size, size)) for column in range(size)]
    for top in range(0, size, rows):
        for left in range(0, size, columns):
            lines.append(tuple((top + r) * size + left + c for r in range(rows) for c in range(columns)))
    return tuple(lines)


@cache
def peers(size: int) -> tuple[tuple[int, ...], ...]:
    """For each cell, the indices of the other cells in its row, column and box."""
    return tuple(
        tuple(sorted({other for unit in units(size) if cell in unit for other in unit} - {cell}))
        for cell in range(size * size)
    )


def obeys(grid: Sequence[int], givens: Sequence[int], size: int) -> bool:
    """Whether a full grid obeys the rules and contains the givens.

    Args:
        grid: The full grid, in reading order.
        givens: The puzzle, 0 for an empty cell.
        size: 4, 6 or 9.
    """
    everything = set(range(1, size + 1))
    kept = all(given in (0, digit) for given, digit in zip(givens, grid, strict=True))
    return kept and all({grid[cell] for cell in unit} == everything for unit in units(size))


def solutions(grid: Sequence[int], size: int, orders: Sequence[Sequence[int]] | None = None) -> Iterator[list[int]]:
    """Yield every solution of a puzzle.

    Args:
        grid: The puzzle, 0 for an empty cell.
        size: 4, 6 or 9.
        orders: For each cell, the order in which digits are tried; ascending by default.
    """
    allowed = _allowed(grid, size)
    if allowed is None:
        return
    for solved in _search(allowed, size, orders or [range(1, size + 1)] * (size * size)):
        yield [bit.bit_length() for bit in solved]


def has_other(grid: Sequence[int], solution: Sequence[int], cell: int, size: int) -> bool:
    """Whether the grid has a solution in which ``cell`` differs from the given solution.

    Args:
        grid: The puzzle, 0 for an empty cell.
        solution: A solution of the puzzle.
        cell: Index of the cell.
        size: 4, 6 or 9.
    """
    allowed = _allowed(grid, size)
    if allowed is None:
        return False
    left = allowed[cell] & ~(1 << (solution[cell] - 1))
    if not left:
        return False
    if left & (left - 1):
        allowed[cell] = left
    elif not _place(allowed, cell, left, size):
        return False
    return next(_search(allowed, size, [range(1, size + 1)] * (size * size)), None) is not None


def random_grid(size: int, rng: np.random.Generator) -> list[int]:
    """A full grid: a random first row, and the rest by a search that tries digits in random order."""
    orders = (np.argsort(rng.random((size * size, size)), axis=1) + 1).tolist()
    return next(solutions([*orders[0], *[0] * (size * size - size)], size, orders))


def dig(solution: Sequence[int], holes: int, size: int, rng: np.random.Generator) -> list[int] | None:
    """Empty ``holes`` cells of a full grid, skipping each cell whose removal would allow a second solution.

    Args:
        solution: A full grid, in reading order.
        holes: Number of cells to empty.
        size: 4, 6 or 9.
        rng: Draws the order in which cells are tried.

    Returns:
        The puzzle; ``None`` if fewer than ``holes`` cells could be emptied in this order.
    """
    grid = list(solution)
    cells = shuffled(rng, range(size * size))
    for tried, cell in enumerate(cells):
        if holes == 0:
            break
        if len(cells) - tried < holes:
            return None
        grid[cell] = 0
        if has_other(grid, solution, cell, size):
            grid[cell] = solution[cell]
        else:
            holes -= 1
    return grid if holes == 0 else None


def pattern(grid: Sequence[int], size: int) -> str:
    """A signature that two grids share if renaming digits, transposing, or both turns one grid into the other."""
    turned = [grid[row * size + column] for column in range(size) for row in range(size)]
    return min(_renamed(grid), _renamed(turned))


def written(grid: Sequence[int], size: int, between: str = "/") -> str:
    """The rows as text, one after the other.

    Args:
        grid: The grid, in reading order.
        size: 4, 6 or 9.
        between: Separator of the rows.
    """
    return between.join("".join(map(str, grid[row : row + size])) for row in range(0, size * size, size))


def read_grid(answer: str, size: int) -> list[int]:
    """Read a full grid, ignoring the layout characters between its digits.

    Raises:
        UnreadableAnswerError: The answer is not a full grid.
    """
    digits = _SKIPPED.sub("", plain(answer))
    if len(digits) != size * size or not set(digits) <= set("123456789"[:size]):
        raise UnreadableAnswerError(f"expected {size * size} digits from 1 to {size}, got {answer[:80]!r}")
    return [int(digit) for digit in digits]


def filled_at_random(givens: Sequence[int], size: int, rng: np.random.Generator) -> list[int]:
    """Fill every empty cell with a random digit that the givens of its row, column and box allow.

    Args:
        givens: The puzzle, 0 for an empty cell.
        size: 4, 6 or 9.
        rng: The generator of random numbers.
    """
    grid = list(givens)
    for cell, given in enumerate(givens):
        if not given:
            grid[cell] = pick(rng, sorted(set(range(1, size + 1)) - {givens[other] for other in peers(size)[cell]}))
    return grid


def _renamed(grid: Sequence[int]) -> str:
    names: dict[int, int] = {0: 0}
    return "".join(str(names.setdefault(digit, len(names))) for digit in grid)


def _allowed(grid: Sequence[int], size: int) -> list[int] | None:
    """Return each cell's possible digits as a bit mask (bit 0 for 1); ``None`` if the grid contradicts itself."""
    allowed = [(1 << size) - 1] * (size * size)
    placed = (_place(allowed, cell, 1 << (digit - 1), size) for cell, digit in enumerate(grid) if digit)
    return allowed if all(placed) else None


def _place(allowed: list[int], cell: int, bit: int, size: int) -> bool:
    """Set a cell to the digit of ``bit``, then set each cell with only one possible digit; change ``allowed`` in place.

    Return ``False`` if a cell is left without a possible digit.
    """
    allowed[cell], waiting = bit, [cell]
    if not bit:
        return False
    while waiting:
        settled = waiting.pop()
        bit = allowed[settled]
        for other in peers(size)[settled]:
            left = allowed[other]
            if left & bit:
                left &= ~bit
                if not left:
                    return False
                allowed[other] = left
                if not left & (left - 1):
                    waiting.append(other)
    return True


def _search(allowed: list[int], size: int, orders: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    best, fewest = -1, size + 1
    for cell, left in enumerate(allowed):
        if left & (left - 1):
            count = left.bit_count()
            if count < fewest:
                best, fewest = cell, count
                if count == 2:
                    break
    if best < 0:
        yield allowed
        return
    for digit in orders[best]:
        bit = 1 << (digit - 1)
        if allowed[best] & bit:
            trial = [*allowed]
            if _place(trial, best, bit, size):
                yield from _search(trial, size, orders)
