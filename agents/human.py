"""A person at the terminal: sees what the policy would see, and types its turns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from .base import AGENTS

_HELP = "Your turn. End it with a line that holds a single full stop; Ctrl-D gives up."


class Human:
    """Shows what comes from the environment, and reads a turn: lines up to one that is a single full stop.

    Args:
        stdin: Where turns are read from; standard input when ``None``.
        stdout: Where everything is shown; standard output when ``None``.
    """

    interactive = True
    """Plays one episode at a time, and wants the terminal for itself."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self._stdin = stdin
        self._stdout = stdout

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Show the system message."""
        self._show(f"\n=== {info.get('problem_id') or 'a new episode'} ===\n{info.get('system', '')}\n")

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Show the observation and read a turn.

        Raises:
            KeyboardInterrupt: The input ended before the turn did.
        """
        self._show(f"\n{observation}\n\n{_HELP}\n")
        lines: list[str] = []
        while True:
            line = (self._stdin or sys.stdin).readline()
            if not line:
                raise KeyboardInterrupt("The input ended.")
            if line.rstrip("\r\n") == ".":
                return "\n".join(lines)
            lines.append(line.rstrip("\r\n"))

    def _show(self, text: str) -> None:
        print(text, file=self._stdout or sys.stdout, flush=True)


AGENTS.register("human", Human)
