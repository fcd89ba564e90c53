"""``RUN`` lines of a Dockerfile that the sandbox runs at the start of an episode, instead of an image.

Covered: lines for the shell whose programs are on this machine. Not covered: lines that install packages
(``packages``), lines that need the network, here-documents, and lines that are JSON or have options of Docker.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

NETWORK = r"apt-get|apt|curl|wget|uvx?|pipx?|pip3|conda|npm|npx|git\s+clone"
"""Pattern of the programs that need the network."""
_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Folders of programs that the sandbox shows."""
# fmt: off
_SHELL = frozenset((
    "!", ".", ":", "[", "break", "case", "cd", "command", "continue", "do", "done", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fi", "for", "if", "in", "printf", "pwd", "python", "python3", "read",
    "readonly", "return", "set", "shift", "test", "then", "trap", "true", "umask", "unset", "until", "while", "{",
    "}",
))
# fmt: on
"""Words of the shell, and the programs that the sandbox itself provides."""
_OPENS = frozenset(("!", "do", "elif", "else", "if", "then", "until", "while", "{"))
"""Words of the shell that a command follows."""


@dataclass(frozen=True, slots=True)
class SetUpCommand:
    """A ``RUN`` line that the sandbox runs at the start of an episode.

    Attributes:
        line: Number of the line in the Dockerfile.
        command: The line without ``RUN``.
        workdir: Working folder at this line.
        environment: Environment variables at this line.
        copied: Number of the task's ``files`` that earlier lines copied.
    """

    line: int
    command: str
    workdir: str
    environment: Mapping[str, str]
    copied: int


def can_set_up(run: str) -> bool:
    """Whether the sandbox can run a ``RUN`` line.

    Args:
        run: The line without ``RUN``.

    Raises:
        ValueError: The line has an open quote, or a program of it is not on this machine; the message names it.
    """
    if run.startswith(("[", "--")) or "<<" in run:
        return False
    programs = _programs(run)
    if re.search(rf"(?<![\w./-])({NETWORK})(?![\w./-])", " ".join(["", *_words(run), ""])):
        return False
    for name in programs:
        if name not in _SHELL and not re.search(r"[/$`=*]", name) and shutil.which(name, path=_PLACES) is None:
            raise ValueError(f"the program {name} is not installed on this machine")
    return True


def roots_in(run: str) -> list[str]:
    """Return the first parts of the absolute paths that a line names: ``app`` of ``/app/data``."""
    return [found[1] for word in _words(run) if (found := re.match(r"/([A-Za-z0-9_][\w.-]*)", word))]


def _words(run: str) -> list[str]:
    lexer = shlex.shlex(run, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(lexer)


def _programs(run: str) -> list[str]:
    """Return the words of a line that begin a command."""
    found, begins = [], True
    for word in _words(run):
        if not set(word) - set("();|&"):
            begins = True
        elif begins and word not in _OPENS:
            found.append(word)
            begins = "=" in word and "/" not in word.partition("=")[0]
    return found
