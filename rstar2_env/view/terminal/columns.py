"""Columns of a table in a terminal, printed or walked: what each shows of a row, and how wide it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        heading: Its heading.
        cell: What it shows of a row: one line, harmless.
        number: Whether it holds numbers, which stand to the right.
        least: Characters that it may be cut to where the terminal is narrow; 0 if it is never cut.
        spare: Whether it takes the room that the others leave, and is left out where that is too little.
    """

    heading: str
    cell: Callable[[Mapping[str, Any]], Text]
    number: bool = False
    least: int = 0
    spare: bool = False


def printed(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], title: str | None = None) -> Table:
    """A table to print, which folds what is too long."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        if column.number:
            table.add_column(column.heading, justify="right")
        else:
            table.add_column(column.heading, overflow="fold", no_wrap=not column.least)
    for row in rows:
        table.add_row(*(column.cell(row) for column in columns))
    return table


def fitted(columns: Sequence[Column], wanted: Sequence[int], width: int) -> tuple[list[int], int]:
    """Widths that fit, by the columns, 0 for one that is left out; and the characters between two of them.

    Where room is short, the widest give first, each down to its least.

    Args:
        columns: The columns.
        wanted: Characters that each would take; 0 where it has nothing to show.
        width: Characters of the terminal.
    """
    widths = [0 if column.spare else one for column, one in zip(columns, wanted, strict=True)]
    gap = 2 if sum(one + 2 for one in widths if one) <= width else 1

    def left() -> int:
        return width - sum(one + gap for one in widths if one)

    while left() < 0:
        cut = [at for at, column in enumerate(columns) if column.least and widths[at] > column.least]
        if not cut:
            break
        widths[max(cut, key=lambda at: widths[at])] -= 1
    for at, column in enumerate(columns):
        if column.spare and left() - gap >= column.least:
            widths[at] = min(wanted[at], left() - gap)
    return widths, gap
