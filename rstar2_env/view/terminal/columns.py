"""``TableColumn``: a column of the tables in a terminal, for printed and interactive tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table in a terminal.

    Attributes:
        heading: Heading of the column.
        cell: Function that returns the cell of a row: one line of text without control characters.
        number: Whether the cells are numbers, which are right-aligned.
        least: Minimum width on a narrow terminal; 0 if the column is never cut.
        spare: Whether the column uses only the width that other columns leave, and is hidden if this width is less
            than ``least``.
    """

    heading: str
    cell: Callable[[Mapping[str, Any]], Text]
    number: bool = False
    least: int = 0
    spare: bool = False


def printable_table(
    columns: Sequence[TableColumn], rows: Sequence[Mapping[str, Any]], title: str | None = None
) -> Table:
    """Build a table for printing; long cells are wrapped."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        if column.number:
            table.add_column(column.heading, justify="right")
        else:
            table.add_column(column.heading, overflow="fold", no_wrap=not column.least)
    for row in rows:
        table.add_row(*(column.cell(row) for column in columns))
    return table


def fit_widths(columns: Sequence[TableColumn], wanted: Sequence[int], width: int) -> tuple[list[int], int]:
    """Return column widths that fit the terminal (0 for a hidden column), and the gap between columns.

    If space is short, the widest columns are cut first, down to their minimum widths.

    Args:
        columns: Columns of the table, in order.
        wanted: Preferred width of each column; 0 if the column is empty.
        width: Width of the terminal in characters.
    """
    widths = [0 if column.spare else preferred for column, preferred in zip(columns, wanted, strict=True)]
    gap = 2 if sum(each + 2 for each in widths if each) <= width else 1

    def left() -> int:
        return width - sum(each + gap for each in widths if each)

    while left() < 0:
        cut = [at for at, column in enumerate(columns) if column.least and widths[at] > column.least]
        if not cut:
            break
        widths[max(cut, key=lambda at: widths[at])] -= 1
    for at, column in enumerate(columns):
        if column.spare and left() - gap >= column.least:
            widths[at] = min(wanted[at], left() - gap)
    return widths, gap
