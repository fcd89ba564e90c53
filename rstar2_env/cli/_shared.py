"""What several subcommands share: a progress bar, tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

    from rstar2_env.evaluation.summary import Estimate


def progress_bar(*, quiet: bool) -> Progress:
    """A bar on stderr that goes away when it is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet)


def print_table(title: str, rows: Mapping[str, str]) -> None:
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


def estimate_text(estimate: Estimate, *, percent: bool = False) -> str:
    """A value with its standard error: "0.973 ± 0.004", or in percent; "–" when nothing counts."""
    if estimate.value is None:
        return "–"
    scale, unit = (100, " %") if percent else (1, "")
    text = f"{estimate.value * scale:.{2 if percent else 3}f}"
    if estimate.error is not None:
        text += f" ± {estimate.error * scale:.{2 if percent else 3}f}"
    return text + unit


def tally_text(tally: Mapping[str, Any]) -> str:
    """Counts by name, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(tally.items(), key=lambda item: -item[1])) or "–"
