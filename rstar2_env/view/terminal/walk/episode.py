"""One episode: its conversation with the status of every call, and the tokens that trained."""

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
    """One episode; ends with the key of the one that was shown last.

    Args:
        answers: What is known of the runs.
        run: The run's name.
        key: The episode.
        asked: Filters, search and order of the table in which next and previous are meant.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,j,right", "beside('next')", "Next", key_display="n"),
        Binding("p,k,left", "beside('previous')", "Previous", key_display="p"),
        Binding("t", "tokens", "Tokens"),
    ]

    def __init__(self, answers: Answers, run: str, key: str, asked: Mapping[str, str]) -> None:
        super().__init__(answers, run)
        self.key, self._asked = key, dict(asked)
        self._tokens = False
        self._line: dict[str, Any] = {}
        self._place: dict[str, Any] = {}

    def body(self) -> Iterable[Widget]:
        """Lines, as they are printed too."""
        yield Lines()

    def look(self) -> None:
        """Say anew where in the table it stands; the episode itself no longer changes."""
        self._show(self.key)

    @work(exclusive=True)
    async def _show(self, key: str) -> None:
        run, asked = self.run_name, self._asked
        if self._line.get("key") != key:
            line = await self.known(lambda: self.answers.episode(run, key))
            if isinstance(line, str):
                self.say(run, self.key, wrong=line)
                return
            self.key, self._line = key, line
            await self._draw()
        place = await self.known(lambda: self.answers.place(run, key, asked))
        self._place = {} if isinstance(place, str) else place
        at = self._place.get("place")
        more = "" if at is None else f"{at + 1:,} of {self._place['total']:,}"
        self.say(run, key, more=more, wrong=place if isinstance(place, str) else "")
        self.refresh_bindings()

    @work(exclusive=True)
    async def _draw_again(self) -> None:
        await self._draw()

    async def _draw(self) -> None:
        lines = self.query_one(Lines)
        if not (self._tokens and self._line["has_tokens"]):
            lines.show(conversation(self._line, heading=self.key).renderables[1:], anew=True)
            return
        found = await self.known(lambda: self.answers.tokens(self.run_name, self.key))
        lines.show([Text(found, "red")] if isinstance(found, str) else token_lines(found), anew=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tokens are there where the run kept them; after the last episode there is no next one."""
        if action == "tokens":
            return bool(self._line.get("has_tokens"))
        if action == "beside":
            return self._beside(str(parameters[0])) is not None
        return super().check_action(action, parameters)

    def _beside(self, which: str) -> str | None:
        """The key of the next episode of the table, or the one before; of the run, where it is in the table no more."""
        beside = self._line if self._place.get("place") is None else self._place
        found: str | None = beside.get(which)
        return found

    def action_beside(self, which: str) -> None:
        """Show the next episode, or the one before."""
        key = self._beside(which)
        if key is not None:
            self._show(key)

    def action_tokens(self) -> None:
        """Show its tokens, or the conversation again."""
        self._tokens = not self._tokens
        self._draw_again()

    def action_back(self) -> None:
        """Go back to the table, to this episode."""
        self.dismiss(self.key)
