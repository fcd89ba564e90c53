"""Terminal display of an episode: the conversation with highlighted programs, the call statuses and the outcome."""

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
    """Display of one episode: in colour on a terminal, plain elsewhere.

    Args:
        dialect: Dialect of the calls in turns; ``None`` if the environment does not have one.
        console: Output console [default: standard output].
    """

    def __init__(self, dialect: Dialect | None, console: Console | None = None) -> None:
        self.console = Console() if console is None else console
        self._dialect = dialect

    def note(self, text: str) -> None:
        """Print a note of the program itself."""
        self.console.print(Text(text, style="dim"))

    def message(self, role: str, text: str) -> None:
        """Print a message from the environment."""
        style = {"system": "dim", "user": "cyan"}.get(role, "blue")
        self.console.print(Panel(Text(text.rstrip()), title=role, title_align="left", border_style=style))

    def turn(self, text: str) -> None:
        """Print a turn as it was sent: its text, with the programs of its calls highlighted."""
        programs: list[RenderableType] = []
        dialect, bare = self._dialect, ""
        for call in [] if dialect is None else dialect.calls(text):
            code = call.arguments.get("code")
            if dialect is not None and isinstance(code, str):
                bare = dialect.format_call(call.name, call.arguments)
                programs += [Text(f"{call.name}:", style="dim"), Syntax(code, "python", word_wrap=True)]
        # If a turn is only a call, print the program without the markup around it.
        parts = programs if bare.strip() == text.strip() else [Text(text.rstrip()), *programs]
        self.console.print(Panel(Group(*parts), title="you", title_align="left", border_style="green"))

    def statuses(self, info: Mapping[str, Any]) -> None:
        """Print the status of each call of the last turn."""
        for call in info.get("tool_calls") or ():
            good = call["status"] in _GOOD
            facts = [str(call["status"]), str(call.get("error_type") or "")]
            facts += ["output was cut"] if call.get("truncated") else []
            facts += ["injected by a wrapper"] if call.get("injected") else []
            text = f"{call['name'] or 'call'}: {', '.join(filter(None, facts))}"
            self.console.print(Text(text, style="green" if good else "red"))

    def end(self, episode: Episode, gold: str | None) -> None:
        """Print the outcome of the episode."""
        table = Table(show_header=False, title="correct" if episode.correct else "end of the episode")
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
