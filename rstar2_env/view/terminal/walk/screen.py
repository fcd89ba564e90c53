"""``RunScreen``: what the screens have in common: a head, the way back, the keys, and following the runs."""

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
from rstar2_env.view.terminal.harmless import one_line, shown
from rstar2_env.view.terminal.walk.asking import PROBLEMS, Keys, told

Found = TypeVar("Found")


class RunScreen(Screen[ScreenResultType], inherit_bindings=False):
    """A screen about a run, or about all.

    Args:
        answers: What is known of the runs.
        run: The run's name; empty for all.
    """

    MORE: ClassVar[tuple[str, ...]] = ()
    """What the list of keys says below them."""

    def __init__(self, answers: Answers, run: str = "") -> None:
        super().__init__()
        self.answers, self.run_name = answers, run

    def compose(self) -> ComposeResult:
        """The head, what the screen is about, the keys."""
        yield Static(markup=False, id="head")
        yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> Iterable[Widget]:
        """What the screen is about."""
        raise NotImplementedError

    def look(self) -> None:
        """Show what the run holds now."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """Show what changed while another screen was seen."""
        self.look()

    def say(self, *names: str, more: str = "", wrong: str = "") -> None:
        """Say in the head where this is.

        Args:
            *names: The way to here.
            more: What else there is to say.
            wrong: What went wrong; empty if nothing did.
        """
        text = Text(" › ").join([Text("runs"), *(shown(one_line(name, 60), "bold") for name in names)])
        text.append(f"   {more}" if more else "", "dim")
        text.append(f"   {one_line(wrong, 500)}" if wrong else "", "bold red")
        self.query_one("#head", Static).update(text)

    async def known(self, question: Callable[[], Found]) -> Found | str:
        """The answer to a question, asked in a thread; where there is none, the reason."""
        try:
            return await asyncio.to_thread(question)
        except PROBLEMS as error:
            return told(error)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is no way back from the first screen."""
        return not (action == "back" and self.app.screen_stack[1:2] == [self])

    def action_back(self) -> None:
        """Go back to the screen before."""
        self.dismiss()

    def action_keys(self) -> None:
        """Show the keys."""
        table = Table.grid(padding=(0, 2))
        told_of: set[tuple[str, str]] = set()
        for bound in self.active_bindings.values():
            one = bound.binding
            if bound.enabled and one.description and not one.system and (one.action, one.description) not in told_of:
                told_of.add((one.action, one.description))
                table.add_row(Text(self.app.get_key_display(one), "bold"), Text(one.description))
        self.app.push_screen(Keys(Group(table, *(Text(f"\n{line}") for line in self.MORE))))


def reading(row: dict[str, Any]) -> str:
    """How far a run has been read, as long as that is not all.

    Args:
        row: As ``Answers.row`` has it.
    """
    if row["indexing"]:
        return f"reading: {row['indexing']['done'] / max(1, row['indexing']['total']):.0%}"
    return f"searchable: {row['searchable']['done']:,} episodes" if row["searchable"] else ""
