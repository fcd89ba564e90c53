"""Modal windows: text input, a list of choices, the key bindings; and the messages of failed queries."""

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
from rstar2_env.core.text import harmless
from rstar2_env.view.terminal.sanitize import safe_text

PROBLEMS = (ConfigurationError, KeyError, EOFError, OSError, sqlite3.Error)
"""Errors that queries may raise while the files of a run and its index change."""


def error_text(error: BaseException) -> str:
    """Return the message of an error, without control characters."""
    if isinstance(error, KeyError):
        return harmless(f"No longer available: {error.args[0] if error.args else ''}")
    return harmless(str(error) or type(error).__name__)


class InputWindow(ModalScreen[str | None]):
    """A window with one line of text input.

    Args:
        title: Title of the window.
        value: Initial text.
        usage: Help about the syntax.
        check: Function that raises ``ConfigurationError`` if the text is invalid; called in a thread.
        suggester: Completes the text while the user types.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", show=False)]

    def __init__(
        self,
        title: str,
        value: str,
        usage: RenderableType,
        check: Callable[[str], object],
        suggester: Suggester | None = None,
    ) -> None:
        super().__init__()
        self._heading, self._value, self._usage, self._check = title, value, usage, check
        self._suggester = suggester

    def compose(self) -> ComposeResult:
        """Create the input line, and the help below it."""
        with Vertical(classes="window bottom") as window:
            window.border_title = self._heading
            window.border_subtitle = "⏎ apply   esc cancel   empty: clear"
            yield Input(self._value, suggester=self._suggester, select_on_focus=False)
            yield Static(self._usage, markup=False, id="usage")
            yield Static("", markup=False, id="wrong")

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close the window and return the text, or show why the text is invalid."""
        try:
            await asyncio.to_thread(self._check, event.value)
        except PROBLEMS as error:
            self.query_one("#wrong", Static).update(safe_text(error_text(error)))
        else:
            self.dismiss(event.value)


class ChoiceWindow(ModalScreen[str | None]):
    """A window with a list of names to choose from.

    Args:
        title: Title of the window.
        names: Names to choose from.
        chosen: Currently selected name.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,backspace", "dismiss(None)", "Cancel", show=False)]

    def __init__(self, title: str, names: Sequence[str], chosen: str) -> None:
        super().__init__()
        self._heading, self._names, self._chosen = title, names, chosen

    def compose(self) -> ComposeResult:
        """Create the list of names."""
        with Vertical(classes="window bottom") as window:
            window.border_title = self._heading
            window.border_subtitle = "⏎ choose   esc cancel"
            yield OptionList(*(Option(Text(name), id=name) for name in self._names))

    def on_mount(self) -> None:
        """Highlight the currently selected name."""
        if self._chosen in self._names:
            self.query_one(OptionList).highlighted = self._names.index(self._chosen)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close the window and return the chosen name."""
        self.dismiss(event.option.id)


class KeysWindow(ModalScreen[None]):
    """A window that lists the key bindings of a screen.

    Args:
        parts: Content of the window.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,question_mark,enter,q", "dismiss(None)", "Close", show=False)
    ]

    def __init__(self, parts: RenderableType) -> None:
        super().__init__()
        self._parts = parts

    def compose(self) -> ComposeResult:
        """Create the list of key bindings."""
        with VerticalScroll(classes="window") as window:
            window.border_title = "Keys"
            window.border_subtitle = "esc close"
            yield Static(self._parts, markup=False)
