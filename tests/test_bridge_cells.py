"""Each cell of the tables of what a bridge transfers names a test that exists."""

from __future__ import annotations

import ast
import functools
import re

import pytest
from bridge_cells import CELLS
from places import DOCS, ROOT

PAGES = ("bridge-transfers.md", "bridge-harbor.md", "bridge-trajectories.md")


def tables(page: str) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Tables of a page, by the page and the first two headings: the cells of each row after the first, by the first.

    Tables of results have a test of their own.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    rows: dict[str, list[str]] | None = None
    text = (DOCS / page).read_text(encoding="utf-8")
    for line in re.sub(r"<!-- table .*?<!-- /table -->", "", text, flags=re.DOTALL).splitlines():
        if not line.startswith("|"):
            rows = None
            continue
        first, *cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        if rows is None:
            rows = found[page, f"{first} | {cells[0]}"] = {}
        elif set(first) != {"-"}:
            rows[first] = cells
    return found


@functools.cache
def names_in(file: str) -> frozenset[str]:
    """Names of the tests of a file; of those in a class, the names alone and after the class's name."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            names |= {*inner, *(f"{node.name}.{name}" for name in inner)}
    return frozenset(name for name in names if name.rpartition(".")[2].startswith("test_"))


@pytest.mark.parametrize("page", PAGES)
def test_every_cell_of_a_bridge_names_a_test(page: str) -> None:
    written = tables(page)
    named = {table: rows for table, rows in CELLS.items() if table[0] == page}
    assert set(written) == set(named)
    for table, rows in written.items():
        assert set(rows) == set(named[table]), table
        for row, cells in rows.items():
            shown = named[table][row]
            shown = shown * len(cells) if len(shown) == 1 else shown
            assert [bool(cell) for cell in cells] == [bool(test) for test in shown], (table, row)


@pytest.mark.parametrize("table", CELLS, ids=" ".join)
def test_the_named_tests_exist(table: tuple[str, str]) -> None:
    for row, shown in CELLS[table].items():
        for file, _, name in (one.partition("::") for one in shown if one):
            assert name in names_in(file), f"{row}: there is no {name} in tests/{file}"
