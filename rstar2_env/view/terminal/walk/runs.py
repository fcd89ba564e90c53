"""The screens with the list of runs and with the overview of one run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widget import Widget

from rstar2_env.view.answers import Answers
from rstar2_env.view.terminal.overview import COLUMNS, run_overview
from rstar2_env.view.terminal.walk.episodes import EpisodesScreen
from rstar2_env.view.terminal.walk.lines import Lines
from rstar2_env.view.terminal.walk.rows import RowTable, TableRow
from rstar2_env.view.terminal.walk.screen import RunScreen, reading


class RunsScreen(RunScreen[None]):
    """The screen with the list of runs."""

    def body(self) -> Iterable[Widget]:
        """Create the table of runs."""
        yield RowTable(COLUMNS, self._rows, "There are no runs.")

    def update_content(self) -> None:
        """Fetch the visible rows again."""
        self.query_one(RowTable).reload()

    def _rows(self, offset: int, limit: int) -> tuple[list[TableRow], int]:
        rows = self.answers.runs()["runs"]
        return rows[offset : offset + limit], len(rows)

    def on_row_table_fetched(self) -> None:
        """Show the number of runs in the heading line."""
        table = self.query_one(RowTable)
        self.set_head(more=f"{table.total or 0:,}", error=table.problem)

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        """Open the selected run."""
        self.app.push_screen(OverviewScreen(self.answers, event.row["run"]))


class OverviewScreen(RunScreen[None]):
    """The screen with the overview of a run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,e", "episodes", "Episodes", key_display="⏎"),
        Binding("n,right", "adjacent(1)", "Next run", key_display="n"),
        Binding("p,left", "adjacent(-1)", "Previous run", key_display="p"),
    ]

    def __init__(self, answers: Answers, run: str) -> None:
        super().__init__(answers, run)
        self._names: list[str] = []

    def body(self) -> Iterable[Widget]:
        """Create the widget for the overview's lines, which are the same as in printed output (``text_view``)."""
        yield Lines()

    def update_content(self) -> None:
        """Show the current state of the run."""
        self._show(from_top=False)

    @work(exclusive=True)
    async def _show(self, *, from_top: bool) -> None:
        run = self.run_name
        found = await self.run_query(lambda: (self.answers.run(run), self.answers.metrics(run), self.answers.runs()))
        if isinstance(found, str):
            self.set_head(run, error=found)
            return
        row, metrics, runs = found
        self._names = [each["run"] for each in runs["runs"]]
        self.refresh_bindings()
        self.set_head(run, more=reading(row))
        self.query_one(Lines).show(run_overview(row, metrics).renderables, from_top=from_top)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the actions for the next and the previous run if there is only one run."""
        return len(self._names) > 1 if action == "adjacent" else super().check_action(action, parameters)

    def action_adjacent(self, by: int) -> None:
        """Show the next or previous run."""
        if self.run_name in self._names:
            self.run_name = self._names[(self._names.index(self.run_name) + by) % len(self._names)]
            self._show(from_top=True)

    def action_episodes(self) -> None:
        """Open the table of the run's episodes."""
        self.app.push_screen(EpisodesScreen(self.answers, self.run_name))
