"""rstar2/Sudoku-v0: one solution by a solver written otherwise here, and the whole grid in any documented layout."""

import json

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.sudoku import Sudoku
from rstar2_env.worlds import UnreadableAnswerError
from rstar2_env.worlds.sudoku import BOXES, has_other, obeys, pattern, random_grid, solutions

SOLUTION = "1234/3412/2143/4321"
META = {"size": 4, "grid": [1, 2, 3, 4, 3, 4, 1, 2, 0, 1, 4, 3, 4, 3, 0, 1]}
HARD = "4.....8.5.3..........7......2.....6.....8.4......1.......6.3.7.5..2.....1.4......"
"""A well-known puzzle with 17 givens, which needs real search."""


def brute_force(grid, size):
    """Every solution, cell after cell with no cleverness."""
    if 0 not in grid:
        return [grid]
    cell = grid.index(0)
    rows, columns = BOXES[size]
    row, column = divmod(cell, size)
    seen = {
        digit
        for other, digit in enumerate(grid)
        if other // size == row
        or other % size == column
        or (other // size // rows, other % size // columns) == (row // rows, column // columns)
    }
    found = []
    for digit in range(1, size + 1):
        if digit not in seen:
            found += brute_force([*grid[:cell], digit, *grid[cell + 1 :]], size)
    return found


def flat(text):
    return [int(digit) for digit in text.replace("/", "")]


@pytest.mark.parametrize(
    ("size", "holes", "count"), [(4, 0, 30), (4, 11, 20), (6, 0, 10), (6, 24, 4), (9, 0, 3), (9, 52, 1)]
)
def test_a_puzzle_has_its_holes_and_exactly_one_solution(size, holes, count):
    family = Sudoku(size, holes)
    for split in ("train", "test"):
        for index in range(count):
            problem = family.source(split)[index]
            grid = problem.meta["grid"]
            assert grid.count(0) == problem.meta["holes"] == (holes or {4: 8, 6: 18, 9: 40}[size])
            assert brute_force(grid, size) == [flat(problem.answer)]
            rows = ["".join(map(str, grid[at : at + size])).replace("0", ".") for at in range(0, size * size, size)]
            assert "\n".join(rows) in problem.question


def test_the_solver_counts_right():
    assert len(list(solutions([0] * 16, 4))) == 288
    assert len(list(solutions([1, 2, 3, 4, *[0] * 12], 4))) == 12
    assert list(solutions([1, 1, *[0] * 14], 4)) == []
    hard = [0 if mark == "." else int(mark) for mark in HARD]
    (solved,) = solutions(hard, 9)
    assert obeys(solved, hard, 9)


def test_another_solution_is_seen_where_there_is_one():
    for grid in (META["grid"], [1, 2, 3, 4, 3, 4, 1, 2, *[0] * 8]):
        solution = next(solutions(grid, 4))
        for cell in (cell for cell in range(16) if not grid[cell]):
            others = [found for found in brute_force(list(grid), 4) if found[cell] != solution[cell]]
            assert has_other(grid, solution, cell, 4) == bool(others)


@pytest.mark.parametrize("size", [4, 6, 9])
def test_random_grids_obey_and_differ(size):
    import numpy as np

    rng = np.random.default_rng(0)
    grids = [random_grid(size, rng) for _ in range(100)]
    assert all(obeys(grid, [0] * size * size, size) for grid in grids)
    assert len({tuple(grid) for grid in grids}) >= (70 if size == 4 else 100)


@pytest.mark.parametrize(
    "answer",
    [
        SOLUTION,
        "1234341221434321",
        "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1",
        "12|34\n34|12\n--+--\n21|43\n43|21",
        "[[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]]",
        "\\begin{bmatrix}1&2&3&4\\\\3&4&1&2\\\\2&1&4&3\\\\4&3&2&1\\end{bmatrix}",
        "\\begin{array}{|cc|cc|}\\hline 1&2&3&4\\\\3&4&1&2\\\\ \\hline 2&1&4&3\\\\4&3&2&1\\\\\\hline\\end{array}",
        "1234; 3412; 2143; 4321",
        "\\text{1234/3412/2143/4321}",
    ],
)
def test_the_layout_does_not_matter(answer):
    assert Sudoku().solves(META, answer)


@pytest.mark.parametrize("answer", ["1234/3412/4321/2143", "2134/3412/1243/4321", "1111/1111/1111/1111"])
def test_broken_rules_or_givens_do(answer):
    assert not Sudoku().solves(META, answer)


def test_any_solution_counts_where_a_puzzle_from_elsewhere_has_several():
    grid = [1, 2, 3, 4, 3, 4, 1, 2, *[0] * 8]
    assert sum(Sudoku().solves({"size": 4, "grid": grid}, json.dumps(found)) for found in brute_force(grid, 4)) > 1


@pytest.mark.parametrize(
    "answer", ["", "1234", SOLUTION + "1", SOLUTION[:-1] + "5", SOLUTION[:-1] + ".", SOLUTION[:-1] + "x", "1234/..."]
)
def test_what_is_no_full_grid_is_unreadable(answer):
    with pytest.raises(UnreadableAnswerError):
        Sudoku().solves(META, answer)


def test_renamed_digits_and_a_transposed_grid_are_the_same_pattern():
    grid = META["grid"]
    swapped = [{0: 0, 1: 3, 2: 1, 3: 4, 4: 2}[digit] for digit in grid]
    turned = [grid[row * 4 + column] for column in range(4) for row in range(4)]
    assert pattern(grid, 4) == pattern(swapped, 4) == pattern(turned, 4)
    assert pattern(grid, 4) != pattern([0, *grid[1:]], 4)


@pytest.mark.parametrize(
    ("knobs", "fault"),
    [({"size": 5}, "one of 4, 6, 9, not 5"), ({"size": [4]}, r"9, not \[4\]"), ({"holes": 12}, "0 to 11")],
)
def test_knobs_out_of_range_are_refused(knobs, fault):
    with pytest.raises(ConfigurationError, match=fault):
        Sudoku(**knobs)
