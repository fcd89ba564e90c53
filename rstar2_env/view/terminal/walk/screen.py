"""``RunScreen``: base class of the screens: a heading line, navigation, a pop-up of the key bindings, live updates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Footer, Static

from rstar2_env.view.answers import Answers
from rstar2_env.view.terminal.sanitize import one_line, safe_text
from rstar2_env.view.terminal.walk.windows import PROBLEMS, KeysWindow, error_text

ResultT = TypeVar("ResultT")


class RunScreen(Screen[ScreenResultType], inherit_bindings=False):
    """Base class of screens about one run or about all runs.

    Args:
        answers: Answers the queries.
        run: Name of the run; empty for all runs.
    """

    MORE: ClassVar[tuple[str, ...]] = ()
    """Additional lines below the list of key bindings in the pop-up."""

    def __init__(self, answers: Answers, run: str = "") -> None:
        super().__init__()
        self.answers, self.run_name = answers, run

    def compose(self) -> ComposeResult:
        """Create the heading line, the body, and the footer with the key bindings."""
        yield Static(markup=False, id="head")
        yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> Iterable[Widget]:
        """Create the widgets between heading line and footer."""
        raise NotImplementedError

    def update_content(self) -> None:
        """Show the current content of the run."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """Show changes that were made while another screen was visible."""
        self.update_content()

    def set_head(self, *names: str, more: str = "", error: str = "") -> None:
        """Set the text of the heading line.

        Args:
            *names: Names of the screens from the first screen to this one.
            more: Text after the names, such as a number of episodes.
            error: Error message; empty if there is no error.
        """
        text = Text(" › ").join([Text("runs"), *(safe_text(one_line(name, 60), "bold") for name in names)])
        text.append(f"   {more}" if more else "", "dim")
        text.append(f"   {one_line(error, 500)}" if error else "", "bold red")
        self.query_one("#head", Static).update(text)

    async def run_query(self, query: Callable[[], ResultT]) -> ResultT | str:
        """Run a query in a thread; return the result, or the message of the error."""
        try:
            return await asyncio.to_thread(query)
        except PROBLEMS as error:
            return error_text(error)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the action "back" on the first screen."""
        return not (action == "back" and self.app.screen_stack[1:2] == [self])

    def action_back(self) -> None:
        """Return to the previous screen."""
        self.dismiss()

    def action_keys(self) -> None:
        """Show the window that lists the key bindings of this screen."""
        table = Table.grid(padding=(0, 2))
        listed: set[tuple[str, str]] = set()
        for bound in self.active_bindings.values():
            key = bound.binding
            if bound.enabled and key.description and not key.system and (key.action, key.description) not in listed:
                listed.add((key.action, key.description))
                table.add_row(Text(self.app.get_key_display(key), "bold"), Text(key.description))
        self.app.push_screen(KeysWindow(Group(table, *(Text(f"\n{line}") for line in self.MORE))))


def reading(row: dict[str, Any]) -> str:
    """Return the reading progress of a run as text; empty when the run has been read completely.

    Args:
        row: Result of ``Answers.row``.
    """
    if row["indexing"]:
        return f"reading: {row['indexing']['done'] / max(1, row['indexing']['total']):.0%}"
    return f"{row['searchable']['done']:,} episodes searchable so far" if row["searchable"] else ""
