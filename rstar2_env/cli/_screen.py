"""What a person sees of an episode: the conversation with programs coloured, the status of every call, the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import Dialect

_GOOD = frozenset({ToolStatus.OK, ToolStatus.EMPTY})


class Screen:
    """Writes to a terminal, or without colours to anything else.

    Args:
        dialect: How calls are written in turns; ``None`` where the environment has none.
        console: Where to; by default standard output.
    """

    def __init__(self, dialect: Dialect | None, console: Console | None = None) -> None:
        self.console = Console() if console is None else console
        self._dialect = dialect

    def say(self, words: str) -> None:
        """A line of the program's own."""
        self.console.print(Text(words, style="dim"))

    def message(self, role: str, text: str) -> None:
        """A message of the environment's."""
        style = {"system": "dim", "user": "cyan"}.get(role, "blue")
        self.console.print(Panel(Text(text.rstrip()), title=role, title_align="left", border_style=style))

    def turn(self, text: str) -> None:
        """A turn as it was sent: its text, with the programs of its calls coloured."""
        programs: list[RenderableType] = []
        dialect, bare = self._dialect, ""
        for call in [] if dialect is None else dialect.calls(text):
            code = call.arguments.get("code")
            if dialect is not None and isinstance(code, str):
                bare = dialect.format_call(call.name, call.arguments)
                programs += [Text(f"{call.name}:", style="dim"), Syntax(code, "python", word_wrap=True)]
        # A turn that is a call and nothing else is its program; the mark-up around it says no more.
        parts = programs if bare.strip() == text.strip() else [Text(text.rstrip()), *programs]
        self.console.print(Panel(Group(*parts), title="you", title_align="left", border_style="green"))

    def statuses(self, info: Mapping[str, Any]) -> None:
        """How the calls of the last turn went."""
        for call in info.get("tool_calls") or ():
            good = call["status"] in _GOOD
            words = [str(call["status"]), str(call.get("error_type") or "")]
            words += ["output was cut"] if call.get("truncated") else []
            words += ["injected by a wrapper"] if call.get("injected") else []
            told = ", ".join(filter(None, words))
            self.console.print(Text(f"{call['name'] or 'call'}: {told}", style="green" if good else "red"))

    def end(self, episode: Episode, gold: str | None) -> None:
        """How the episode ended."""
        table = Table(show_header=False, title="right" if episode.correct else "the end")
        table.title_style = "bold green" if episode.correct else "bold red"
        rows = {
            "reward": f"{episode.reward:g}",
            **{f"  {name}": f"{value:g}" for name, value in episode.rewards.items()},
            "end": episode.end,
            "answer": episode.answer,
            "gold answer": gold,
            "turns": str(episode.turns),
            "calls": ", ".join(map(str, episode.statuses)) or None,
        }
        for name, value in rows.items():
            if value is not None:
                table.add_row(name, Text(value))
        self.console.print(table)
