"""``Screen``: shows an episode in the terminal: the conversation with highlighted programs, call statuses, outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table

from rstar2_env.core.episode import Episode
from rstar2_env.core.text import harmless
from rstar2_env.dialects import Dialect
from rstar2_env.view.terminal.episodes import message_panel, program_parts, status_lines
from rstar2_env.view.terminal.sanitize import safe_text


class Screen:
    """Shows one episode: in colour on a terminal, otherwise as plain text.

    Args:
        dialect: Dialect of the calls in turns; ``None`` if the environment does not have one.
        console: Console to print to; ``None`` for standard output.
    """

    def __init__(self, dialect: Dialect | None, console: Console | None = None) -> None:
        self.console = Console() if console is None else console
        self._dialect = dialect

    def note(self, text: str) -> None:
        """Print a note of the command itself, as opposed to text of the episode."""
        self.console.print(safe_text(text, style="dim"))

    def message(self, role: str, text: str) -> None:
        """Print a message from the environment."""
        self.console.print(message_panel(role, text))

    def turn(self, text: str) -> None:
        """Print a turn; programs in its calls are highlighted."""
        calls = self._dialect.calls(text) if self._dialect else []
        parts = program_parts(calls)
        bare = self._dialect.format_call(calls[-1].name, calls[-1].arguments) if self._dialect and parts else ""
        # If a turn is only a call, print the program without the markup around it.
        if bare.strip() != text.strip():
            parts = [safe_text(text.rstrip()), *parts]
        self.console.print(Panel(Group(*parts), title="you", title_align="left", border_style="green"))

    def statuses(self, info: Mapping[str, Any]) -> None:
        """Print the status of each call of the last turn."""
        for line in status_lines(info):
            self.console.print(line)

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
                table.add_row(harmless(name), safe_text(value))
        self.console.print(table)
