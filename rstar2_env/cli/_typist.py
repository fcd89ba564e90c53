"""A person's turns: lines up to a full stop, or an editor of many lines where prompt_toolkit is installed.

Covered: typing, and commands that write a call or an answer in the environment's dialect. Not covered: what is shown
(``rstar2_env.cli._screen``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rstar2_env.cli._screen import Screen
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.dialects import Dialect
from rstar2_env.evaluation.play.episode import python_call

HELP = """\
Type a turn as a model would write it; {end}. A first line that begins with a colon is a command:
  :run            then a program, which becomes a call of the Python tool
  :answer ANSWER  sends an answer
  :tools          shows the tools' schemas
  :help           shows this
  :quit           gives up (so does Ctrl-D)"""


class GaveUpError(Exception):
    """The person gave the episode up."""


class Typist:
    """Plays what a person types; an agent.

    Args:
        screen: Shows the conversation.
        dialect: How the environment reads calls and answers; ``None`` where it has none.
    """

    interactive = True

    def __init__(self, screen: Screen, dialect: Dialect | None) -> None:
        self._screen, self._dialect = screen, dialect
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._read, self._how = _reader()
        self._begun = False

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Show the beginning of an episode.

        Args:
            observation: The text of the environment's ``reset``.
            info: The ``info`` of the environment's ``reset``.
            seed: Not used.
        """
        self._tools, self._begun = list(info.get("tools") or ()), False
        self._screen.console.rule(str(info.get("problem_id") or "a new episode"))
        if info.get("system"):
            self._screen.message("system", str(info["system"]))
        self._screen.say(HELP.format(end=self._how))

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Show what came, and read a turn.

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
        """The turn that was typed; ``None`` after a command that sends none."""
        if not typed.startswith(":"):
            return typed
        command, _, rest = typed.partition("\n")
        word, _, argument = command.partition(" ")
        try:
            if word in (":run", ":r"):
                return self._call(rest or argument or self._type("program> "))
            if word in (":answer", ":a"):
                return self._of_dialect().format_answer("\n".join(filter(None, (argument, rest))))
        except (ConfigurationError, ValueError) as error:
            self._screen.say(str(error))
            return None
        if word in (":quit", ":q"):
            raise GaveUpError
        if word == ":tools":
            self._screen.console.print_json(data=self._tools)
        else:
            if word not in (":help", ":h"):
                self._screen.say(f"There is no command {word}.")
            self._screen.say(HELP.format(end=self._how))
        return None

    def _call(self, code: str) -> str:
        return python_call(self._of_dialect(), self._tools, code)

    def _of_dialect(self) -> Dialect:
        if self._dialect is None:
            raise ConfigurationError("This environment has no calls and no marked answers: type what it asks for.")
        return self._dialect

    def _type(self, prompt: str) -> str:
        try:
            return self._read(prompt)
        except EOFError:
            raise GaveUpError from None


def _reader() -> tuple[Callable[[str], str], str]:
    """How a turn is read, and how it is ended, in words."""
    if sys.stdin.isatty():
        try:
            from prompt_toolkit import PromptSession
        except ImportError:
            pass
        else:
            session: PromptSession[str] = PromptSession(multiline=True, mouse_support=False)
            return session.prompt, "Esc, then Enter, sends it"
    return _lines, "a line that is a single full stop sends it"


def _lines(prompt: str) -> str:
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
            return line  # these commands take one line
        lines.append(line)
