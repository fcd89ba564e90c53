"""Commands, words and redirections of a line for the shell ``sh``.

Covered: quotes, lists, pipes, subshells, ``case``, functions, command substitutions and comments. Not covered: the
values of variables, commands in backquotes, and the texts of here-documents.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

_QUOTED = r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\""""
_PARENTHESES = ""
for _ in range(4):
    _PARENTHESES = rf"""\((?:{_QUOTED}|[^()'"\\]{_PARENTHESES and "|" + _PARENTHESES})*\)"""
"""Pattern of a pair of parentheses with at most three pairs in each other inside."""
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|\#.*)
    |(?P<redirection>\d*(?:<<-?|<&|<>|>>|>&|>\||<|>))
    |(?P<operator>;;|&&|\|\||[;&|()])
    |(?P<word>(?:
        "(?:\\.|\${_PARENTHESES}|[^"\\])*+"
        |{_QUOTED}
        |\${_PARENTHESES}
        |\$\{{[^}}]*\}}
        |`[^`]*`
        |[^\s\\'"`;&|()<>]
    )+)
    """,
    re.VERBOSE | re.DOTALL,
)
_SUBSTITUTION = re.compile(rf"\\.|'[^']*'|\$({_PARENTHESES})", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_OPENS = frozenset(("!", "do", "elif", "else", "if", "then", "until", "while", "{"))
"""Reserved words that a command follows (POSIX.1-2024, Shell Command Language, 2.10)."""


@dataclass(slots=True)
class ShellLine:
    """Contents of a line for the shell; words are as they are written, with their quotes.

    Attributes:
        commands: The words of each command, without assignments and redirections. The first word may be a reserved
            word of the shell, such as ``for``.
        words: Every word.
        written: Targets of the redirections that write.
        functions: Names of the functions that the line defines.
        has_here_document: Whether the line has a here-document.
    """

    commands: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    has_here_document: bool = False


def read_line(text: str) -> ShellLine:
    """Read a line for the shell, with the commands of its substitutions.

    Raises:
        ValueError: A quotation has no end.
    """
    line = ShellLine()
    _read(text, line)
    line.commands = [command for command in line.commands if command]
    return line


def without_quotes(word: str) -> str:
    """Return a word without its quotes.

    Raises:
        ValueError: A quotation has no end.
    """
    return " ".join(shlex.split(word))


def _read(text: str, line: ShellLine) -> None:
    def begin() -> list[str]:
        line.commands.append([])
        return line.commands[-1]

    command, redirection, before = begin(), "", ""
    in_pattern: list[bool] = []  # of each open ``case``
    for kind, token in _tokens(text):
        if kind == "word":
            line.words.append(token)
            for found in _SUBSTITUTION.finditer(token):
                if found[1] and not found[1].startswith("(("):
                    _read(found[1][1:-1], line)
        if in_pattern and in_pattern[-1]:
            if token == "esac" and before in ("in", ";;"):
                in_pattern.pop()
            elif token == ")":
                in_pattern[-1], command = False, begin()
        elif kind == "redirection":
            redirection = token.lstrip("0123456789")
            line.has_here_document |= redirection.startswith("<<")
        elif kind == "word" and redirection:
            if ">" in redirection and not redirection.endswith("&"):
                line.written.append(token)
            redirection = ""
        elif kind == "word":
            if command[:1] == ["case"] and token == "in":
                in_pattern.append(True)
            elif token == "esac" and in_pattern and not command:
                in_pattern.pop()
            elif command or not (token in _OPENS or _ASSIGNED.match(token)):
                command.append(token)
        else:
            if token == "(" and command:
                line.functions.add(command.pop())
            if token == ";;" and in_pattern:
                in_pattern[-1] = True
            command = begin()
        before = token


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise ValueError(f"No closing quotation: {text[place:]}")
        place = found.end()
        if found.lastgroup != "space":
            yield found.lastgroup, found[0]
