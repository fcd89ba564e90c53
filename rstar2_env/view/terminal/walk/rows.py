"""``RowTable``: a table widget of any length, which fetches and caches only the visible pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events, work
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rstar2_env.view.terminal.columns import TableColumn, fit_widths
from rstar2_env.view.terminal.walk.windows import PROBLEMS, error_text

PAGE = 100
_MOST_PAGES = 8
"""Maximum number of cached pages."""

TableRow = Mapping[str, Any]
Fetch = Callable[[int, int], tuple[list[TableRow], int]]
"""Function that returns rows for an offset and a limit, and the total number of rows; called in a thread."""


class RowTable(ScrollView, can_focus=True, inherit_bindings=False):
    """A table widget with a cursor.

    Args:
        columns: Columns of the table.
        fetch: Function that returns rows; see ``Fetch``.
        empty: Text to show if there are no rows.

    Attributes:
        cursor: Number of the row under the cursor, from 0.
        total: Total number of rows; ``None`` until it is known.
        pages: Cached pages of rows, by the page's number from 0.
        problem: Error message if rows could not be fetched.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Row up", show=False),
        Binding("down", "move(1)", "Row down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "end(False)", "First row", show=False),
        Binding("end", "end(True)", "Last row", show=False),
        Binding("enter", "open", "Open", key_display="⏎"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-table--cursor", "row-table--heading"}
    DEFAULT_CSS = """
    RowTable { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }
    RowTable > .row-table--cursor { background: $primary 60%; text-style: bold; }
    RowTable > .row-table--heading { background: $panel; text-style: bold; }
    """

    class Opened(Message):
        """Message that the user opened a row."""

        def __init__(self, row: TableRow) -> None:
            super().__init__()
            self.row = row

    class Fetched(Message):
        """Message that a fetch has ended; its result is in ``total`` and ``problem`` of the table."""

    def __init__(self, columns: Sequence[TableColumn], fetch: Fetch, empty: str) -> None:
        super().__init__()
        self._columns, self._fetch, self._empty = columns, fetch, empty
        self._wanted = [0] * len(columns)
        self._stale: set[int] = set()
        self._request, self._fetching = 0, False
        self.cursor = 0
        self.total: int | None = None
        self.pages: dict[int, list[TableRow]] = {}
        self.problem = ""

    def restart(self) -> None:
        """Discard all rows, and fetch again from the first row."""
        self.cursor, self.total, self.pages = 0, None, {}
        self._wanted = [0] * len(self._columns)
        self.scroll_to(y=0, animate=False, force=True)
        self._refetch()

    def reload(self, total: int | None = None, cursor: int | None = None) -> None:
        """Fetch the visible rows again; the old rows stay visible until then.

        Args:
            total: New total number of rows, if known.
            cursor: New number of the row under the cursor, if known.
        """
        if total is not None and cursor is not None:
            self._measure(total)
            self.select(cursor)
        self._refetch()

    def _refetch(self) -> None:
        self._request += 1
        self._stale = set(self.pages)
        self._fill()

    def _measure(self, total: int) -> None:
        self.total = total
        self.virtual_size = Size(0, total + 1)

    def select(self, number: int) -> None:
        """Move the cursor to a row."""
        self.cursor = max(0, min(number, (self.total or 1) - 1))
        top, seen = self.scroll_offset.y, max(self.size.height - 1, 1)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + seen:
            self.scroll_to(y=self.cursor - seen + 1, animate=False, force=True)
        self._fill()
        self.refresh()

    def row(self, number: int) -> TableRow | None:
        """Return a row by its number; ``None`` if the row was not fetched."""
        page = self.pages.get(number // PAGE, [])
        return page[number % PAGE] if number % PAGE < len(page) else None

    def on_resize(self) -> None:
        """Fetch rows that became visible."""
        self.select(self.cursor)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Fetch rows that became visible."""
        super().watch_scroll_y(old_value, new_value)
        self._fill()

    def _in_view(self) -> range:
        first = max(self.scroll_offset.y, 0)
        last = first + max(self.size.height - 2, 0)
        if self.total is not None:
            last = min(last, max(self.total - 1, 0))  # an empty table still has a page to fetch again
        return range(first // PAGE, last // PAGE + 1)

    def _missing(self) -> int | None:
        return next((page for page in self._in_view() if page not in self.pages or page in self._stale), None)

    def _fill(self) -> None:
        if not self._fetching and self.is_mounted and self._missing() is not None:
            self._fetching = True
            self._fetch_missing()

    @work
    async def _fetch_missing(self) -> None:
        try:
            while (page := self._missing()) is not None:
                request = self._request
                try:
                    rows, total = await asyncio.to_thread(self._fetch, page * PAGE, PAGE)
                except PROBLEMS as error:
                    self.problem = error_text(error)
                    self.post_message(self.Fetched())
                    return
                if request == self._request:
                    self._take(page, rows, total)
        finally:
            self._fetching = False

    def _take(self, page: int, rows: list[TableRow], total: int) -> None:
        self.problem = ""
        self._measure(total)
        self.pages[page] = rows
        self._stale.discard(page)
        nearest = sorted(self.pages, key=lambda number: abs(number - page))
        self.pages = {number: self.pages[number] for number in nearest[:_MOST_PAGES]}
        for at, column in enumerate(self._columns):
            widest = max((column.cell(row).cell_len for row in rows), default=0)
            self._wanted[at] = max(self._wanted[at], widest and max(widest, len(column.heading)))
        self.cursor = max(0, min(self.cursor, total - 1))
        self.refresh()
        self.post_message(self.Fetched())

    def render_line(self, y: int) -> Strip:
        """Render one visible line: the headings or a row."""
        width = self.scrollable_content_region.width
        if y == 0:
            style = self.get_component_rich_style("row-table--heading")
            return self._strip([Text(column.heading) for column in self._columns], style, width)
        number = self.scroll_offset.y + y - 1
        if self.total == 0 and y == 1:
            return self._line(Text(f" {self._empty}"), self.rich_style, width)
        if number >= (self.total or 0):
            return Strip.blank(width, self.rich_style)
        style = self.get_component_rich_style("row-table--cursor") if number == self.cursor else self.rich_style
        row = self.row(number)
        if row is None:
            return self._line(Text(" …"), style, width)
        return self._strip([column.cell(row) for column in self._columns], style, width)

    def _strip(self, cells: Sequence[Text], style: Style, width: int) -> Strip:
        line = Text(" ")
        widths, gap = fit_widths(self._columns, self._wanted, width - 1)
        for column, cell, room in zip(self._columns, cells, widths, strict=True):
            if room:
                cell.truncate(room, overflow="ellipsis")
                cell.align("right" if column.number else "left", room)
                line.append_text(cell).append(" " * gap)
        return self._line(line, style, width)

    def _line(self, text: Text, style: Style, width: int) -> Strip:
        segments = [Segment(part.text, part.style) for part in text.render(self.app.console)]
        return Strip(segments).adjust_cell_length(width).apply_style(style)

    def action_move(self, rows: int) -> None:
        """Move the cursor by a number of rows."""
        self.select(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a number of pages."""
        self.select(self.cursor + pages * max(self.size.height - 2, 1))

    def action_end(self, last: bool) -> None:
        """Move the cursor to the first or last row."""
        self.select((self.total or 1) - 1 if last else 0)

    def action_open(self) -> None:
        """Open the row under the cursor."""
        row = self.row(self.cursor)
        if row is not None:
            self.post_message(self.Opened(row))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; a second click opens it."""
        number = self.scroll_offset.y + event.y - 1
        if event.y and number < (self.total or 0):
            if number == self.cursor:
                self.action_open()
            self.select(number)
