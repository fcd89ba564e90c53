"""``Lines``: a scrollable widget of text, rendered in a thread, once for each width."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from typing import ClassVar

from rich.console import Console, RenderableType
from rich.panel import Panel
from textual import work
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A scrollable widget that shows rendered lines.

    Attributes:
        lines: The lines at the current width of the widget.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "Line up", show=False),
        Binding("down", "scroll_down", "Line down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown,space", "page_down", "Page down", show=False),
        Binding("home", "scroll_home", "To the beginning", show=False),
        Binding("end", "scroll_end", "To the end", show=False),
        Binding("tab", "panel(1)", "Next message", show=False),
        Binding("shift+tab", "panel(-1)", "Previous message", show=False),
    ]
    DEFAULT_CSS = "Lines { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }"

    def __init__(self) -> None:
        super().__init__()
        self._parts: Sequence[RenderableType] = ()
        self._panels: list[int] = []
        self._width = 0
        self.lines: list[Strip] = []

    def show(self, parts: Sequence[RenderableType], *, from_top: bool) -> None:
        """Replace the content of the widget.

        Args:
            parts: Objects to show, which rich can render.
            from_top: Whether to scroll to the top.
        """
        self._parts = parts
        self._make(from_top)

    def on_resize(self) -> None:
        """Render the lines again if the width changed."""
        if self._parts and self.scrollable_content_region.width != self._width:
            self._make(False)

    @work(exclusive=True)
    async def _make(self, from_top: bool) -> None:
        self._width = width = self.scrollable_content_region.width
        if not width:
            return
        self.lines, self._panels = await asyncio.to_thread(_lines_of, self._parts, width)
        self.virtual_size = Size(width, len(self.lines))
        if from_top:
            self.scroll_to(y=0, animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one visible line."""
        at, width = self.scroll_offset.y + y, self.scrollable_content_region.width
        if at >= len(self.lines):
            return Strip.blank(width, self.rich_style)
        return self.lines[at].adjust_cell_length(width).apply_style(self.rich_style)

    def action_panel(self, by: int) -> None:
        """Scroll to the next or previous panel, which is a message in a conversation."""
        here = self.scroll_offset.y
        ahead = [at for at in self._panels if (at > here if by > 0 else at < here)]
        if ahead:
            self.scroll_to(y=ahead[0 if by > 0 else -1], animate=False)


def _lines_of(parts: Sequence[RenderableType], width: int) -> tuple[list[Strip], list[int]]:
    """Render parts to lines; also return the index of the first line of each part that is a ``Panel``."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor", markup=False)
    lines: list[Strip] = []
    panels: list[int] = []
    for part in parts:
        if isinstance(part, Panel):
            panels.append(len(lines))
        lines += [Strip(line) for line in console.render_lines(part, pad=False)]
    return lines, panels
