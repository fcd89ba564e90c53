"""The table of the episodes of a run: filtered, sorted, searched, as long as it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar
from urllib.parse import quote, urlencode

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Static

from rstar2_env.view.answers import Answers
from rstar2_env.view.queries.filters import SORTS, known_names, typed_filter
from rstar2_env.view.terminal.columns import Column
from rstar2_env.view.terminal.episodes import COLUMNS
from rstar2_env.view.terminal.harmless import one_line, shown
from rstar2_env.view.terminal.walk.asking import Ask, Choose
from rstar2_env.view.terminal.walk.episode import EpisodeScreen
from rstar2_env.view.terminal.walk.rows import Row, RowTable
from rstar2_env.view.terminal.walk.screen import RunScreen

_COLUMNS = (*COLUMNS, Column("question", lambda row: shown(one_line(row["question"])), least=20, spare=True))
_FILTERS = (
    "split=train  step=3-9  correct=1  kept=0  end=answered  status=timeout,memory\n"
    "status=error  injected=1  min_reward=0.5  max_turns=3  problem_q=part of it\n"
    "Several go together: split=train&kept=0&correct=1"
)
_WORDS = 'Searches conversations, answers and ids: all words; "in quotes" together; word* by its beginning.'


class FilterNames(Suggester):
    """Completes the name of a filter."""

    def __init__(self) -> None:
        super().__init__(case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """The line with the name at its end completed."""
        before, also, begun = value.rpartition("&")
        named = [name for name in known_names() if begun and name.startswith(begun)]
        return f"{before}{also}{named[0]}=" if named else None


class EpisodesScreen(RunScreen[None]):
    """The table of the episodes of a run.

    Attributes:
        asked: Filters, search and order, as the page and the command line have them.
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
        self.asked: dict[str, str] = {}
        self._partial = False
        self._left_at: str | None = None  # the episode that was shown last, until the cursor is on it

    def body(self) -> Iterable[Widget]:
        """What was asked for, if anything was, and the table."""
        yield Static(markup=False, id="asked")
        yield RowTable(_COLUMNS, self._rows, "No episode is like that.")

    def look(self) -> None:
        """Fetch the rows in view again; the cursor stays on its episode."""
        self._follow()

    @work(exclusive=True)
    async def _follow(self) -> None:
        table = self.query_one(RowTable)
        row = table.row(table.cursor)
        wanted = self._left_at or (row["key"] if row else None)
        if wanted is not None:
            found = await self.known(lambda: self.answers.place(self.run_name, wanted, self.asked))
            if not isinstance(found, str) and found["place"] is not None:
                self._left_at = None
                table.again(found["total"], found["place"])
                return
        table.again()

    def _rows(self, offset: int, limit: int) -> tuple[list[Row], int]:
        asked = {**self.asked, "offset": str(offset), "limit": str(limit)}
        found = self.answers.episodes(self.run_name, asked)
        self._partial = found["partial"]
        return found["rows"], found["total"]

    def on_row_table_fetched(self) -> None:
        """Say how many there are, and of which."""
        table = self.query_one(RowTable)
        more = "" if table.total is None else f"{table.total:,} episodes{' so far' if self._partial else ''}"
        self.say(self.run_name, "episodes", more=more, wrong=table.problem)

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        """Show one."""
        screen = EpisodeScreen(self.answers, self.run_name, event.row["key"], self.asked)
        self.app.push_screen(screen, self._back_from)

    def _back_from(self, key: str | None) -> None:
        self._left_at = key
        self.look()

    def _ask(self, asked: dict[str, str]) -> None:
        self.asked = {name: value for name, value in asked.items() if value}
        said = Text()
        for name, value in (("filter", self._filter()), ("search", asked.get("q")), ("sort", asked.get("sort"))):
            if value:
                said.append(f" {name} ", "dim").append_text(shown(one_line(value), "bold")).append("  ")
        line = self.query_one("#asked", Static)
        line.update(said)
        line.display = bool(said.plain)
        self._left_at = None
        self.query_one(RowTable).begin()

    def _filter(self) -> str:
        """The filter as it would be typed."""
        chosen = {name: value for name, value in self.asked.items() if name not in ("q", "sort")}
        return urlencode(chosen, quote_via=quote, safe=",:/* ")

    def _with_filter(self, typed: str) -> dict[str, str]:
        kept = {name: value for name, value in self.asked.items() if name in ("q", "sort")}
        return {**kept, **typed_filter(typed.strip(), "The filter")}

    def _check(self, asked: dict[str, str]) -> None:
        self.answers.episodes(self.run_name, {**asked, "limit": "1"})

    def action_filter(self) -> None:
        """Ask which episodes to show."""

        def chosen(typed: str | None) -> None:
            if typed is not None:
                self._ask(self._with_filter(typed))

        window = Ask(
            "Filter", self._filter(), Text(_FILTERS), lambda typed: self._check(self._with_filter(typed)), FilterNames()
        )
        self.app.push_screen(window, chosen)

    def action_search(self) -> None:
        """Ask for words."""

        def chosen(typed: str | None) -> None:
            if typed is not None:
                self._ask({**self.asked, "q": typed.strip()})

        window = Ask(
            "Search", self.asked.get("q", ""), Text(_WORDS), lambda typed: self._check({**self.asked, "q": typed})
        )
        self.app.push_screen(window, chosen)

    def action_sort(self) -> None:
        """Ask for a column to sort by."""

        def chosen(name: str | None) -> None:
            if name is not None:
                self._ask({**self.asked, "sort": name})

        now = self.asked.get("sort", "key").removeprefix("-")
        self.app.push_screen(Choose("Sort by, the smallest first (r reverses)", ["key", *SORTS], now), chosen)

    def action_reverse(self) -> None:
        """Turn the order round."""
        now = self.asked.get("sort", "key")
        self._ask({**self.asked, "sort": now.removeprefix("-") if now.startswith("-") else f"-{now}"})
