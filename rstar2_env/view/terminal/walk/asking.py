"""Windows over a screen: a line to type, a list to choose from, the keys; and what is said of a failed question."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.terminal.harmless import harmless, shown

PROBLEMS = (ConfigurationError, KeyError, EOFError, OSError, sqlite3.Error)
"""What a question about a run may end with, while its files and its index change."""


def told(error: BaseException) -> str:
    """What to say of one, harmless."""
    if isinstance(error, KeyError):
        return harmless(f"It is no longer there: {error.args[0] if error.args else ''}")
    return harmless(str(error) or type(error).__name__)


class Ask(ModalScreen[str | None]):
    """Asks for a line.

    Args:
        title: What for.
        value: What stands there at first.
        helped: How it is written.
        check: Raises ``ConfigurationError`` where the line is wrong; called in a thread.
        suggester: Completes the line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", show=False)]

    def __init__(
        self,
        title: str,
        value: str,
        helped: RenderableType,
        check: Callable[[str], object],
        suggester: Suggester | None = None,
    ) -> None:
        super().__init__()
        self._heading, self._value, self._helped, self._check = title, value, helped, check
        self._suggester = suggester

    def compose(self) -> ComposeResult:
        """The line, and below it how it is written."""
        with Vertical(classes="window bottom") as window:
            window.border_title = self._heading
            window.border_subtitle = "⏎ apply   esc cancel   empty: none"
            yield Input(self._value, suggester=self._suggester, select_on_focus=False)
            yield Static(self._helped, markup=False, id="helped")
            yield Static("", markup=False, id="wrong")

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """End with the line, or say what is wrong with it."""
        try:
            await asyncio.to_thread(self._check, event.value)
        except PROBLEMS as error:
            self.query_one("#wrong", Static).update(shown(told(error)))
        else:
            self.dismiss(event.value)


class Choose(ModalScreen[str | None]):
    """Asks for one of some names.

    Args:
        title: What for.
        names: The names.
        chosen: The one that is chosen now.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,backspace", "dismiss(None)", "Cancel", show=False)]

    def __init__(self, title: str, names: Sequence[str], chosen: str) -> None:
        super().__init__()
        self._heading, self._names, self._chosen = title, names, chosen

    def compose(self) -> ComposeResult:
        """The names."""
        with Vertical(classes="window bottom") as window:
            window.border_title = self._heading
            window.border_subtitle = "⏎ choose   esc cancel"
            yield OptionList(*(Option(Text(name), id=name) for name in self._names))

    def on_mount(self) -> None:
        """Begin at the one that is chosen now."""
        if self._chosen in self._names:
            self.query_one(OptionList).highlighted = self._names.index(self._chosen)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """End with it."""
        self.dismiss(event.option.id)


class Keys(ModalScreen[None]):
    """The keys of a screen.

    Args:
        parts: What to show.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,question_mark,enter,q", "dismiss(None)", "Close", show=False)
    ]

    def __init__(self, parts: RenderableType) -> None:
        super().__init__()
        self._parts = parts

    def compose(self) -> ComposeResult:
        """The keys."""
        with VerticalScroll(classes="window") as window:
            window.border_title = "Keys"
            window.border_subtitle = "esc close"
            yield Static(self._parts, markup=False)
