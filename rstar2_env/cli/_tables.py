"""Tables for all commands: they fit the terminal's width, and never shorten a name that the user may have to type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rstar2_env.cli._printing import say
from rstar2_env.core.secret import hidden
from rstar2_env.core.text import harmless


def print_figures(title: str, rows: Mapping[str, str]) -> None:
    """Print a table of names and values, with a title."""
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(Column(overflow="fold"), Column(overflow="fold"), title=_cell(title), show_header=False)
    for row in rows.items():
        table.add_row(*map(_cell, row))
    Console().print(table)


def print_list(rows: Mapping[str, str], *, cut: bool = False) -> None:
    """Print names with their descriptions; names are never shortened.

    Args:
        rows: Description of each name.
        cut: Whether each description is shortened to one line, at a word boundary, instead of wrapped.
    """
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    column = max(map(len, rows), default=0) + 2
    for name, text in rows.items():
        room = max(20, width - column)
        lines = [textwrap.shorten(text, room, placeholder=" …")] if cut else textwrap.wrap(text, room) or [""]
        say(f"{name:<{column}}{lines[0]}".rstrip())
        for line in lines[1:]:
            say(f"{'':<{column}}{line}")


def _plain(text: str) -> str:
    """Return a docstring's text with single backquotes around code, as messages have them."""
    return text.replace("``", "`")


def print_named(
    named: Mapping[str, Any], options_of: Callable[[Any], Mapping[str, Any]], *, as_json: bool, whole: bool = False
) -> None:
    """Print entries of a registry, each with the first line of its docstring and its options.

    Args:
        named: The entries: classes or functions.
        options_of: Function that returns the options of an entry, with their defaults.
        as_json: Whether to print one JSON object instead of text.
        whole: Whether to print the whole docstring instead of its first line.
    """
    import inspect
    import json

    summaries = {name: _plain((inspect.getdoc(entry) or "").split("\n")[0]) for name, entry in named.items()}
    options = {name: options_of(entry) for name, entry in named.items()}
    if as_json:
        say(json.dumps({name: {"what": summaries[name], "options": list(options[name])} for name in named}))
        return
    rows = {}
    for name, defaults in options.items():
        shown = [
            option if default in (None, inspect.Parameter.empty) else f"{option}={default}"
            for option, default in defaults.items()
        ]
        listed = f"Options: {', '.join(shown)}." if shown else ""
        if whole:
            say(f"{name}\n\n{_plain(inspect.getdoc(named[name]) or '')}\n")
            print_text(listed)
        else:
            rows[name] = f"{summaries[name]} {listed}".rstrip()
    print_list(rows)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table; text that does not fit is wrapped within its cell.

    Args:
        headings: Heading of each column.
        rows: Rows with a cell for each column.
        title: Title above the table.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=_cell(title) if title else None)
    for number, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=not number)
    for row in rows:
        table.add_row(*map(_cell, row))
    Console().print(table)


def _cell(text: str) -> str:
    """Return a text that rich prints unchanged; characters that a terminal would interpret are escaped."""
    from rich.markup import escape

    return escape(harmless(hidden(text)))


def one_line(value: object, longest: int = 60) -> str:
    """Return a value as one line of text, shortened to ``longest`` characters; a dash for ``None``."""
    text = "–" if value is None else " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def print_text(text: str, indent: str = "") -> None:
    """Print a paragraph, wrapped to the width of the terminal.

    Args:
        text: The paragraph; white space before its first word is kept.
        indent: Indentation of all lines but the first.
    """
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    say(textwrap.fill(text, width, break_on_hyphens=False, subsequent_indent=indent))
