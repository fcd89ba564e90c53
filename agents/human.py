"""``human``: a person reads the observations at the terminal and types the turns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from rstar2_env.core.text import harmless

from .base import AGENTS

_HELP = "Your turn. End it with a line that contains only a full stop; Ctrl-D gives up."


class Human:
    """Shows the environment's texts and reads turns; a line with a single full stop ends a turn.

    Args:
        stdin: Stream from which turns are read; ``None`` means standard input.
        stdout: Stream to which everything is written; ``None`` means standard output.
    """

    interactive = True
    "True: the agent reads from the terminal, so it can play only one episode at a time."

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self._stdin = stdin
        self._stdout = stdout

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Show the system message.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Not used.
        """
        self._show(f"\n=== {info.get('problem_id') or 'a new episode'} ===\n{info.get('system', '')}\n")

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Show the observation and read a turn.

        Raises:
            KeyboardInterrupt: The input ended before the turn was complete.
        """
        self._show(f"\n{observation}\n\n{_HELP}\n")
        lines: list[str] = []
        while True:
            line = (self._stdin or sys.stdin).readline()
            if not line:
                raise KeyboardInterrupt("The input ended, so the episode cannot be continued.")
            if line.rstrip("\r\n") == ".":
                return "\n".join(lines)
            lines.append(line.rstrip("\r\n"))

    def _show(self, text: str) -> None:
        print(harmless(text), file=self._stdout or sys.stdout, flush=True)


AGENTS.register("human", Human)
