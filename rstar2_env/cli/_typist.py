"""``Typist``: reads a person's turns from prompt_toolkit's editor, or as lines up to a line that is only ``.``.

Covered: the input, and commands that format a call or an answer in the environment's dialect. Not covered: the display
(``rstar2_env.cli._screen``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rstar2_env.cli._screen import Screen
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.text import harmless
from rstar2_env.dialects import Dialect
from rstar2_env.evaluation.play.episode import python_call

HELP = """\
Type a turn as a model would write it; {end}. A first line that begins with a colon is a command:
  :run            send the program that follows as a call of the Python tool
  :answer ANSWER  send an answer
  :tools          show the schemas of the tools
  :help           show this help
  :quit           give up (same as Ctrl-D)"""


class GaveUpError(Exception):
    """The person who plays gave up the episode."""


class Typist:
    """An agent whose actions are typed by a person.

    Args:
        screen: Display of the conversation.
        dialect: Dialect of calls and answers; ``None`` if the environment does not have one.
    """

    interactive = True

    def __init__(self, screen: Screen, dialect: Dialect | None) -> None:
        self._screen, self._dialect = screen, dialect
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._read, self._end_hint = _reader()
        self._begun = False

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Show the start of an episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Not used.
        """
        self._tools, self._begun = list(info.get("tools") or ()), False
        self._screen.console.rule(harmless(info.get("problem_id") or "a new episode"))
        if info.get("system"):
            self._screen.message("system", str(info["system"]))
        self._screen.note(HELP.format(end=self._end_hint))

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Show the observation, and read the person's turn.

        Raises:
            GaveUpError: The person gave up, or the input ended.
        """
        if self._begun:
            self._screen.statuses(info)
        self._screen.message(str(info.get("role", "user")) if self._begun else "user", observation)
        self._begun = True
        while True:
            turn = self._turn(self._type("> "))
            if turn is not None:
                self._screen.turn(turn)
                return turn

    def _turn(self, typed: str) -> str | None:
        """Return the turn that was typed; ``None`` after a command that does not send a turn."""
        if not typed.startswith(":"):
            return typed
        command, _, rest = typed.partition("\n")
        word, _, argument = command.partition(" ")
        try:
            if word in (":run", ":r"):
                return self._call(rest or argument or self._type("program> "))
            if word in (":answer", ":a"):
                return self._require_dialect().format_answer("\n".join(filter(None, (argument, rest))))
        except (ConfigurationError, ValueError) as error:
            self._screen.note(str(error))
            return None
        if word in (":quit", ":q"):
            raise GaveUpError("You gave up.")
        if word == ":tools":
            self._screen.note(json.dumps(self._tools, indent=2, ensure_ascii=False))
        else:
            if word not in (":help", ":h"):
                self._screen.note(f"There is no command {word}.")
            self._screen.note(HELP.format(end=self._end_hint))
        return None

    def _call(self, code: str) -> str:
        return python_call(self._require_dialect(), self._tools, code)

    def _require_dialect(self) -> Dialect:
        if self._dialect is None:
            raise ConfigurationError(
                "This environment does not use tool calls or marked answers: type your action as plain text, "
                "without a command."
            )
        return self._dialect

    def _type(self, prompt: str) -> str:
        try:
            return self._read(prompt)
        except EOFError:
            raise GaveUpError("The input ended, so the episode was given up.") from None


def _reader() -> tuple[Callable[[str], str], str]:
    """Return the function that reads a turn, and a hint on how to end the turn."""
    if sys.stdin.isatty():
        try:
            from prompt_toolkit import PromptSession
        except ImportError:
            pass
        else:
            session: PromptSession[str] = PromptSession(multiline=True, mouse_support=False)
            return session.prompt, "press Esc, then Enter, to send it"
    return _read_lines, "end it with a line that contains only a full stop"


def _read_lines(prompt: str) -> str:
    lines: list[str] = []
    while True:
        if sys.stdin.isatty():
            print(prompt if not lines else " " * len(prompt), end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        line = line.rstrip("\r\n")
        if line == ".":
            return "\n".join(lines)
        if not lines and line.startswith((":q", ":h", ":t", ":a")):
            return line  # these commands consist of one line
        lines.append(line)
