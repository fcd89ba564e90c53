"""Tables as every command prints them: within the width of the terminal, cutting nothing that must be typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def print_figures(title: str, rows: Mapping[str, str]) -> None:
    """Print names and values."""
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
    """Print names, each with what it is; a name is never cut.

    Args:
        rows: What there is.
        cut: End each text with the line, at a word, so that there is one line a name; else it goes on below itself.
    """
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    column = max(map(len, rows), default=0) + 2
    for name, what in rows.items():
        room = max(20, width - column)
        lines = [textwrap.shorten(what, room, placeholder=" …")] if cut else textwrap.wrap(what, room) or [""]
        print(f"{name:<{column}}{lines[0]}".rstrip())
        for line in lines[1:]:
            print(f"{'':<{column}}{line}")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table; what does not fit goes on in the next line of its cell.

    Args:
        headings: One for each column.
        rows: A cell for each column.
        title: Above the table.
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
    """Print sentences, wrapped to the terminal."""
    import shutil
    import textwrap

    print(textwrap.fill(text, max(40, shutil.get_terminal_size().columns), break_on_hyphens=False))
