"""The screen with the table of episodes of a run, with filters, sorting and search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar
from urllib.parse import quote, urlencode

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Static

from rstar2_env.view.answers import Answers
from rstar2_env.view.queries.filters import SORTS, known_names, typed_filter
from rstar2_env.view.terminal.episodes import COLUMNS
from rstar2_env.view.terminal.sanitize import one_line, safe_text
from rstar2_env.view.terminal.walk.episode import EpisodeScreen
from rstar2_env.view.terminal.walk.rows import RowTable, TableRow
from rstar2_env.view.terminal.walk.screen import RunScreen
from rstar2_env.view.terminal.walk.windows import ChoiceWindow, InputWindow

_FILTERS = (
    "split=train  step=3-9  correct=1  kept=0  end=answered  status=timeout,memory\n"
    "status=error  injected=1  min_reward=0.5  max_turns=3  problem_q=substring\n"
    "Combine several with &: split=train&kept=0&correct=1"
)
_WORDS = 'Search conversations, answers and ids. All words must match; "a phrase" in quotes; word* matches a prefix.'


class FilterNames(Suggester):
    """Completes names of filters while the user types."""

    def __init__(self) -> None:
        super().__init__(case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Complete the name of the last filter that was typed, and return all filters; ``None`` if no name fits."""
        before, separator, prefix = value.rpartition("&")
        matching = [name for name in known_names() if prefix and name.startswith(prefix)]
        return f"{before}{separator}{matching[0]}=" if matching else None


class EpisodesScreen(RunScreen[None]):
    """The screen with the table of episodes of a run.

    Attributes:
        params: Filters, search and sort order, as on the page and the command line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("f", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("r", "reverse", "Reverse"),
    ]
    MORE = (f"Filters:\n{_FILTERS}", _WORDS)

    def __init__(self, answers: Answers, run: str) -> None:
        super().__init__(answers, run)
        self.params: dict[str, str] = {}
        self._partial = False
        self._left_at: str | None = None  # last episode shown, until the cursor is on it

    def body(self) -> Iterable[Widget]:
        """Create the widgets: the active filters and the table."""
        yield Static(markup=False, id="filters")
        yield RowTable(COLUMNS, self._rows, "No matching episodes.")

    def update_content(self) -> None:
        """Fetch the visible rows again; the cursor stays on its episode."""
        self._follow()

    @work(exclusive=True)
    async def _follow(self) -> None:
        table = self.query_one(RowTable)
        row = table.row(table.cursor)
        wanted = self._left_at or (row["key"] if row else None)
        if wanted is not None:
            found = await self.run_query(lambda: self.answers.place(self.run_name, wanted, self.params))
            if not isinstance(found, str) and found["place"] is not None:
                self._left_at = None
                table.reload(found["total"], found["place"])
                return
        table.reload()

    def _rows(self, offset: int, limit: int) -> tuple[list[TableRow], int]:
        params = {**self.params, "offset": str(offset), "limit": str(limit)}
        found = self.answers.episodes(self.run_name, params)
        self._partial = found["partial"]
        return found["rows"], found["total"]

    def on_row_table_fetched(self) -> None:
        """Show the number of episodes in the heading line."""
        table = self.query_one(RowTable)
        more = "" if table.total is None else f"{table.total:,} episodes{' so far' if self._partial else ''}"
        self.set_head(self.run_name, "episodes", more=more, error=table.problem)

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        """Open the selected episode."""
        screen = EpisodeScreen(self.answers, self.run_name, event.row["key"], self.params)
        self.app.push_screen(screen, self._back_from)

    def _back_from(self, key: str | None) -> None:
        self._left_at = key
        self.update_content()

    def _apply(self, params: dict[str, str]) -> None:
        """Show the episodes for new parameters, and the active filters above them."""
        self.params = {name: value for name, value in params.items() if value}
        active = Text()
        for name, value in (("filter", self._filter()), ("search", params.get("q")), ("sort", params.get("sort"))):
            if value:
                active.append(f" {name} ", "dim").append_text(safe_text(one_line(value), "bold")).append("  ")
        line = self.query_one("#filters", Static)
        line.update(active)
        line.display = bool(active.plain)
        self._left_at = None
        self.query_one(RowTable).restart()

    def _filter(self) -> str:
        """Return the filter as a user would type it: ``NAME=VALUE&NAME=VALUE``."""
        chosen = {name: value for name, value in self.params.items() if name not in ("q", "sort")}
        return urlencode(chosen, quote_via=quote, safe=",:/* ")

    def _with_filter(self, typed: str) -> dict[str, str]:
        kept = {name: value for name, value in self.params.items() if name in ("q", "sort")}
        return {**kept, **typed_filter(typed.strip(), "The filter")}

    def _check(self, params: dict[str, str]) -> None:
        self.answers.episodes(self.run_name, {**params, "limit": "1"})

    def _open(self, window: Screen[str | None], params_of: Callable[[str], dict[str, str]]) -> None:
        """Open a window; when it closes with a result, show the episodes for the parameters ``params_of(result)``."""

        def closed(result: str | None) -> None:
            if result is not None:
                self._apply(params_of(result))

        self.app.push_screen(window, closed)

    def action_filter(self) -> None:
        """Open a window for entering a filter."""
        window = InputWindow(
            "Filter", self._filter(), Text(_FILTERS), lambda typed: self._check(self._with_filter(typed)), FilterNames()
        )
        self._open(window, self._with_filter)

    def action_search(self) -> None:
        """Open a window for entering a search."""
        window = InputWindow(
            "Search", self.params.get("q", ""), Text(_WORDS), lambda typed: self._check({**self.params, "q": typed})
        )
        self._open(window, lambda typed: {**self.params, "q": typed.strip()})

    def action_sort(self) -> None:
        """Open a window for choosing the column to sort by."""
        now = self.params.get("sort", "key").removeprefix("-")
        window = ChoiceWindow("Sort by, ascending (r reverses)", ["key", *SORTS], now)
        self._open(window, lambda name: {**self.params, "sort": name})

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        now = self.params.get("sort", "key")
        self._apply({**self.params, "sort": now.removeprefix("-") if now.startswith("-") else f"-{now}"})
