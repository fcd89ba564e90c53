"""Tables of all commands: they fit the width of the terminal and never cut a name that the user may have to type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def print_figures(title: str, rows: Mapping[str, str]) -> None:
    """Print a table of names and values."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(escape(name), escape(value))
    Console().print(table)


def print_list(rows: Mapping[str, str], *, cut: bool = False) -> None:
    """Print names with their descriptions; a name is never cut.

    Args:
        rows: Description of each name.
        cut: Shorten each description to one line, at a word boundary, instead of wrapping it.
    """
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    column = max(map(len, rows), default=0) + 2
    for name, text in rows.items():
        room = max(20, width - column)
        lines = [textwrap.shorten(text, room, placeholder=" …")] if cut else textwrap.wrap(text, room) or [""]
        print(f"{name:<{column}}{lines[0]}".rstrip())
        for line in lines[1:]:
            print(f"{'':<{column}}{line}")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table; text that does not fit is wrapped within its cell.

    Args:
        headings: Heading of each column.
        rows: Rows with a cell for each column.
        title: Title above the table.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title) if title else None)
    for number, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=not number)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def print_text(text: str) -> None:
    """Print a paragraph, wrapped to the width of the terminal."""
    import shutil
    import textwrap

    print(textwrap.fill(text, max(40, shutil.get_terminal_size().columns), break_on_hyphens=False))
