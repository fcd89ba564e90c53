"""Parses a line or a script for the shell ``sh`` into commands, words and redirections.

Covered: quotes, lists, pipes, subshells, ``case``, functions, command substitutions, comments and, from ``bash``,
arrays, ``$'…'``, ``<<<``, ``<(…)`` and ``>(…)``. Not covered: the values of variables, and commands in backquotes. The
texts of here-documents are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_QUOTED = r"""\\.|\$'(?:\\.|[^'\\])*'|'[^']*'|"(?:\\.|[^"\\])*\""""
_PARENTHESES = ""
for _ in range(4):
    _PARENTHESES = rf"""\((?:{_QUOTED}|[^()'"\\$]|\$(?!'){_PARENTHESES and "|" + _PARENTHESES})*\)"""
"""Pattern of a pair of parentheses that contains at most three further levels of nested parentheses."""
_IN_DOUBLE_QUOTES = rf'(?:\\.|\${_PARENTHESES}|[^"\\])*+'
_TOKEN = re.compile(
    rf"""
    (?P<space>[^\S\n]+|\\\n|\#[^\n]*)
    |(?P<redirection>\d*(?:<<<|<<-?|<&|<>|>>|>&|>\||[<>](?!\()))
    |(?P<operator>;;|&&|\|\||[;&|()\n])
    |(?P<word>(?:
        "{_IN_DOUBLE_QUOTES}"
        |{_QUOTED}
        |(?:[$<>]|(?<==)){_PARENTHESES}
        |\$\{{[^}}]*\}}
        |`(?:\\.|[^`\\])*`
        |[^\s\\'"`;&|()<>$]
        |\$(?!')
    )+)
    """,
    re.VERBOSE | re.DOTALL,
)
_PIECE = re.compile(
    rf"""\\(?P<escaped>.)|\$'(?P<expanded>(?:\\.|[^'\\])*)'|'(?P<literal>[^']*)'|"(?P<quoted>{_IN_DOUBLE_QUOTES})\""""
    rf"|[$<>](?P<substituted>{_PARENTHESES})",
    re.DOTALL,
)
"""Pattern of a part of a word that is quoted or substituted."""
_PIECE_IN_QUOTES = re.compile(rf"""\\(?P<escaped>["$`\\\n])|\$(?P<substituted>{_PARENTHESES})""", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_OPENS = frozenset(("!", "do", "elif", "else", "if", "then", "until", "while", "{"))
"""Reserved words after which a command begins (POSIX.1-2024, Shell Command Language, 2.10)."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command, without assignments and redirections.

    Attributes:
        words: Its words; the first may be a reserved word of the shell, such as ``for``.
        number: Number of its line, from 1.
    """

    words: list[str]
    number: int


@dataclass(slots=True)
class ShellLine:
    """Contents of a line or a script for the shell; words keep their quotes.

    Attributes:
        commands: All commands, including those in substitutions.
        words: All words, including targets of redirections and words in substitutions.
        written: Targets of redirections that write (``> FILE``).
        functions: Names of the functions that the line defines.
        has_here_document: Whether the line has a here-document.
    """

    commands: list[ShellCommand] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    has_here_document: bool = False


def read_line(text: str) -> ShellLine:
    """Read a line or a script for the shell, with the commands of its substitutions.

    Raises:
        ValueError: A quotation has no end.
    """
    line = ShellLine()
    _read(text, line, 1)
    line.commands = [command for command in line.commands if command.words]
    return line


def without_quotes(word: str) -> str:
    """Return a word without its quotes; substitutions are left unchanged."""

    def plain(piece: re.Match[str]) -> str:
        kind = str(piece.lastgroup)
        if kind == "quoted":
            return _PIECE_IN_QUOTES.sub(plain, piece[kind])
        if kind == "substituted":
            return piece[0]
        return "" if piece[0] == "\\\n" else piece[kind]

    return _PIECE.sub(plain, word)


def _read(text: str, line: ShellLine, first: int) -> None:
    command, redirection, before = list[str](), "", ""
    in_pattern: list[bool] = []  # for each open ``case``
    for kind, token, number in _tokens(text, first):
        if kind == "word":
            line.words.append(token)
            for inside in _substitutions(token):
                _read(inside, line, number)
        if in_pattern and in_pattern[-1]:
            if token == "\n":
                continue
            if token == "esac" and before in ("in", ";;"):
                in_pattern.pop()
            elif token == ")":
                in_pattern[-1], command = False, []
        elif kind == "redirection":
            redirection = token.lstrip("0123456789")
            line.has_here_document |= redirection in ("<<", "<<-")
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
                if not command:
                    line.commands.append(ShellCommand(command, number))
                command.append(token)
        else:
            if token == "(" and command:
                line.functions.add(command.pop())
            if token == ";;" and in_pattern:
                in_pattern[-1] = True
            command = []
        before = token


def _substitutions(word: str) -> Iterator[str]:
    """Yield the text of each command substitution in a word."""
    for piece in _PIECE.finditer(word):
        pieces = [piece] if piece.lastgroup != "quoted" else _PIECE_IN_QUOTES.finditer(piece["quoted"])
        for one in pieces:
            if one.lastgroup == "substituted" and not one["substituted"].startswith("(("):
                yield one["substituted"][1:-1]


def _tokens(text: str, number: int) -> Iterator[tuple[str, str, int]]:
    """Yield the kind and the text of each token, with the number of its line."""
    place, redirection = 0, ""
    ends: list[re.Pattern[str]] = []  # end markers of the here-documents that follow this line
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise ValueError(f"No closing quotation: {text[place:].splitlines()[0]}")
        kind, token, place = found.lastgroup, found[0], found.end()
        if kind == "space":
            number += token.count("\n")
            continue
        yield kind, token, number
        number += token.count("\n")
        if kind == "word" and redirection in ("<<", "<<-"):
            tabs = "\t*" if redirection == "<<-" else ""
            ends.append(re.compile(rf"^{tabs}{re.escape(without_quotes(token))}$", re.MULTILINE))
        redirection = token.lstrip("0123456789") if kind == "redirection" else ""
        while token == "\n" and ends:
            if end := ends.pop(0).search(text, place):
                number += text.count("\n", place, end.end())
                place = end.end()
