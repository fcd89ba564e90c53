"""The screen of one episode: the conversation with the status of every call, and the training tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.widget import Widget

from rstar2_env.view.answers import Answers
from rstar2_env.view.terminal.episodes import conversation
from rstar2_env.view.terminal.tokens import token_lines
from rstar2_env.view.terminal.walk.lines import Lines
from rstar2_env.view.terminal.walk.screen import RunScreen


class EpisodeScreen(RunScreen[str]):
    """The screen of one episode; when it closes, it returns the key of the episode shown last.

    Args:
        answers: Answers the queries.
        run: Name of the episode's run in the library.
        key: Key of the episode.
        params: Filters, search and sort order of the table of episodes, for the actions next and previous.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,j,right", "adjacent('next')", "Next", key_display="n"),
        Binding("p,k,left", "adjacent('previous')", "Previous", key_display="p"),
        Binding("t", "tokens", "Tokens"),
    ]

    def __init__(self, answers: Answers, run: str, key: str, params: Mapping[str, str]) -> None:
        super().__init__(answers, run)
        self.key, self._params = key, dict(params)
        self._tokens = False
        self._line: dict[str, Any] = {}
        self._place: dict[str, Any] = {}

    def body(self) -> Iterable[Widget]:
        """Create the widget for the episode's lines, which are the same as in printed output (``text_view``)."""
        yield Lines()

    def update_content(self) -> None:
        """Update the episode's displayed position in the table ("3 of 120"); the episode itself does not change."""
        self._show(self.key)

    @work(exclusive=True)
    async def _show(self, key: str) -> None:
        run, params = self.run_name, self._params
        if self._line.get("key") != key:
            line = await self.run_query(lambda: self.answers.episode(run, key))
            if isinstance(line, str):
                self.set_head(run, self.key, error=line)
                return
            self.key, self._line = key, line
            await self._draw()
        place = await self.run_query(lambda: self.answers.place(run, key, params))
        self._place = {} if isinstance(place, str) else place
        at = self._place.get("place")
        more = "" if at is None else f"{at + 1:,} of {self._place['total']:,}"
        self.set_head(run, key, more=more, error=place if isinstance(place, str) else "")
        self.refresh_bindings()

    @work(exclusive=True)
    async def _draw_again(self) -> None:
        await self._draw()

    async def _draw(self) -> None:
        lines = self.query_one(Lines)
        if not (self._tokens and self._line["has_tokens"]):
            lines.show(conversation(self._line, heading=self.key).renderables[1:], from_top=True)
            return
        found = await self.run_query(lambda: self.answers.tokens(self.run_name, self.key))
        lines.show([Text(found, "red")] if isinstance(found, str) else token_lines(found), from_top=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the actions that apply: tokens (if they were stored), next and previous episode (if there is one)."""
        if action == "tokens":
            return bool(self._line.get("has_tokens"))
        if action == "adjacent":
            return self._adjacent(str(parameters[0])) is not None
        return super().check_action(action, parameters)

    def _adjacent(self, which: str) -> str | None:
        """Return the key of the next or previous episode in the table; in the run if the table lacks this episode."""
        source = self._line if self._place.get("place") is None else self._place
        found: str | None = source.get(which)
        return found

    def action_adjacent(self, which: str) -> None:
        """Show the next or previous episode."""
        key = self._adjacent(which)
        if key is not None:
            self._show(key)

    def action_tokens(self) -> None:
        """Switch between tokens and conversation."""
        self._tokens = not self._tokens
        self._draw_again()

    def action_back(self) -> None:
        """Return to the table of episodes, with the cursor on this episode."""
        self.dismiss(self.key)
