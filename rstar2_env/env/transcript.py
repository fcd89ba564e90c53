"""Renders an episode for a terminal in ANSI colours: each message with its role, and the status of each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import harmless
from rstar2_env.tools.base import ToolResult

_RESET = "\x1b[0m"
_COLOURS = {"system": "\x1b[2m", "user": "\x1b[36m", "policy": "\x1b[33m", "tool": "\x1b[35m", "end": "\x1b[1m"}
_GOOD, _BAD, _OURS = "\x1b[32m", "\x1b[31m", "\x1b[34m"


class Transcript:
    """The conversation so far; ``text`` and ``news`` format it as coloured text."""

    def __init__(self) -> None:
        self._entries: list[_Block] = []
        self._shown = 0

    def start(self, system: str, user: str) -> None:
        """Start the transcript of a new episode."""
        self._entries = [_Block("system", system)] if system else []
        self._entries.append(_Block("user", user))
        self._shown = 0

    def turn(self, action: str, results: Sequence[ToolResult], text: str) -> None:
        """Add a turn of the policy and the observation that followed.

        Args:
            action: Text of the turn.
            results: Results of its tool calls, in order.
            text: The observation that followed the turn.
        """
        self._entries += (_Block("policy", action), _Block("tool", text, tuple(results)))

    def end(self, action: str, results: Sequence[ToolResult], end: str, correct: bool) -> None:
        """Add the last turn and the end of the episode.

        Args:
            action: Text of the turn.
            results: Results of its tool calls, in order.
            end: The value of ``info["end"]``.
            correct: Whether the episode counts as solved.
        """
        word = f" {_GOOD}correct{_RESET}" if correct else f" {_BAD}not correct{_RESET}"
        self._entries += (_Block("policy", action), _Block("end", None, tuple(results), f"end: {end}", word))

    def text(self) -> str:
        """Return the text of the whole episode."""
        return "\n".join(entry.draw() for entry in self._entries)

    def news(self) -> str:
        """Return the text added since the previous call of ``news``."""
        fresh, self._shown = self._entries[self._shown :], len(self._entries)
        return "\n".join(entry.draw() for entry in fresh)


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    text: str | None
    results: tuple[ToolResult, ...] = ()
    heading: str = ""
    word: str = ""

    def draw(self) -> str:
        note = f" {_statuses(self.results)}" if self.results else ""
        text = "" if self.text is None else f"\n{harmless(self.text)}"
        return f"{_COLOURS[self.kind]}[{self.heading or self.kind}]{_RESET}{note}{self.word}{text}"


def _statuses(results: Sequence[ToolResult]) -> str:
    words = []
    for result in results:
        colour = _OURS if result.status is ToolStatus.UNAVAILABLE else _BAD if result.status.is_error else _GOOD
        words.append(f"{colour}{result.status}{' (injected)' if result.injected else ''}{_RESET}")
    return " ".join(words)
