"""Draws an episode for a terminal: who speaks, what, and how each call went, in ANSI colours."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.status import ToolStatus
from rstar2_env.tools.base import ToolResult

_RESET = "\x1b[0m"
_COLOURS = {"system": "\x1b[2m", "user": "\x1b[36m", "policy": "\x1b[33m", "tool": "\x1b[35m", "end": "\x1b[1m"}
_GOOD, _BAD, _OURS = "\x1b[32m", "\x1b[31m", "\x1b[34m"


class Transcript:
    """The conversation so far, as coloured text."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._shown = 0

    def start(self, system: str, user: str) -> None:
        """Forget the last episode and begin one."""
        self._blocks = [_block("system", system)] if system else []
        self._blocks.append(_block("user", user))
        self._shown = 0

    def turn(self, action: str, results: Sequence[ToolResult], text: str) -> None:
        """Add a turn of the policy and what it was shown."""
        self._blocks.append(_block("policy", action))
        self._blocks.append(_block("tool", text, _statuses(results)))

    def end(self, action: str, results: Sequence[ToolResult], end: str, correct: bool) -> None:
        """Add the last turn and how the episode ended."""
        self._blocks.append(_block("policy", action))
        word = f"{_GOOD}correct{_RESET}" if correct else f"{_BAD}not correct{_RESET}"
        statuses = f" {_statuses(results)}" if results else ""
        self._blocks.append(f"{_COLOURS['end']}[end: {end}]{_RESET}{statuses} {word}")

    def text(self) -> str:
        """The whole episode."""
        return "\n".join(self._blocks)

    def news(self) -> str:
        """What was added since the last call of ``news``."""
        fresh, self._shown = self._blocks[self._shown :], len(self._blocks)
        return "\n".join(fresh)


def _block(who: str, text: str, note: str = "") -> str:
    # A tool may print escape sequences; shown as they are, they could repaint the reader's terminal.
    safe = text.replace("\x1b", "\\x1b")
    return f"{_COLOURS[who]}[{who}]{_RESET}{' ' + note if note else ''}\n{safe}"


def _statuses(results: Sequence[ToolResult]) -> str:
    words = []
    for result in results:
        colour = _OURS if result.status is ToolStatus.UNAVAILABLE else _BAD if result.status.is_error else _GOOD
        words.append(f"{colour}{result.status}{' (injected)' if result.injected else ''}{_RESET}")
    return " ".join(words)
