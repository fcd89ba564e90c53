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

from rstar2_env.sandbox.options import can_be_root_folder

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
        ValueError: The line has an open quote, a program of it is not on this machine, or it writes to a folder whose
            files the tests do not see; the message names it.
    """
    if run.startswith(("[", "--")) or "<<" in run:
        return False
    if (unseen := _unseen(run)) is not None:
        raise ValueError(
            f"{unseen} means a file of the sandbox itself, in /tmp, the home folder or the system, which the tests do "
            "not see"
        )
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


def _unseen(run: str) -> str | None:
    """Return a path of a line in the temporary folder or the home folder, or one outside that is written to.

    Programs and settings of the sandbox (``/usr``, ``/etc``) are only read; a redirection to them cannot work.
    """
    before = ""
    for word in _words(run):
        if re.match(r"/tmp(?:/|$)|~|--global$", word) or word.startswith(("$HOME", "${HOME")):
            return word
        if ">" in before and word.startswith("/") and not word.startswith("/dev/"):
            root = word.split("/")[1]
            if not can_be_root_folder(root):
                return word
        before = word
    return None


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
